//! Would this client take the list of tools?

use std::collections::{BTreeMap, btree_map::Entry};

use serde::Serialize;

use crate::{
    client::{Check, Client, ClientRule, Severity},
    lint_schema,
    surface::{Surface, SurfaceTool},
};

/// What a client would refuse, cut or rewrite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// The client, by its name.
    pub client: &'static str,
    /// The tool's stable name, or nothing for what belongs to all.
    pub tool: String,
    /// Where, within the tool as it is listed or within the surface: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// The rule, by its name.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found, what to change, and what the client does otherwise.
    pub message: String,
    /// Where the rule is known from.
    pub source: &'static str,
}

/// The length of the server's name, which its user chooses, that a tool's name should leave room for.
const SERVER_NAME: usize = 16;

/// What stands for that name in a prefix.
const SERVER: &str = "SERVER";

/// How many places of one rule in one tool are reported one by one; the last of them counts the others.
const PLACES: usize = 20;

/// One place that goes against a check.
pub(crate) struct Hit {
    pointer: String,
    problem: String,
    /// It does no harm but to some users.
    is_mild: bool,
}

impl Hit {
    pub(crate) fn at(pointer: &str, problem: String) -> Self {
        Self { pointer: pointer.to_owned(), problem, is_mild: false }
    }
}

/// What the client would not take as it is; nothing if it takes the whole list.
pub fn lint(surface: &Surface, client: &Client) -> Vec<LintFinding> {
    let mut linting = Linting { client, findings: Vec::new(), known: BTreeMap::new() };
    for rule in client.rules {
        linting.report(rule, "", of_list(rule.check, surface).into_iter().collect());
    }
    for (name, tool) in &surface.tools {
        for rule in client.rules {
            linting.report(rule, name, of_tool(rule.check, client.prefix, listed_name(name, tool), tool));
        }
    }
    for rule in client.rules {
        for (name, hit) in duplicate_names(rule.check, surface) {
            linting.report(rule, name, vec![hit]);
        }
    }
    linting.findings
}

struct Linting<'a> {
    client: &'a Client,
    findings: Vec<LintFinding>,
    /// Where a rule has been found broken, and the number of the finding.
    known: BTreeMap<(&'static str, String, String), usize>,
}

impl Linting<'_> {
    /// Of two findings of one rule in one place, the more severe stays.
    fn report(&mut self, rule: &ClientRule, tool: &str, mut hits: Vec<Hit>) {
        let others = hits.len().saturating_sub(PLACES);
        hits.truncate(PLACES);
        if let Some(last) = hits.last_mut().filter(|_| others > 0) {
            last.problem.push_str(&format!(" (and so in {others} other places)"));
        }
        for hit in hits {
            let key = (rule.check.id(), tool.to_owned(), hit.pointer.clone());
            let finding = finding(self.client, rule, tool, hit);
            match self.known.get(&key) {
                Some(index) if self.findings[*index].severity < finding.severity => {
                    self.findings[*index] = finding;
                }
                Some(_) => {}
                None => {
                    self.known.insert(key, self.findings.len());
                    self.findings.push(finding);
                }
            }
        }
    }
}

fn finding(client: &Client, rule: &ClientRule, tool: &str, hit: Hit) -> LintFinding {
    LintFinding {
        client: client.name,
        tool: tool.to_owned(),
        pointer: hit.pointer,
        rule: rule.check.id(),
        severity: if hit.is_mild { Severity::Warning } else { rule.severity },
        message: format!("{}. {} {}.", hit.problem, client.title, rule.effect),
        source: rule.source,
    }
}

/// The name that clients see.
fn listed_name<'a>(name: &'a str, tool: &'a SurfaceTool) -> &'a str {
    tool.listed_name.as_deref().unwrap_or(name)
}

