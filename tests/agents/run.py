"""Runs real agents against the server and a scripted model, and checks what reaches the model.

run.py --binary PINTLE --packages FOLDER --results FOLDER [--docs FILE] [--http] [AGENT…]
"""

import argparse
import contextlib
import ctypes
import datetime
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from http_tap import HttpTap
from model import Model, Step, squeezed
from setups import AGENTS, OVER_HTTP, Context

HERE = Path(__file__).resolve().parent
DOCS = HERE / "../../docs"
SECONDS = 120

# What the server lists where no schemas, backend or bindings are configured.
TOOLS = ["check_status", "file_create", "file_list", "file_move", "file_read", "file_remove", "index_build",
         "index_status", "search", "show_file", "text_append", "text_insert", "text_read", "text_replace",
         "workspace_status"]
# Those that a model should not have to look for, where a client loads tools only as they are needed.
LOADED = {"file_create", "file_list", "search", "text_insert", "text_read", "text_replace"}
# What the APIs of models take for a name.
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

SEARCHED = "search_marker_9d2b"
READ = "read_marker_5c1e"
NOTES = f"first line\nsecond line\nthird line {READ}\n"
EDITED = NOTES.replace("second line", "a better line")
CREATED = "made by an agent\n"

# The parts of the documented configurations that send a token.
TOKEN_OPTION = r""" --header '[^']*'| --bearer-token-env-var \w+|, "headers": \{[^{}]*\{[^{}]*\}[^{}]*\}"""

# The runs of an agent over HTTP, and the scopes of its token in each.
RUNS = {"everything": ["write:/"], "one-folder": ["read:/", "write:/made/"], "read-only": ["read:/"], "no-token": None}
MISSING = "this needs the scope `write:/notes.txt`, which the caller does not have"
# Tools that only a caller with some scope to write is shown.
WRITING = {"file_create", "file_move", "file_remove", "index_build", "text_append", "text_insert", "text_replace"}
# What says why an agent without a token has no server, and what says anything of the server.
REASON = re.compile(r"no token was sent|\b401\b")
SERVER = re.compile(r"\bpintle\b.*")

TITLES = {"tools": "every tool, by its name", "search": "first search answers", "read": "a read is shown once",
          "error": "an error is shown", "edit": "files are changed",
          "added": "what it adds to a call does no harm"}
# Checks that are no columns of a table.
OTHER_TITLES = {"known": "its name is in the data file", "end": "it ends by itself",
                "scope": "a missing scope is shown, and the next call works",
                "read-only": "without a scope to write, no tool that writes is shown",
                "token": "without a token nothing is shown or changed"}


def script():
    digest = hashlib.sha256(NOTES.encode()).hexdigest()
    return [
        Step("search", {"query": SEARCHED}),
        Step("text.read", {"path": "notes.txt"}),
        Step("text.read", {"path": "missing.txt"}),
        Step("text.replace", {"path": "notes.txt", "hash": digest, "lines": [2, 3], "old": "second line",
                              "new": "a better line"}),
        Step("file.create", {"path": "made/new.txt", "content": CREATED}),
        Step("text.read", {"path": "src/found.rs"}, known={"path", "lines"}),
    ]


SEARCH, READING, FAILING, EDITING, ADDING = 0, 1, 2, 3, 5


def fill(root):
    """A root that nobody has seen before: no index, no state."""
    (root / "src").mkdir(parents=True)
    (root / "notes.txt").write_text(NOTES)
    for number in range(20):
        (root / "src" / f"part{number}.rs").write_text(f"fn part{number}() {{}}\n")
    (root / "src" / "found.rs").write_text(f"fn one() {{}}\nfn {SEARCHED}() {{}}\n")


