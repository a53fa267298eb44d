"""How each agent is started without an account: its configuration files, environment and command.

Every agent gets a home, a root to work in, the server under the name `pintle`, and a model on loopback. Claude Code,
Codex, Gemini CLI and opencode are given the server by what the documentation says to do, letter for letter.
"""

import json
import shlex
from pathlib import Path

PROMPT = "Do what your tools let you do, then stop."


class Setup:
    """What an agent is started with."""

    def __init__(self, command, environment=None, before=()):
        self.command = command
        self.environment = environment or {}
        self.before = before


class Context:
    """Where an agent runs: its installed packages, its home, the root, the model's port, and what the documentation
    says to do to add the server, once that is known."""

    def __init__(self, packages, home, root, port):
        self.packages = Path(packages)
        self.home = Path(home)
        self.root = Path(root)
        self.url = f"http://127.0.0.1:{port}"
        self.documented = None

    def native(self, *names):
        """The program of a platform's own package, of which npm installs the one that fits."""
        for name in names:
            for found in sorted((self.packages / "node_modules").glob(name)):
                return str(found)
        raise FileNotFoundError(f"none of {', '.join(names)} is installed: remove .cache/agents and run again")

    def script(self, name):
        return [self.native("node-linux-*/bin/node"), str(self.packages / "node_modules" / name)]

    def write(self, path, content):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return str(path)

    def program(self, name, command):
        """Puts a command on the agent's path."""
        path = Path(self.write(f"bin/{name}", f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'))
        path.chmod(0o755)
        return name

    def adding(self):
        """The documented command that adds the server to an agent."""
        return ["bash", "-c", self.documented]

    def entry(self, **more):
        return {"command": "pintle", "args": ["serve", "--root", str(self.root)]} | more


def claude_code(context):
    program = context.program("claude", [context.native("@anthropic-ai/claude-code-linux-*/claude")])
    # It refuses to skip permissions for root, so the server's tools are allowed by name.
    command = [program, "-p", PROMPT, "--allowedTools", "mcp__pintle", "--model", "claude-sonnet-4-5",
               "--output-format", "json"]
    return Setup(command, {
        "ANTHROPIC_BASE_URL": context.url, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"}, [context.adding()])


def codex(context):
    context.write(".codex/config.toml", f"""
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{context.url}/v1"
wire_api = "responses"
""")
    program = context.program("codex", context.script("@openai/codex/bin/codex.js"))
    command = [program, "exec", "--skip-git-repo-check", "--json", PROMPT]
    return Setup(command, {"CODEX_HOME": str(context.home / ".codex")}, [context.adding()])


def gemini_cli(context):
    context.write(".gemini/settings.json", {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False}})
    program = context.program("gemini", context.script("@google/gemini-cli/bundle/gemini.js"))
    command = [program, "--prompt", PROMPT, "--approval-mode", "yolo", "--model", "gemini-2.5-pro"]
    return Setup(command, {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": context.url}, [context.adding()])


def opencode(context):
    config = context.write("opencode.json", {
        "autoupdate": False, "share": "disabled", "model": "scripted/scripted", "small_model": "scripted/scripted",
        "permission": {"*": "allow"},
        "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
                                  "options": {"baseURL": f"{context.url}/v1", "apiKey": "none"},
                                  "models": {"scripted": {"name": "scripted", "tool_call": True}}}},
        "mcp": json.loads(context.documented)})
    program = context.program("opencode", [context.native("opencode-linux-x64/bin/opencode",
                                                          "opencode-linux-*/bin/opencode")])
    return Setup([program, "run", "--print-logs", PROMPT], {
        "OPENCODE_CONFIG": config, "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"})


def copilot_cli(context):
    config = context.write("mcp.json", {"mcpServers": {"pintle": context.entry(type="local", tools=["*"])}})
    command = context.script("@github/copilot/npm-loader.js") + [
        "-p", PROMPT, "--allow-all-tools", "--additional-mcp-config", f"@{config}", "--disable-builtin-mcps",
        "--no-auto-update"]
    return Setup(command, {
        "COPILOT_PROVIDER_BASE_URL": f"{context.url}/v1", "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-4.1", "COPILOT_OFFLINE": "true",
        "COPILOT_HOME": str(context.home / ".copilot")})


def continue_cli(context):
    config = context.write("config.yaml", json.dumps({
        "name": "scripted", "version": "1.0.0", "schema": "v1",
        "models": [{"name": "scripted", "provider": "openai", "model": "gpt-4o", "apiKey": "none",
                    "apiBase": f"{context.url}/v1", "roles": ["chat"], "capabilities": ["tool_use"]}],
        "mcpServers": [context.entry(name="pintle")]}))
    command = context.script("@continuedev/cli/dist/cn.js") + ["-p", PROMPT, "--config", config, "--auto"]
    return Setup(command, {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_GLOBAL_DIR": str(context.home / ".continue")})


def cline(context):
    context.write(".cline/data/settings/cline_mcp_settings.json", {"mcpServers": {"pintle": context.entry()}})
    program = context.native("@cline/cli-linux-*/bin/cline")
    signing_in = [program, "auth", "-p", "openai-compatible", "-k", "none", "-m", "scripted", "-b", f"{context.url}/v1"]
    return Setup([program, "--auto-approve", "true", PROMPT], {"CLINE_TELEMETRY_DISABLED": "1"}, [signing_in])


# The agents that can be given a fixed token for a server over HTTP. Each has the command `mcp list`.
OVER_HTTP = {"claude-code", "codex", "gemini-cli", "opencode"}

# In the order of the table: identifier, name, the package whose version is shown, how it is started.
AGENTS = [
    ("claude-code", "Claude Code", "@anthropic-ai/claude-code", claude_code),
    ("codex", "Codex", "@openai/codex", codex),
    ("gemini-cli", "Gemini CLI", "@google/gemini-cli", gemini_cli),
    ("opencode", "opencode", "opencode-ai", opencode),
    ("copilot-cli", "Copilot CLI", "@github/copilot", copilot_cli),
    ("continue", "Continue", "@continuedev/cli", continue_cli),
    ("cline", "Cline", "cline", cline),
]