fn of_list(check: Check, surface: &Surface) -> Option<Hit> {
    match check {
        Check::ToolCount(most) => {
            let count = surface.tools.len();
            (count > most).then(|| Hit::at("", format!("there are {count} tools; list at most {most}")))
        }
        Check::ListSize(most) => {
            let sizes = surface.tools.iter().map(|(name, tool)| size(listed_name(name, tool), tool));
            let size: usize = sizes.sum();
            let problem = || {
                format!(
                    "names, descriptions and input schemas have {size} characters; shorten them to {most}"
                )
            };
            (size > most).then(|| Hit::at("", problem()))
        }
        Check::InstructionsLength(most) => too_long(surface.instructions.as_deref(), most).map(|length| {
            let problem = format!(
                "the instructions have {length} characters; shorten them to {most}, what matters first"
            );
            Hit::at("/instructions", problem)
        }),
        _ => None,
    }
}

fn size(name: &str, tool: &SurfaceTool) -> usize {
    let description = tool.description.as_deref().unwrap_or_default();
    [name, description, &tool.input_schema.to_string()].iter().map(|text| text.chars().count()).sum()
}

/// The length of a text that has more characters than this.
fn too_long(text: Option<&str>, most: usize) -> Option<usize> {
    text.map(|text| text.chars().count()).filter(|length| *length > most)
}

fn of_tool(check: Check, prefix: &str, name: &str, tool: &SurfaceTool) -> Vec<Hit> {
    let hit = match check {
        Check::NameCharacters(others) => name_characters(others, name),
        Check::NameStart => {
            (!name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')).then(|| {
                Hit::at("/name", format!("the name {} has to begin with a letter or `_`", quoted(name)))
            })
        }
        Check::NameLength(most) => name_length(most, prefix, name),
        Check::DescriptionLength(most) => too_long(tool.description.as_deref(), most).map(|length| {
            Hit::at(
                "/description",
                format!("the description has {length} characters; shorten it to {most}, what matters first"),
            )
        }),
        Check::OutputRoot => {
            let output = tool.output_schema.as_ref();
            output.and_then(|schema| lint_schema::root_object(schema, "/outputSchema", "outputSchema"))
        }
        Check::OutputSchema => tool.output_schema.as_ref().map(|_| {
            Hit::at(
                "/outputSchema",
                "the tool has an output schema; list none for this client, and answer with one text"
                    .to_owned(),
            )
        }),
        _ => return lint_schema::input_schema(check, &tool.input_schema, "/inputSchema"),
    };
    hit.into_iter().collect()
}

/// Whether a name may have this character, given the ones besides ASCII letters and digits.
pub(crate) fn allows(others: &str, char: char) -> bool {
    char.is_ascii_alphanumeric() || others.contains(char)
}

/// The beginning of a text that others wrote, quoted, for a message.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The characters that a name may have, in words.
pub(crate) fn listed(others: &str) -> String {
    let others: Vec<String> = others.chars().map(|char| format!("`{char}`")).collect();
    format!("ASCII letters, digits and {}", others.join(" "))
}

fn name_characters(others: &str, name: &str) -> Option<Hit> {
    let refused = match name.chars().find(|char| !allows(others, *char)) {
        Some(char) => format!("has {char:?}"),
        None if name.is_empty() => "is empty".to_owned(),
        None => return None,
    };
    Some(Hit::at("/name", format!("the name {} {refused}; take only {}", quoted(name), listed(others))))
}

/// A name that is too long with its prefix, or that leaves little of it to the name of the server.
fn name_length(most: usize, prefix: &str, name: &str) -> Option<Hit> {
    let length = name.chars().count();
    let (fixed, least, wanted) = match prefix.split_once(SERVER) {
        Some((before, after)) => (before.len() + after.len(), 1, SERVER_NAME),
        None => (prefix.len(), 0, 0),
    };
    if length + fixed + wanted <= most {
        return None;
    }
    let is_mild = length + fixed + least <= most;
    let shorter = most - fixed - wanted;
    let with = if prefix.is_empty() { String::new() } else { format!(", and the prefix `{prefix}` counts") };
    let left = if is_mild {
        format!(", which leaves {} for the server's name", most - fixed - length)
    } else {
        String::new()
    };
    let problem = format!("the name has {length} characters of {most}{with}{left}; shorten it to {shorter}");
    Some(Hit { is_mild, ..Hit::at("/name", problem) })
}