def server_environment(folder):
    """What a server gets in place of the environment of whoever starts it."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "MCP_READY_FILE": str(folder / "ready"),
            "PINTLE_STATE_DIR": str(folder / "state")}


def probe(binary, root, folder):
    """The message that the server itself gives for the call that fails."""
    folder.mkdir()
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "text.read", "arguments": script()[FAILING].arguments}},
    ]
    text = "".join(json.dumps(message) + "\n" for message in asked)
    done = subprocess.run([binary, "serve", "--root", root], input=text, env=server_environment(folder), capture_output=True,
                          text=True, timeout=60, check=True)
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if answer.get("id") == 2:
            return json.loads(answer["result"]["content"][0]["text"])["message"]
    sys.exit(f"the server did not answer: {done.stdout}{done.stderr}")


def descendants():
    """The processes that descend from this one."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, queue = [], [os.getpid()]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def end_descendants():
    """Ends whatever an agent left running, each process by its number."""
    deadline = time.monotonic() + 10
    while left := descendants():
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if time.monotonic() > deadline:
            sys.exit(f"processes {left} would not end")
        time.sleep(0.05)


def execute(commands, environment, context, output):
    """Runs commands to their end, or to the end of their time. Gives the last one's exit code, or None."""
    deadline = time.monotonic() + SECONDS
    code = None
    with open(output, "wb") as file:
        for command in commands:
            process = subprocess.Popen(command, cwd=context.root, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = process.wait(timeout=max(1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = None
            if code != 0:
                break
    return code


def agent_environment(context):
    """What an agent gets in place of the environment of whoever runs this."""
    home = context.home
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    node = Path(context.native("node-linux-*/bin/node")).parent
    return {
        "PATH": f"{home / 'bin'}:{node}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home), "TMPDIR": str(home / "tmp"), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1",
        "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"), "XDG_CACHE_HOME": str(home / ".cache"),
    }


def documented(page, title):
    """What a page says to do to add the server to an agent: the last code in the agent's row."""
    for line in (DOCS / page).read_text().splitlines():
        if line.startswith(f"| {title} | "):
            return re.findall(r"`([^`]+)`", line)[-1]
    sys.exit(f"docs/{page} has no row for {title}")


@contextlib.contextmanager
def stdio(binary, title, context, folder):
    """Lets the agent start the server itself. Gives what the agent's environment has because of it."""
    context.program("pintle", [sys.executable, str(HERE / "tap.py"), str(folder), binary])
    context.documented = documented("clients.md", title)
    yield {}


@contextlib.contextmanager
def http(binary, title, context, folder, scopes):
    """Starts a server, and mints a token with these scopes if there are any."""
    folder.mkdir()
    environment = server_environment(folder)
    text = documented("access.md", title)
    token = {}
    if scopes:
        mint = [binary, "token", "mint", *(word for scope in scopes for word in ("--scope", scope))]
        done = subprocess.run(mint, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True)
        token = {"MY_TOKEN": done.stdout.strip()}
    else:
        text = re.sub(TOKEN_OPTION, "", text)
    command = [binary, "serve", "--http", "127.0.0.1:0", "--root", str(context.root)]
    with open(folder / "stderr", "wb") as errors:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=errors)
    tap = HttpTap(folder, listening(server, folder / "stderr"))
    context.documented = text.replace("127.0.0.1:9999", tap.address)
    try:
        yield token
    finally:
        tap.close()
        server.terminate()
        server.wait(timeout=60)


def listening(server, errors):
    """The port that a server says it listens on."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        if said := re.search(r"mcp:ready mode=http addr=127\.0\.0\.1:(\d+)", errors.read_text()):
            return int(said[1])
        time.sleep(0.05)
    sys.exit(f"the server did not start: {errors.read_text()}")


def plain(value):
    """What a model reads of a value, without the quoting of however many layers of JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\\\"'`]", "", text)


def frames(path):
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return []
    lines = [line.removeprefix("data: ") for line in lines]
    return [json.loads(line) for line in lines if line.startswith("{")]


def client_info(asked):
    """What the agent said of itself to the server: its name and the revision it speaks."""
    for frame in asked:
        params = frame.get("params") or {}
        if frame.get("method") == "initialize":
            return params.get("clientInfo", {}).get("name"), params.get("protocolVersion")
        meta = params.get("_meta") or {}
        info = meta.get("io.modelcontextprotocol/clientInfo")
        if info:
            return info.get("name"), meta.get("io.modelcontextprotocol/protocolVersion")
    return None, None


