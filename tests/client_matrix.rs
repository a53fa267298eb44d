//! Which clients can use what the server lists: the rules of each client, stored as data, are checked against its list.
//!
//! The data file names the source of each rule. `scripts/agents` runs some of the same clients.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Server, Setup, http::modern};

const DATA: &str = include_str!("../crates/wire/src/mcp/clients.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    #[serde(rename = "about")]
    _about: Vec<String>,
    clients: Vec<Client>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    id: String,
    name: String,
    #[serde(rename = "clientInfo")]
    names: Vec<String>,
    results: Results,
    /// The client's prefix for the names of tools.
    prefix: String,
    /// Arguments that the client adds to the schema of every tool and sends to a server that does not know them.
    #[serde(default, rename = "addedArguments")]
    added_arguments: Vec<String>,
    sources: Sources,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Results {
    Json,
    Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    #[serde(rename = "clientInfo")]
    names: String,
    results: String,
    #[serde(rename = "addedArguments")]
    added_arguments: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    rule: RuleName,
    value: Option<Value>,
    source: String,
}

#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleName {
    NamePattern,
    NameLength,
    ToolCount,
    DescriptionLength,
    InstructionsLength,
    NoRootUnion,
    RootObject,
    NoDollarSchema,
    ArrayItems,
    StringEnums,
    SafeNumbers,
    NoOutputSchema,
    AlwaysLoaded,
}

/// The tools and instructions that a client receives when it connects.
struct Listing {
    instructions: String,
    tools: Vec<Value>,
}

fn clients() -> Vec<Client> {
    let data: Data = serde_json::from_str(DATA).expect("the data file has the shape that it describes");
    data.clients
}

impl Client {
    /// Names that the client may report. A prefix stands for one name that begins with it.
    fn names(&self) -> impl Iterator<Item = String> {
        self.names.iter().map(|name| match name.strip_suffix('*') {
            Some(prefix) => format!("{prefix}pintle"),
            None => name.clone(),
        })
    }

    /// What the client would refuse, cut off or misinterpret.
    fn refusals(&self, listing: &Listing) -> Vec<String> {
        self.rules.iter().filter_map(|rule| rule.refusal(&self.prefix, listing)).collect()
    }
}

impl Rule {
    /// The limit that the rule sets.
    fn limit(&self) -> usize {
        let value = self.value.as_ref().and_then(Value::as_u64);
        usize::try_from(value.unwrap_or_else(|| panic!("{:?} needs a number", self.rule)))
            .expect("a small number")
    }

    /// A description, in one line, of how a listing breaks the rule.
    fn refusal(&self, prefix: &str, listing: &Listing) -> Option<String> {
        let of_list = match self.rule {
            RuleName::ToolCount if listing.tools.len() > self.limit() => {
                Some(listing.tools.len().to_string())
            }
            RuleName::InstructionsLength if listing.instructions.chars().count() > self.limit() => {
                Some(listing.instructions.chars().count().to_string())
            }
            _ => None,
        };
        let of_tools = listing.tools.iter().filter_map(|tool| {
            let name = tool["name"].as_str().expect("a name");
            self.refuses(prefix, name, tool).map(|found| format!("{name} ({found})"))
        });
        let found: Vec<String> = of_list.into_iter().chain(of_tools).collect();
        (!found.is_empty()).then(|| format!("{:?}: {}; source: {}", self.rule, found.join(", "), self.source))
    }

