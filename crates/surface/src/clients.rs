//! What is known of clients, as data. A source is the client's documentation, its source or a tracker, or a measurement
//! with the version that is named. Clients change: a rule is worth what its source is.

use crate::client::{Check, Client, ClientRule, Severity};

/// The characters that most names may have besides ASCII letters and digits.
const DASHES: &str = "_-";

const UNIONS: &[&str] = &["oneOf", "anyOf", "allOf"];

const fn error(check: Check, effect: &'static str, source: &'static str) -> ClientRule {
    ClientRule { check, severity: Severity::Error, effect, source }
}

const fn warning(check: Check, effect: &'static str, source: &'static str) -> ClientRule {
    ClientRule { check, severity: Severity::Warning, effect, source }
}

const ROUNDED_NUMBERS: ClientRule = warning(
    Check::UnsafeNumber,
    "is written in JavaScript, which rounds the number",
    "anthropics/claude-code issues 48332 and 47951; RFC 8259, section 6",
);

const SDK_INPUT_ROOT: ClientRule = error(
    Check::InputRoot,
    "refuses the whole list of tools",
    "MCP specification 2025-11-25, Tool; anthropics/claude-code issue 88049 and zereight/gitlab-mcp issue 286: the official TypeScript SDK checks the list as a whole",
);

const SDK_OUTPUT_ROOT: ClientRule = error(
    Check::OutputRoot,
    "refuses the whole list of tools",
    "MCP specification 2025-11-25, Tool; kenn-io/msgvault issue 626: the official TypeScript SDK checks the list as a whole",
);

const SPECIFIED_INPUT_ROOT: ClientRule = warning(
    Check::InputRoot,
    "may refuse the tool",
    "MCP specification 2025-11-25, Tool: the type of inputSchema is the constant \"object\"",
);

const SPECIFIED_OUTPUT_ROOT: ClientRule = warning(
    Check::OutputRoot,
    "may refuse the tool",
    "MCP specification 2025-11-25, Tool: the type of outputSchema is the constant \"object\"",
);

const ROOT_UNION_BY_MODEL: ClientRule = warning(
    Check::RootUnion(UNIONS),
    "fails on every prompt with a model of Anthropic, whose API refuses such a schema",
    "anthropics/claude-code issue 40075; nspady/google-calendar-mcp issue 39: the OpenAI API refuses it too",
);

const LONG_NAME_BY_MODEL: ClientRule = warning(
    Check::NameLength(64),
    "fails on every prompt with a model of OpenAI, whose API refuses a longer name",
    "LaurieWired/GhidraMCP pull request 116; danny-avila/LibreChat issue 7435",
);

const ARRAY_ITEMS_BY_MODEL: ClientRule = warning(
    Check::ArrayItems,
    "fails on every prompt with a model of Gemini, whose API refuses such an array",
    "Skyvern-AI/skyvern issue 8611; cline/cline issue 7339",
);