def listing(answered):
    """The names of the tools that the server listed to the agent."""
    for frame in answered:
        tools = (frame.get("result") or {}).get("tools")
        if tools is not None:
            return [tool["name"] for tool in tools]
    return []


def listed_as(identifier, name):
    """Whether the data file has this name for this client."""
    data = json.loads((HERE / "../../crates/wire/src/mcp/clients.json").read_text())
    for client in data["clients"]:
        if client["id"] == identifier:
            return any(name == pattern or pattern.endswith("*") and name.startswith(pattern[:-1])
                       for pattern in client["clientInfo"])
    return False


class Outcome:
    """What a run of an agent left: what its model was shown, what it said to the server, what is in the files."""

    def __init__(self, model, message, root, results, code, seconds):
        self.shown = [request for request in model.requests if request.tools]
        self.message = message
        self.files = {path: (root / path).read_text() if (root / path).is_file() else None
                      for path in ("notes.txt", "made/new.txt")}
        self.info = client_info(frames(results / "to-server"))
        self.listed = listing(frames(results / "from-server"))
        self.results = results
        self.code = code
        self.seconds = seconds

    def shown_of(self, step):
        """What the model was last shown of a call's result, and whether it was marked as an error."""
        for request in reversed(self.shown):
            if step in request.results:
                return request.results[step]
        return None, None

    def result(self, step):
        content, marked = self.shown_of(step)
        return None if content is None else plain(content), marked

    def visible(self):
        """The tools that the model was told of, at once or by name: what to call → the tool's own name."""
        visible = {}
        for request in self.shown:
            for name, namespace, _ in request.tools:
                visible[f"{namespace} {name}" if namespace else name] = name
            visible.update({name: name for name in request.deferred})
        return {called: name for called, name in visible.items()
                if "pintle" in called or any(squeezed(name) == squeezed(tool) for tool in self.listed)}

    def output(self, name):
        return (self.results / name).read_text(errors="replace")


def shown_as(tool, called):
    return re.search(rf"(^|[ _-]){re.escape(tool)}$", called)


def check(identifier, outcome):
    """What each check found: check → None where it holds, else what is wrong. Also how `text_read` is called."""
    found = {}
    shown, listed, ours = outcome.shown, outcome.listed, outcome.visible()

    loaded = {tool for tool in listed if shown and any(shown_as(tool, name) for name, _, _ in shown[0].tools)}
    refused = [name for name in ours.values() if not NAME.match(name)]
    unexpected = sorted(set(listed) - set(TOOLS))
    unlisted = sorted(set(TOOLS) - set(listed))
    absent = [tool for tool in listed if not any(shown_as(tool, called) for called in ours)]
    late = sorted(LOADED - loaded)
    if not ours:
        found["tools"] = "no tool of the server reached the model"
    else:
        wrong = {"names that the models' APIs refuse": refused, "listed, but not expected": unexpected,
                 "expected, but not listed": unlisted, "not shown under their own names": absent,
                 "not loaded at once": late}
        said = [f"{what}: {', '.join(names[:3])}{', …' if names[3:] else ''}" for what, names in wrong.items() if names]
        found["tools"] = "; ".join(said) or None

    search, _ = outcome.result(SEARCH)
    if search is None:
        found["search"] = "no result reached the model"
    elif "src/found.rs" not in search or SEARCHED not in search:
        found["search"] = f"the hit is not shown: {search[:160]}"
    else:
        found["search"] = None

    read, _ = outcome.result(READING)
    count = max((plain(request.body).count(READ) for request in shown), default=0)
    if read is None:
        found["read"] = "no result reached the model"
    else:
        found["read"] = None if count == 1 else f"shown {count} times"

    error, marked = outcome.result(FAILING)
    if error is None:
        found["error"] = "no result reached the model"
    elif "NOT_FOUND" not in error or plain(outcome.message) not in error:
        found["error"] = f"not the server's message: {error[:200]}"
    elif marked is False:
        found["error"] = "the message is not marked as an error"
    else:
        found["error"] = None

    notes, made = outcome.files.values()
    if notes != EDITED:
        found["edit"] = "notes.txt was not edited" if notes == NOTES else f"notes.txt has {notes!r}"
    else:
        found["edit"] = None if made == CREATED else "made/new.txt was not created"

    added, _ = outcome.result(ADDING)
    if added is None:
        found["added"] = "no result reached the model"
    else:
        found["added"] = None if SEARCHED in added and "total_lines" in added else f"the call fails: {added[:300]}"

    name = outcome.info[0]
    found["known"] = None if name and listed_as(identifier, name) else f"it calls itself {name!r}"
    found["end"] = ended(outcome)
    example = next((called for called in ours if squeezed(called).count("text_read")), None)
    return found, example