    /// A description of how a tool breaks the rule.
    fn refuses(&self, prefix: &str, name: &str, tool: &Value) -> Option<String> {
        let input = &tool["inputSchema"];
        let output = tool.get("outputSchema");
        let schemas = || [Some(input), output].into_iter().flatten();
        // A rule about a part of a schema is checked in the input and in the output.
        let anywhere = |finds: &dyn Fn(&Value) -> Option<String>| {
            schemas().find_map(|schema| subschemas(schema).into_iter().find_map(finds))
        };
        match self.rule {
            RuleName::ToolCount | RuleName::InstructionsLength => None,
            RuleName::NamePattern => {
                let pattern = self.value.as_ref().expect("a pattern");
                let schema = json!({"type": "string", "pattern": pattern});
                (!jsonschema::is_valid(&schema, &json!(name))).then(|| format!("does not match {pattern}"))
            }
            RuleName::NameLength => {
                let length = prefix.chars().count() + name.chars().count();
                (length > self.limit()).then(|| format!("{length} characters with its prefix"))
            }
            RuleName::DescriptionLength => {
                let length = tool["description"].as_str().unwrap_or_default().chars().count();
                (length > self.limit()).then(|| format!("a description of {length} characters"))
            }
            RuleName::NoRootUnion => ["oneOf", "anyOf", "allOf", "not"]
                .into_iter()
                .find(|keyword| input.get(keyword).is_some())
                .map(|keyword| format!("{keyword} at the root of the input schema")),
            RuleName::RootObject => schemas()
                .any(|schema| schema["type"] != "object")
                .then(|| "a schema whose root is not of type object".to_owned()),
            RuleName::NoDollarSchema => {
                anywhere(&|part| part.get("$schema").map(|dialect| format!("$schema {dialect}")))
            }
            RuleName::ArrayItems => anywhere(&|part| {
                let is_array = part["type"] == "array"
                    || part["type"].as_array().is_some_and(|types| types.contains(&json!("array")));
                (is_array && !part["items"].is_object()).then(|| format!("an array without items: {part}"))
            }),
            RuleName::StringEnums => anywhere(&|part| {
                let values = part.get("enum")?.as_array()?;
                values.iter().find(|value| !value.is_string()).map(|value| format!("{value} in an enum"))
            }),
            RuleName::SafeNumbers => schemas().find_map(unsafe_number),
            RuleName::NoOutputSchema => output.map(|_| "has an outputSchema".to_owned()),
            RuleName::AlwaysLoaded => {
                let names = self.value.as_ref().and_then(Value::as_array).expect("names of tools");
                let is_loaded = tool["_meta"]["anthropic/alwaysLoad"] == true;
                (names.contains(&json!(name)) && !is_loaded).then(|| "is deferred".to_owned())
            }
        }
    }
}

/// A schema and all schemas inside it.
fn subschemas(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut queue = vec![schema];
    while let Some(schema) = queue.pop() {
        let Some(keywords) = schema.as_object() else { continue };
        found.push(schema);
        for (keyword, value) in keywords {
            match keyword.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    queue.extend(value.as_object().into_iter().flat_map(|named| named.values()));
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    queue.extend(value.as_array().into_iter().flatten());
                }
                "items"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties" => queue.push(value),
                _ => {}
            }
        }
    }
    found
}

/// A number in a schema that a client in JavaScript would round.
fn unsafe_number(value: &Value) -> Option<String> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    match value {
        Value::Number(number) => number
            .as_f64()
            .is_none_or(|number| number.abs() > LARGEST)
            .then(|| format!("the number {number}")),
        Value::Array(values) => values.iter().find_map(unsafe_number),
        Value::Object(members) => members.values().find_map(unsafe_number),
        _ => None,
    }
}