/// The tools whose name is, for the client, that of a tool before them.
fn duplicate_names(check: Check, surface: &Surface) -> Vec<(&str, Hit)> {
    let Check::DuplicateName(others) = check else { return Vec::new() };
    let seen = |name: &str| match others {
        Some(others) => name.chars().map(|char| if allows(others, char) { char } else { '_' }).collect(),
        None => name.to_owned(),
    };
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut hits = Vec::new();
    for (name, tool) in &surface.tools {
        let listed = listed_name(name, tool);
        match first.entry(seen(listed)) {
            Entry::Vacant(entry) => {
                entry.insert(listed);
            }
            Entry::Occupied(entry) => {
                let names = [entry.get(), listed, entry.key()].map(quoted);
                let problem =
                    format!("the names {} and {} come out as {}; rename one", names[0], names[1], names[2]);
                hits.push((name.as_str(), Hit::at("/name", problem)));
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client::client_named, clients::CLIENTS};
    use serde_json::{Map, Value, json};
    use std::slice;

    fn surface(document: &Value) -> Surface {
        Surface::from_json(document).expect("a surface")
    }

    fn named(name: &str) -> Surface {
        surface(&json!([{"name": name, "inputSchema": {"type": "object"}}]))
    }

    fn with_schema(schema: &Value) -> Surface {
        surface(&json!([{"name": "a", "inputSchema": schema}]))
    }

    fn with_argument(schema: &Value) -> Surface {
        with_schema(&json!({"type": "object", "properties": {"x": schema}}))
    }

    fn with_output(schema: &Value) -> Surface {
        surface(&json!([{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": schema}]))
    }

    fn tools(count: usize) -> Surface {
        let tool = |index| json!({"name": format!("t{index}"), "inputSchema": {"type": "object"}});
        surface(&(0..count).map(tool).collect())
    }

    fn described(length: usize) -> Surface {
        let text = "é".repeat(length);
        surface(&json!([{"name": "a", "description": text, "inputSchema": {"type": "object"}}]))
    }

    fn instructed(length: usize) -> Surface {
        surface(&json!({"instructions": "é".repeat(length), "tools": []}))
    }

    fn nested(levels: usize) -> Surface {
        let object =
            |inner, _| json!({"type": "object", "properties": {"x": {"type": "array", "items": inner}}});
        with_schema(&(0..levels).fold(json!({"type": "string"}), object))
    }

    fn with_arguments(count: usize) -> Surface {
        let argument = |index| (format!("x{index}"), json!({"type": "string"}));
        with_schema(&json!({"type": "object", "properties": (0..count).map(argument).collect::<Map<_, _>>()}))
    }

    /// A surface that goes against a check, where, and one like it that does not.
    fn examples(check: Check, prefix: &str) -> (Surface, &'static str, Surface) {
        const X: &str = "/inputSchema/properties/x";
        match check {
            Check::NameCharacters(others) => {
                let fits: String = format!("aZ9{others}");
                let other = if others == "_" { "a-b" } else { "a/b" };
                (named(other), "/name", named(&fits))
            }
            Check::NameStart => (named("9a"), "/name", named("_a")),
            Check::NameLength(most) => {
                let reserved = prefix.replace(SERVER, &"s".repeat(SERVER_NAME)).len();
                (named(&"a".repeat(most - reserved + 1)), "/name", named(&"a".repeat(most - reserved)))
            }
            Check::DuplicateName(None) => {
                let tool =
                    |stable: &str, listed: &str| json!({"name": listed, "_meta": {"pintle/name": stable}});
                let pair = |listed| surface(&json!([tool("a", "x"), tool("b", listed)]));
                (pair("x"), "/name", pair("X"))
            }
            Check::DuplicateName(Some(_)) => {
                let pair = |name| surface(&json!([{"name": "a b"}, {"name": name}]));
                (pair("a_b"), "/name", pair("a-b"))
            }
            Check::ToolCount(most) => (tools(most + 1), "", tools(most)),
            Check::ListSize(most) => {
                let rest = size("a", &described(0).tools["a"]);
                (described(most - rest + 1), "", described(most - rest))
            }
            Check::DescriptionLength(most) => (described(most + 1), "/description", described(most)),
            Check::InstructionsLength(most) => (instructed(most + 1), "/instructions", instructed(most)),
            Check::RootUnion(keywords) => {
                let union = json!([{"required": ["a"]}, {"required": ["b"]}]);
                assert!(keywords.contains(&"anyOf"));
                (
                    with_schema(&json!({"type": "object", "anyOf": union})),
                    "/inputSchema/anyOf",
                    with_argument(&json!({"anyOf": union})),
                )
            }
            Check::InputRoot => (
                with_schema(&json!({"properties": {}})),
                "/inputSchema",
                with_schema(&json!({"type": "object"})),
            ),
            Check::OutputRoot => (
                with_output(&json!({"type": "array"})),
                "/outputSchema",
                with_output(&json!({"type": "object"})),
            ),
            Check::InvalidSchema => (
                with_argument(&json!({"type": "integer", "exclusiveMinimum": true})),
                "/inputSchema/properties/x/exclusiveMinimum",
                with_argument(&json!({"type": "integer", "exclusiveMinimum": 0})),
            ),
            Check::ArgumentName(_, most) => {
                let argument = |name: &str| {
                    let inner = json!({"type": "object", "properties": {"any name": {"type": "string"}}});
                    let arguments = Map::from_iter([(name.to_owned(), inner)]);
                    with_schema(&json!({"type": "object", "properties": arguments}))
                };
                (argument("a[b/c]"), "/inputSchema/properties/a[b~1c]", argument(&"a".repeat(most)))
            }
            Check::DollarSchema => (
                with_schema(&json!({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"})),
                "/inputSchema/$schema",
                with_schema(&json!({"type": "object", "properties": {"$schema": {"type": "string"}}})),
            ),
            Check::Reference => (
                with_argument(&json!({"$ref": "#"})),
                "/inputSchema/properties/x/$ref",
                with_argument(&json!({"type": "string", "default": {"$ref": "#"}})),
            ),
            Check::Union(_) => (
                with_argument(&json!({"type": "array", "items": {"oneOf": [{"type": "object"}]}})),
                "/inputSchema/properties/x/items/oneOf",
                with_argument(&json!({"type": "array", "items": {"anyOf": [{"type": "object"}]}})),
            ),
            Check::ArrayItems => (
                with_argument(&json!({"type": ["array", "null"], "prefixItems": [{"type": "string"}]})),
                X,
                with_argument(&json!({"type": "array", "items": {"type": "string"}})),
            ),
            Check::TypeList => (
                with_argument(&json!({"type": ["string", "null"]})),
                "/inputSchema/properties/x/type",
                with_argument(&json!({"type": "object", "properties": {"type": {"enum": ["a"]}}})),
            ),
            Check::EnumType => (
                with_argument(&json!({"enum": ["a", 1]})),
                "/inputSchema/properties/x/enum/1",
                with_argument(&json!({"enum": ["a", "1"]})),
            ),
            Check::EnumSize(most) => {
                let enums = |count: usize| {
                    let values: Vec<String> = (1..count).map(|index| index.to_string()).collect();
                    with_argument(&json!({"anyOf": [{"enum": ["0"]}, {"enum": values}]}))
                };
                (enums(most + 1), "/inputSchema", enums(most))
            }
            Check::Nesting(most) => {
                assert_eq!(most, 10);
                let deepest = "/inputSchema/properties/x/items/properties/x/items/properties/x/items/properties/x/items/\
                    properties/x/items/properties/x/items/properties/x/items/properties/x/items/properties/x/items/\
                    properties/x/items";
                (nested(most + 1), deepest, nested(most))
            }
            Check::PropertyCount(most) => (with_arguments(most + 1), "/inputSchema", with_arguments(most)),
            Check::UnsafeNumber => (
                with_argument(
                    &json!({"type": "integer", "default": 1, "minimum": -9_007_199_254_740_992_i64}),
                ),
                "/inputSchema/properties/x/minimum",
                with_argument(
                    &json!({"type": "number", "minimum": -9_007_199_254_740_991_i64, "maximum": 1e300}),
                ),
            ),
            Check::OutputSchema => (with_output(&json!({"type": "object"})), "/outputSchema", named("a")),
        }
    }

    #[test]
    fn each_rule_of_each_client_finds_what_breaks_it_and_nothing_beside() {
        for client in CLIENTS {
            for rule in client.rules {
                let (broken, pointer, kept) = examples(rule.check, client.prefix);
                let alone = Client { rules: slice::from_ref(rule), ..*client };
                let findings = lint(&broken, &alone);
                let [finding] = &findings[..] else { panic!("{}: {rule:?}: {findings:#?}", client.name) };
                assert_eq!((finding.client, finding.rule), (client.name, rule.check.id()));
                assert_eq!(finding.pointer, pointer, "{}: {}", client.name, finding.message);
                assert_eq!(finding.source, rule.source);
                assert!(finding.message.contains(client.title), "{}", finding.message);
                assert_eq!(lint(&kept, &alone), [], "{}: {rule:?}", client.name);
            }
        }
    }

    #[test]
    fn a_plain_list_is_taken_by_all_clients() {
        let plain = surface(&json!({"instructions": "Search before you read.", "tools": [
            {"name": "search", "description": "Finds text.", "inputSchema": {"type": "object", "additionalProperties": false,
                "properties": {"text": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
                    "paths": {"type": "array", "items": {"type": "string"}},
                    "order": {"type": "string", "enum": ["path", "rank"]},
                    "where": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"path": {"type": "string"}}}]}},
                "required": ["text"]}},
            {"name": "text_read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}));
        for client in CLIENTS {
            assert_eq!(lint(&plain, client), [], "{}", client.name);
        }
    }

    #[test]
    fn the_listed_name_counts_and_the_finding_has_the_stable_one() {
        let desktop = client_named("claude-desktop").expect("known");
        let listed = |name| json!([{"name": name, "inputSchema": {"type": "object"}, "_meta": {"pintle/name": "text.read"}}]);
        assert_eq!(lint(&surface(&listed("text_read")), desktop), []);
        let findings = lint(&surface(&listed("text read")), desktop);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            json!(findings[0]),
            json!({
                "client": "claude-desktop", "tool": "text.read", "pointer": "/name", "rule": "name-characters",
                "severity": "error", "source": findings[0].source,
                "message": "the name \"text read\" has ' '; take only ASCII letters, digits and `_` `-`. \
                    Claude Desktop withholds all tools from the conversation.",
            })
        );
    }

    #[test]
    fn a_long_text_of_others_is_shortened_in_messages() {
        let desktop = client_named("claude-desktop").expect("known");
        for finding in lint(&named(&"é".repeat(100_000)), desktop) {
            assert!(finding.message.len() < 500, "{}", finding.message);
        }
    }

    #[test]
    fn many_places_of_one_rule_are_counted() {
        let arguments: Map<_, _> =
            (0..1000).map(|index| (format!("x{index}"), json!({"type": "array"}))).collect();
        let many = with_schema(&json!({"type": "object", "properties": arguments}));
        let findings = lint(&many, client_named("vscode").expect("known"));
        assert_eq!(findings.len(), PLACES);
        let message = &findings[PLACES - 1].message;
        assert!(message.contains("(and so in 980 other places). VS Code refuses the tool"), "{message}");
    }

    #[test]
    fn of_two_rules_for_one_place_the_more_severe_speaks() {
        let cursor = client_named("cursor").expect("known");
        for (name, severity) in
            [("a-b", Severity::Warning), ("a.b", Severity::Error), ("a.b-c", Severity::Error)]
        {
            let findings = lint(&named(name), cursor);
            assert_eq!(
                findings.iter().map(|finding| finding.severity).collect::<Vec<_>>(),
                [severity],
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_that_leaves_little_to_the_servers_name_is_a_warning() {
        let cursor = client_named("cursor").expect("known");
        for (length, severity) in [
            (43, None),
            (44, Some(Severity::Warning)),
            (58, Some(Severity::Warning)),
            (59, Some(Severity::Error)),
        ] {
            let findings = lint(&named(&"a".repeat(length)), cursor);
            assert_eq!(findings.first().map(|finding| finding.severity), severity, "{length}");
        }
        let message = &lint(&named(&"a".repeat(50)), cursor)[0].message;
        assert!(message.contains("leaves 9 for the server's name; shorten it to 43"), "{message}");
    }
}