def ended(outcome):
    if outcome.code is None:
        return f"the agent did not end within {SECONDS} s"
    return f"the agent ended with exit code {outcome.code}" if outcome.code else None


def check_scope(outcome):
    """With a scope to write one folder: the edit elsewhere is refused, and what follows works."""
    refusal, marked = outcome.result(EDITING)
    notes, made = outcome.files.values()
    if refusal is None:
        return "no result reached the model"
    if plain(MISSING) not in refusal or marked is False:
        return f"not the server's message, or not marked as an error: {refusal[:300]}"
    if notes != NOTES:
        return "notes.txt was edited"
    return ended(outcome) if made == CREATED else "made/new.txt was not created"


def check_read_only(outcome):
    expected = set(TOOLS) - WRITING
    seen = {tool for tool in TOOLS if any(shown_as(tool, called) for called in outcome.visible())}
    if seen != expected:
        return f"shown in spite of it, or missing: {', '.join(sorted(seen ^ expected))}"
    read, _ = outcome.result(READING)
    return ended(outcome) if read and READ in read else "notes.txt was not read"


def check_no_token(outcome):
    if outcome.visible():
        return f"the model is shown {', '.join(outcome.visible())}"
    return ended(outcome) if outcome.files["notes.txt"] == NOTES else "notes.txt was edited"


def drive(agent, arguments, name, transport):
    """Runs an agent once, from an empty home to its end."""
    identifier, title, _, start = agent
    results = Path(arguments.results) / identifier / name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    # The server's name is not in the path, so that what a model is shown of the server can be found by it.
    folder = Path(tempfile.mkdtemp(prefix="agents-"))
    try:
        root = folder / "root"
        fill(root)
        message = probe(arguments.binary, root, folder / "probe")
        model = Model(script())
        context = Context(arguments.packages, folder / "home", root, model.port)
        begun = time.monotonic()
        with transport(arguments.binary, title, context, folder / "server") as added:
            setup = start(context)
            environment = agent_environment(context) | setup.environment | added
            code = execute([*setup.before, setup.command], environment, context, results / "output.txt")
            if arguments.http:
                execute([[setup.command[0], "mcp", "list"]], environment, context, results / "mcp-list.txt")
        seconds = time.monotonic() - begun
        end_descendants()
        model.close()
        with open(results / "requests.jsonl", "w") as output:
            for request in model.requests:
                output.write(json.dumps({"api": request.api, "body": request.body}, ensure_ascii=False) + "\n")
        for record in ("to-server", "from-server", "exchanges", "stderr"):
            if (folder / "server" / record).exists():
                shutil.copy(folder / "server" / record, results / record)
        return Outcome(model, message, root, results, code, seconds)
    finally:
        end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def run(agent, arguments):
    """Makes an agent's row: what the checks found, and what else the tables say."""
    identifier, title, package, _ = agent
    version = json.loads((Path(arguments.packages) / "node_modules" / package / "package.json").read_text())["version"]
    if not arguments.http:
        outcomes = [drive(agent, arguments, "stdio", stdio)]
        found, example = check(identifier, outcomes[0])
        name, revision = outcomes[0].info
        cells = [f"`{name}`", revision, f"`{example}`", *(yes(found[column]) for column in TITLES)]
    else:
        outcomes = [drive(agent, arguments, name, functools.partial(http, scopes=scopes))
                    for name, scopes in RUNS.items()]
        everything, one_folder, read_only, no_token = outcomes
        found, _ = check(identifier, everything)
        cells = [everything.info[1], yes(next((wrong for wrong in found.values() if wrong), None))]
        found |= {"scope": check_scope(one_folder), "read-only": check_read_only(read_only),
                  "token": check_no_token(no_token)}
        cells += [excerpt(one_folder.shown_of(EDITING)[0], re.compile(re.escape(MISSING))), yes(found["read-only"]),
                  as_code(server_status(no_token)), excerpt(no_token.output("output.txt"), REASON),
                  excerpt([request.body for request in no_token.shown], SERVER)]
    return {"title": title, "version": version, "cells": cells, "found": found,
            "seconds": sum(outcome.seconds for outcome in outcomes)}