/// A session of a client that reports this name.
fn session(setup: Setup, name: &str) -> (Server, String) {
    let mut server = setup.start();
    let client = json!({"name": name, "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let answer = server.result("initialize", params);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    (server, answer["instructions"].as_str().unwrap_or_default().to_owned())
}

/// The listing that a client of this name receives after a handshake.
fn listing(setup: Setup, name: &str) -> Listing {
    let (mut server, instructions) = session(setup, name);
    let result = server.result("tools/list", json!({}));
    server.finish();
    Listing { instructions, tools: result["tools"].as_array().expect("tools").clone() }
}

/// A request, without a handshake, of a client of this name.
fn modern_as(name: &str, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": name, "version": "1"});
    modern(json!(1), method, params)
}

/// Every refusal of every client by a server with this setup.
fn refusals(setup: impl Fn() -> Setup) -> Vec<String> {
    let mut found = Vec::new();
    for client in clients() {
        for name in client.names() {
            let refused = client.refusals(&listing(setup(), &name));
            found.extend(refused.into_iter().map(|refused| format!("{} ({name}): {refused}", client.name)));
        }
    }
    found
}

#[track_caller]
fn assert_none(refusals: &[String]) {
    assert!(refusals.is_empty(), "{} refusals:\n{}", refusals.len(), refusals.join("\n"));
}

#[test]
fn no_client_refuses_what_is_listed() {
    assert_none(&refusals(Setup::new));
}

#[test]
fn no_client_refuses_what_is_listed_with_assets() {
    assert_none(&refusals(Setup::assets));
}

#[test]
fn a_client_gets_the_same_list_without_a_handshake() {
    for client in clients() {
        for name in client.names() {
            let mut server = Setup::new().start();
            server.send(&modern_as(&name, "tools/list", json!({})));
            let frame = server.frame();
            server.finish();
            assert_eq!(frame["result"]["tools"], json!(listing(Setup::new(), &name).tools), "{name}");
        }
    }
}

#[test]
fn results_have_the_form_that_the_client_can_use() {
    for client in clients() {
        for name in client.names() {
            let setup = Setup::new();
            std::fs::write(setup.path("root").join("a.txt"), "one\n").expect("writes");
            let (mut server, _) = session(setup, &name);
            for (path, fails) in [("a.txt", false), ("missing.txt", true)] {
                let call = json!({"name": "text.read", "arguments": {"path": path}});
                let after_handshake = server.result("tools/call", call.clone());
                server.send(&modern_as(&name, "tools/call", call));
                let without = server.frame()["result"].clone();
                for result in [after_handshake, without] {
                    let blocks = result["content"].as_array().expect("content");
                    assert_eq!((blocks.len(), &blocks[0]["type"]), (1, &json!("text")), "{name}: {result}");
                    assert_eq!(result["isError"] == true, fails, "{name}: {result}");
                    let structured = result.get("structuredContent").is_some();
                    let expected = client.results == Results::Json && !fails;
                    assert_eq!(structured, expected, "{name}: {result}");
                }
            }
            server.finish();
        }
    }
}

/// Gemini CLI asks its model to set an extra argument on every call that depends on another, and sends it to the
/// server.
#[test]
fn an_argument_that_the_client_adds_does_not_fail_the_call() {
    for client in clients() {
        for (name, argument) in client
            .names()
            .flat_map(|name| client.added_arguments.iter().map(move |argument| (name.clone(), argument)))
        {
            let setup = Setup::new();
            std::fs::write(setup.path("root").join("a.txt"), "one\n").expect("writes");
            let (mut server, _) = session(setup, &name);
            let call = json!({"name": "text.read", "arguments": {"path": "a.txt", argument: true}});
            let result = server.result("tools/call", call);
            server.finish();
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(result["isError"] != true && text.contains("one"), "{name}, {argument}: {result}");
        }
    }
}

#[test]
fn every_statement_about_a_client_has_a_source() {
    let clients = clients();
    assert!(clients.len() >= 10, "only {} clients", clients.len());
    let mut ids = BTreeSet::new();
    let mut names = BTreeSet::new();
    for client in &clients {
        assert!(ids.insert(&client.id), "{} is listed twice", client.id);
        assert!(
            !client.names.is_empty() && !client.rules.is_empty(),
            "{} has no names or no rules",
            client.id
        );
        for name in &client.names {
            assert!(names.insert(name), "two clients are called {name}");
            assert!(!name.trim_end_matches('*').contains('*'), "{name}: `*` stands at the end alone");
        }
        let rules = client.rules.iter().map(|rule| &rule.source);
        assert_eq!(
            client.sources.added_arguments.is_some(),
            !client.added_arguments.is_empty(),
            "{}",
            client.id
        );
        let sources = rules.chain([&client.sources.names, &client.sources.results]);
        for source in sources.chain(&client.sources.added_arguments) {
            assert!(source.len() >= 10, "{}: {source:?} is no source", client.id);
        }
    }
}

#[test]
fn each_rule_finds_what_it_forbids() {
    let harmful = json!({
        "name": "file.create",
        "description": "long ".repeat(1000),
        "inputSchema": {
            "anyOf": [{"required": ["a"]}],
            "properties": {
                "a": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": ["array", "null"]},
                "b": {"type": "integer", "maximum": u64::MAX, "enum": [1, 2]},
            },
        },
        "outputSchema": {"type": "object"},
    });
    let listing = Listing { instructions: "long ".repeat(1000), tools: vec![harmful; 200] };
    let rule = |rule, value| Rule { rule, value, source: String::new() };
    for (name, value) in [
        (RuleName::NamePattern, Some(json!("^[a-z_]+$"))),
        (RuleName::NameLength, Some(json!(17))),
        (RuleName::ToolCount, Some(json!(199))),
        (RuleName::DescriptionLength, Some(json!(4999))),
        (RuleName::InstructionsLength, Some(json!(4999))),
        (RuleName::NoRootUnion, None),
        (RuleName::RootObject, None),
        (RuleName::NoDollarSchema, None),
        (RuleName::ArrayItems, None),
        (RuleName::StringEnums, None),
        (RuleName::SafeNumbers, None),
        (RuleName::NoOutputSchema, None),
        (RuleName::AlwaysLoaded, Some(json!(["file.create"]))),
    ] {
        assert!(rule(name, value).refusal("pintle_", &listing).is_some(), "{name:?} finds nothing");
    }
    let harmless = json!({
        "name": "file_create",
        "_meta": {"anthropic/alwaysLoad": true},
        "description": "short",
        "inputSchema": {"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "b": {"type": "integer", "maximum": 9_007_199_254_740_991_u64},
        }},
    });
    let listing = Listing { instructions: "short".to_owned(), tools: vec![harmless] };
    for client in clients() {
        assert_none(&client.refusals(&listing));
    }
}