/// Every client that is known.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        title: "Claude Code",
        prefix: "mcp__SERVER__",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters by `_`; versions of 2025 failed on every prompt",
                "measured with 2.1.197; modelcontextprotocol/modelcontextprotocol issue 1345",
            ),
            error(
                Check::NameLength(128),
                "fails on every prompt",
                "modelcontextprotocol/modelcontextprotocol issue 1345: the Anthropic API takes 128 characters, prefix included",
            ),
            warning(
                Check::NameLength(64),
                "refers to deferred tools by names of up to 64 characters",
                "cloudflare/skills issue 11; metatool-ai/metamcp issue 249",
            ),
            warning(
                Check::DuplicateName(Some(DASHES)),
                "gives both the same name",
                "measured with 2.1.197: other characters are replaced by `_`",
            ),
            warning(
                Check::ListSize(100_000),
                "warns of definitions over 25,000 tokens, at some 4 characters each, where it does not defer them",
                "anthropics/claude-code issue 12241; getsentry/XcodeBuildMCP issue 153",
            ),
            warning(
                Check::DescriptionLength(2048),
                "cuts it there, and the model never sees the rest",
                "anthropics/claude-code issues 41593 and 87650",
            ),
            warning(
                Check::InstructionsLength(2048),
                "cuts them there, and the model never sees the rest",
                "documentation, Connect Claude Code to tools via MCP, tool search: 2 KB",
            ),
            error(
                Check::RootUnion(UNIONS),
                "drops the tool without a word; older versions fail on every prompt",
                "anthropics/claude-code issues 95504, 45106 and 40075",
            ),
            SDK_INPUT_ROOT,
            error(
                Check::OutputRoot,
                "refuses the tools",
                "Wynelson94/longhand issue 10: outputSchema.type has to be \"object\"",
            ),
            error(
                Check::InvalidSchema,
                "fails on every prompt once the tool is loaded",
                "anthropics/claude-code issues 31800 and 44364",
            ),
            error(
                Check::ArgumentName("_.-", 64),
                "fails on every prompt once the tool is loaded",
                "anthropics/claude-code issue 79418",
            ),
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        prefix: "",
        rules: &[
            error(
                Check::NameCharacters(DASHES),
                "withholds all tools from the conversation",
                "l22-io/orchard-mcp issue 14; loomle/loomle issue 168; malloydata/publisher pull request 543",
            ),
            error(Check::NameLength(64), "fails on every prompt", "mims-harvard/ToolUniverse issue 3"),
            error(Check::RootUnion(UNIONS), "fails on every prompt", "dearlordylord/huly-mcp issue 66"),
            error(Check::InputRoot, "fails on every prompt", "dearlordylord/huly-mcp issue 66"),
            SPECIFIED_OUTPUT_ROOT,
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "cursor",
        title: "Cursor",
        prefix: "SERVER",
        rules: &[
            error(
                Check::NameCharacters(DASHES),
                "filters the tool out",
                "webstudio-is/webstudio issue 5960; bavix/gripmock issue 875",
            ),
            warning(Check::NameCharacters("_"), "replaces `-` by `_`", "webflow/mcp-server pull request 13"),
            error(
                Check::NameLength(59),
                "filters the tool out",
                "ComposioHQ/composio issue 2788; PostHog/posthog pull request 51483: server and tool together stay under 60 characters",
            ),
            warning(
                Check::ToolCount(40),
                "warns above 40 tools of all servers together (80 in later versions) and may leave some out",
                "anyproto/anytype-mcp issue 5; keanemind/jj-mcp-server issue 1; DaxianLee/cocos-mcp-server issue 11",
            ),
            error(Check::InputRoot, "refuses the whole list of tools", "zereight/gitlab-mcp issue 286"),
            error(
                Check::OutputRoot,
                "refuses the whole list of tools",
                "Anil-matcha/awesome-gpt-6-astra issue 11",
            ),
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "vscode",
        title: "VS Code",
        prefix: "mcp_SERVER_",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "warns and replaces other characters",
                "jedisct1/openapi-mcp issue 9; sxhxliang/mcp-access-point issue 10",
            ),
            warning(
                Check::NameLength(64),
                "shortens it, or fails on every prompt",
                "microsoft/vscode issue 243602",
            ),
            error(
                Check::ToolCount(128),
                "takes 128 tools of all servers together in a request",
                "documentation, chat; microsoft/vscode-copilot-release issues 9375 and 11653",
            ),
            error(
                Check::ArrayItems,
                "refuses the tool: \"tool parameters array type must have items\"",
                "microsoft/vscode issues 246119 and 248810",
            ),
            ROOT_UNION_BY_MODEL,
            SPECIFIED_INPUT_ROOT,
            SPECIFIED_OUTPUT_ROOT,
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "codex",
        title: "Codex",
        prefix: "mcp__SERVER__",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters by `_`",
                "measured with 0.169.0",
            ),
            LONG_NAME_BY_MODEL,
            warning(Check::DuplicateName(Some(DASHES)), "gives both the same name", "measured with 0.169.0"),
            warning(
                Check::Union("oneOf"),
                "shows the model a text in its place",
                "openai/codex issues 20604 and 13768",
            ),
            SPECIFIED_INPUT_ROOT,
            SPECIFIED_OUTPUT_ROOT,
        ],
    },
    Client {
        name: "gemini-cli",
        title: "Gemini CLI",
        prefix: "mcp_SERVER_",
        rules: &[
            warning(
                Check::NameCharacters("_-.:"),
                "replaces other characters by `_`",
                "documentation, MCP servers with the Gemini CLI, tool discovery; source of 0.61.0",
            ),
            warning(
                Check::NameLength(63),
                "cuts out the middle",
                "documentation, MCP servers with the Gemini CLI, tool discovery; source of 0.61.0",
            ),
            warning(
                Check::DuplicateName(Some("_-.:")),
                "gives both the same name",
                "documentation, MCP servers with the Gemini CLI, tool discovery",
            ),
            error(
                Check::ToolCount(512),
                "fails on every prompt",
                "google-gemini/gemini-cli issues 19083 and 25440",
            ),
            SDK_INPUT_ROOT,
            SDK_OUTPUT_ROOT,
            error(
                Check::ArrayItems,
                "fails on every prompt",
                "Skyvern-AI/skyvern issue 8611: the Gemini API answers 400",
            ),
            warning(
                Check::EnumType,
                "fails on every prompt in versions of 2025",
                "google-gemini/gemini-cli issue 4127; microsoft/azure-devops-mcp issue 145",
            ),
            warning(
                Check::DollarSchema,
                "removes it; some versions fail on every prompt",
                "documentation, MCP servers with the Gemini CLI, schema processing; asbis/shapeitup release 1.6.2",
            ),
            warning(
                Check::Reference,
                "leaves out the tool or fails on every prompt where it cannot resolve one",
                "google-gemini/gemini-cli issue 13326",
            ),
            warning(
                Check::OutputSchema,
                "checks errors against it, and shows the model the mismatch instead of the error",
                "measured with 0.61.0",
            ),
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "opencode",
        title: "opencode",
        prefix: "SERVER_",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters by `_`",
                "measured with 1.18.33",
            ),
            warning(
                Check::NameLength(64),
                "fails on every prompt with a model of OpenAI, whose API refuses a longer name",
                "anomalyco/opencode issue 3523",
            ),
            warning(Check::DuplicateName(Some(DASHES)), "gives both the same name", "measured with 1.18.33"),
            warning(
                Check::ToolCount(128),
                "fails on every prompt with a model of OpenAI or Copilot",
                "anomalyco/opencode issues 1814 and 4909",
            ),
            error(
                Check::RootUnion(UNIONS),
                "fails on every prompt with a model of Anthropic",
                "anomalyco/opencode issues 35516 and 47543",
            ),
            warning(
                Check::Reference,
                "fails on every prompt with a model of Gemini",
                "anomalyco/opencode issue 12295",
            ),
            SDK_INPUT_ROOT,
            SDK_OUTPUT_ROOT,
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "copilot-cli",
        title: "Copilot CLI",
        prefix: "SERVER-",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters by `-`; older versions fail on every prompt",
                "measured with 1.0.102; github/copilot-cli issues 2581 and 1879",
            ),
            LONG_NAME_BY_MODEL,
            ROOT_UNION_BY_MODEL,
            SPECIFIED_INPUT_ROOT,
            SPECIFIED_OUTPUT_ROOT,
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        prefix: "mcp0_",
        rules: &[
            error(Check::NameCharacters(DASHES), "refuses the tool", "domscribe issue 18"),
            LONG_NAME_BY_MODEL,
            error(
                Check::ToolCount(100),
                "takes 100 tools of all servers together",
                "documentation, Cascade, Model Context Protocol (50 in 2025: Zhwt/go-mcp-mysql issue 3)",
            ),
            error(
                Check::ArrayItems,
                "refuses the schema: \"array schema missing items\"",
                "DaxianLee/cocos-mcp-server issue 14",
            ),
            error(
                Check::InvalidSchema,
                "refuses the server's tools: \"failed to validate tool input schema\"",
                "SylphxAI/pdf-reader-mcp issue 107; BetterThanTomorrow/calva-backseat-driver issue 2",
            ),
            error(Check::InputRoot, "refuses the whole list of tools", "zereight/gitlab-mcp issue 286"),
            SPECIFIED_OUTPUT_ROOT,
        ],
    },
    Client {
        name: "cline",
        title: "Cline",
        prefix: "SERVER__",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters and puts a hash at the end",
                "measured with 3.0.65",
            ),
            warning(
                Check::NameLength(64),
                "cuts it and puts a hash at the end",
                "cline/cline pull request 11885",
            ),
            ROOT_UNION_BY_MODEL,
            ARRAY_ITEMS_BY_MODEL,
            SDK_INPUT_ROOT,
            SDK_OUTPUT_ROOT,
            warning(
                Check::OutputSchema,
                "shows the model a structured result twice, as `content` and as `structuredContent`",
                "measured with 3.0.65",
            ),
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "zed",
        title: "Zed",
        prefix: "",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters",
                "zed-industries/zed pull request 32609",
            ),
            warning(Check::NameLength(64), "cuts it", "zed-industries/zed pull request 32609"),
            warning(
                Check::ToolCount(128),
                "fails on every prompt with a model of OpenAI",
                "zed-industries/zed issue 32946",
            ),
            ROOT_UNION_BY_MODEL,
            SPECIFIED_INPUT_ROOT,
            SPECIFIED_OUTPUT_ROOT,
        ],
    },
    Client {
        name: "continue",
        title: "Continue",
        prefix: "",
        rules: &[
            error(
                Check::NameCharacters(DASHES),
                "sends the name as it is to the model's API, which refuses it",
                "measured with 1.5.47; openai/codex issue 8174",
            ),
            LONG_NAME_BY_MODEL,
            ROOT_UNION_BY_MODEL,
            SDK_INPUT_ROOT,
            SDK_OUTPUT_ROOT,
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "qwen-code",
        title: "Qwen Code",
        prefix: "mcp__SERVER__",
        rules: &[
            warning(
                Check::NameCharacters(DASHES),
                "replaces other characters by `_`",
                "a fork of Gemini CLI: documentation, MCP servers, tool discovery",
            ),
            warning(
                Check::NameLength(63),
                "cuts out the middle",
                "a fork of Gemini CLI: documentation, MCP servers, tool discovery; QwenLM/Qwen3-VL issue 2069: the API refuses more than 64 characters",
            ),
            SDK_INPUT_ROOT,
            SDK_OUTPUT_ROOT,
            warning(
                Check::OutputSchema,
                "checks errors against it, and shows the model the mismatch instead of the error",
                "a fork of Gemini CLI, measured with 0.61.0",
            ),
            ROUNDED_NUMBERS,
        ],
    },
    Client {
        name: "anthropic-api",
        title: "The Anthropic API",
        prefix: "",
        rules: &[
            error(
                Check::NameCharacters(DASHES),
                "refuses the whole request",
                "modelcontextprotocol/modelcontextprotocol issue 1345; microsoft/wassette issue 56",
            ),
            error(
                Check::NameLength(128),
                "refuses the whole request",
                "modelcontextprotocol/modelcontextprotocol issue 1345",
            ),
            warning(
                Check::NameLength(64),
                "refuses a reference to the tool where tools are deferred",
                "cloudflare/skills issue 11; metatool-ai/metamcp issue 249",
            ),
            error(
                Check::DuplicateName(None),
                "refuses the whole request: \"Tool names must be unique\"",
                "onyx-dot-app/onyx issue 9229",
            ),
            error(
                Check::RootUnion(UNIONS),
                "refuses the whole request",
                "anthropics/claude-code issue 40075; dearlordylord/huly-mcp issue 66",
            ),
            error(Check::InputRoot, "refuses the whole request", "dearlordylord/huly-mcp issue 66"),
            error(
                Check::InvalidSchema,
                "refuses the whole request",
                "anthropics/claude-code issue 31800: the schema has to match JSON Schema 2020-12",
            ),
            error(
                Check::ArgumentName("_.-", 64),
                "refuses the whole request",
                "ComposioHQ/composio issue 3500; anthropics/claude-code issue 79418",
            ),
        ],
    },
    Client {
        name: "openai-api",
        title: "The OpenAI API",
        prefix: "",
        rules: &[
            error(
                Check::NameCharacters(DASHES),
                "refuses the whole request",
                "openai/codex issue 8174; Vortiago/mcp-azure-devops pull request 30",
            ),
            error(
                Check::NameLength(64),
                "refuses the whole request",
                "LaurieWired/GhidraMCP pull request 116; danny-avila/LibreChat issue 7435",
            ),
            error(
                Check::ToolCount(128),
                "refuses the whole request",
                "zed-industries/zed issue 32946; 0x4m4/hexstrike-ai issue 29",
            ),
            warning(
                Check::DescriptionLength(1024),
                "refuses the whole request with some models",
                "getsentry/sentry-mcp issue 106; OpenHands/OpenHands issue 7167",
            ),
            error(
                Check::RootUnion(&["oneOf", "anyOf", "allOf", "enum", "const", "not"]),
                "refuses the whole request",
                "nspady/google-calendar-mcp issue 39; CherryHQ/stella issue 781",
            ),
            error(
                Check::InputRoot,
                "refuses the whole request",
                "chatanywhere/GPT_API_free issue 403; enechange/collmbo pull request 384",
            ),
            error(
                Check::ArrayItems,
                "refuses the whole request: \"array schema missing items\"",
                "spacelift-io/spacectl issue 402; ogx-ai/ogx pull request 3602",
            ),
            warning(
                Check::Nesting(10),
                "refuses it in strict mode",
                "documentation, Structured Outputs, supported schemas",
            ),
            warning(
                Check::EnumSize(1000),
                "refuses it in strict mode",
                "documentation, Structured Outputs, supported schemas",
            ),
            warning(
                Check::PropertyCount(5000),
                "refuses it in strict mode",
                "documentation, Structured Outputs, supported schemas",
            ),
        ],
    },
    Client {
        name: "gemini-api",
        title: "The Gemini API",
        prefix: "",
        rules: &[
            error(
                Check::NameCharacters("_-.:"),
                "refuses the whole request",
                "reference, FunctionDeclaration.name",
            ),
            error(
                Check::NameStart,
                "refuses the whole request",
                "Vertex AI reference, FunctionDeclaration.name; cline/cline issue 7339",
            ),
            error(
                Check::NameLength(64),
                "refuses the whole request",
                "reference, FunctionDeclaration.name (128 in later versions of Vertex AI)",
            ),
            error(
                Check::ToolCount(512),
                "refuses the whole request",
                "google-gemini/gemini-cli issues 19083 and 25440",
            ),
            error(
                Check::ArrayItems,
                "refuses the whole request in the field `parameters`",
                "Skyvern-AI/skyvern issue 8611; boshyxd/robloxstudio-mcp issue 72",
            ),
            error(
                Check::TypeList,
                "refuses the whole request in the field `parameters`",
                "zed-industries/zed issue 44875; t8y2/dbx issue 6233",
            ),
            error(
                Check::EnumType,
                "refuses the whole request in the field `parameters`",
                "router-for-me/CLIProxyAPI issue 1075; diegosouzapw/OmniRoute pull request 760",
            ),
            warning(
                Check::DollarSchema,
                "refuses it in the field `parameters`, unless the program that calls it removes it",
                "promptfoo/promptfoo pull request 4200",
            ),
            warning(
                Check::Reference,
                "refuses one that it cannot resolve or that stands beside other keywords",
                "anomalyco/opencode issue 12295; google-gemini/gemini-cli issue 13326",
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_client_has_a_name_of_its_own_and_rules_with_sources() {
        let names: BTreeSet<_> = CLIENTS.iter().map(|client| client.name).collect();
        assert_eq!(names.len(), CLIENTS.len());
        for client in CLIENTS {
            assert!(!client.rules.is_empty(), "{} has no rules", client.name);
            for rule in client.rules {
                assert!(!rule.source.is_empty() && !rule.effect.is_empty(), "{}: {rule:?}", client.name);
            }
        }
    }

    #[test]
    fn the_more_severe_of_two_rules_with_one_name_is_first() {
        for client in CLIENTS {
            for pair in client.rules.windows(2).filter(|pair| pair[0].check.id() == pair[1].check.id()) {
                assert!(pair[0].severity > pair[1].severity, "{}: {}", client.name, pair[0].check.id());
            }
            let ids: Vec<_> = client.rules.iter().map(|rule| rule.check.id()).collect();
            let mut grouped = ids.clone();
            grouped.dedup();
            let distinct: BTreeSet<_> = ids.iter().collect();
            assert_eq!(grouped.len(), distinct.len(), "{} has rules of one name apart", client.name);
        }
    }
}