def yes(wrong):
    return "yes" if wrong is None else "**no**"


def as_code(text):
    """A text as code, in a cell of a table."""
    return f"`` {text} ``".replace("|", "\\|")


def texts(value):
    """The texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def excerpt(value, pattern):
    """The line of the first match in a value's texts, cut before and after, for a cell of a table."""
    for text in texts(value):
        if match := pattern.search(text):
            before = text[:match.start()].rpartition("\n")[2].lstrip()
            after = text[match.end():].partition("\n")[0]
            start = "… " + before[-60:].partition(" ")[2] if before[60:] else before
            return as_code(start + match[0] + (" …" if after else ""))
    return "nothing"


def server_status(outcome):
    """What `mcp list` says of the server, on one line."""
    text = re.sub(r"\x1b\[[0-9;]*m|[│●]", "", outcome.output("mcp-list.txt"))
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9999", text)
    paragraph = next((part for part in re.split(r"\n\s*\n", text) if "pintle" in part), "")
    return " ".join(paragraph.split())


STDIO_COLUMNS = ["`clientInfo.name`", "revision", "`text_read` is called", *TITLES.values()]
HTTP_COLUMNS = ["revision", "with `write:/` it reads and edits", "a scope is missing: the model is shown",
                "with `read:/` only tools that read are shown", "without a token: its `mcp list` says",
                "without a token: its run says why", "without a token: the model is shown"]


def table(columns, rows):
    """The outcome for people and for the documentation."""
    lines = [["agent", "version", *columns], ["---"] * (len(columns) + 2)]
    lines += [[row["title"], row["version"], *row["cells"]] for row in rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def document(path, mark, text, binary):
    """Puts the table between the two marks of the documentation."""
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    today = datetime.date.today()
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    head, _, rest = path.read_text().partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        sys.exit(f"{path} does not have the marks `{begin.strip()}` and `{end}`")
    said = f"Seen on {today.day} {today:%B %Y} with `{version}`:\n\n"
    path.write_text(f"{head}{begin}{said}{text}\n{end}{tail}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("agents", nargs="*")
    arguments = parser.parse_args()
    agents = [agent for agent in AGENTS if not arguments.http or agent[0] in OVER_HTTP]
    known = [agent[0] for agent in agents]
    for name in arguments.agents:
        if name not in known:
            parser.error(f"there is no agent {name!r}; the agents are {', '.join(known)}")

    # What an agent leaves behind becomes a child of this process, so that it can be found and ended.
    subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(subreaper, 1, 0, 0, 0)

    # As in a keyboard interrupt, what is temporary is removed before the end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    rows = []
    for agent in agents:
        if arguments.agents and agent[0] not in arguments.agents:
            continue
        row = run(agent, arguments)
        rows.append(row)
        failed = {name: wrong for name, wrong in row["found"].items() if wrong is not None}
        print(f"{row['title']} {row['version']}: {len(row['found']) - len(failed)} of {len(row['found'])} checks, "
              f"{row['seconds']:.0f} s", flush=True)
        for name, wrong in failed.items():
            print(f"  FAILED {(TITLES | OTHER_TITLES)[name]}: {wrong}", flush=True)
    mark, columns = ("agents over http", HTTP_COLUMNS) if arguments.http else ("agents", STDIO_COLUMNS)
    text = table(columns, rows)
    print(f"\n{text}")
    # A table of some of the agents would replace one of all.
    if arguments.docs and not arguments.agents:
        document(arguments.docs, mark, text, arguments.binary)
    sys.exit(any(found is not None for row in rows for found in row["found"].values()))


if __name__ == "__main__":
    main()
