//! Permissions: what a tool declares that it needs, and what a caller has.
//!
//! A tool declares its permissions as data. For each call the server turns them into the accesses that its arguments
//! ask for, and checks these against the caller's scopes and the deny rules. No tool checks its own arguments.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use crate::{Access, DenyRules, PathProblem, Scopes, Verb, WorkspacePath};

/// A permission that a tool or a family of resources needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// None: every caller may call it. What the caller may not read is left out of the result.
    AnyCaller,
    /// None for a call, and the result is filtered as well; but only callers who may do this to some path are offered
    /// the tool.
    SomePath(Verb),
    /// Doing something to the path in an argument. The argument is named by its JSON pointer, in which `*` stands for
    /// each element of an array, such as `/edits/*/path`. If it is absent, nothing is needed. A path in an array that cannot
    /// be used needs nothing either: the tool reports it together with all else that is wrong with the elements.
    Argument(Verb, &'static str),
    /// Doing something to the whole workspace.
    Workspace(Verb),
    /// Doing something to the path that the address of a resource names.
    Address(Verb),
    /// Working in a folder, which must not be denied.
    Enter(WorkspacePath),
    /// A scope of its own, such as `assets:publish`.
    Named(Cow<'static, str>),
}

impl Permission {
    /// The accesses that a call with these arguments needs. `Err` is a path that cannot be used.
    pub fn accesses(&self, arguments: &Value) -> Result<Vec<Access>, PathProblem> {
        match self {
            Self::Argument(verb, pointer) => {
                let mut texts = Vec::new();
                collect(arguments, pointer, &mut texts);
                let accesses =
                    texts.into_iter().map(|text| Ok(Access::Path(*verb, WorkspacePath::parse(text)?)));
                match pointer.contains('*') {
                    true => Ok(accesses.filter_map(Result::ok).collect()),
                    false => accesses.collect(),
                }
            }
            Self::Workspace(verb) => Ok(vec![Access::Tree(*verb, WorkspacePath::root())]),
            Self::Enter(folder) => Ok(vec![Access::Enter(folder.clone())]),
            Self::Named(name) => Ok(vec![Access::Named(name.clone())]),
            Self::AnyCaller | Self::SomePath(_) | Self::Address(_) => Ok(Vec::new()),
        }
    }
}

/// An element of a list in the arguments of a call, and the access that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its number, counted from 0.
    pub number: usize,
    /// The path, as it is written.
    pub path: String,
    /// The access.
    pub access: Access,
}

impl Permission {
    /// The accesses of the elements of a list, for a permission that is about each of them.
    pub fn elements(&self, arguments: &Value) -> Vec<Element> {
        let Self::Argument(verb, pointer) = self else { return Vec::new() };
        let Some((list, rest)) = pointer.split_once("/*") else { return Vec::new() };
        let elements = arguments.pointer(list).and_then(Value::as_array).into_iter().flatten().enumerate();
        let element = |(number, element): (usize, &Value)| {
            let path = element.pointer(rest)?.as_str()?;
            let access = Access::Path(*verb, WorkspacePath::parse(path).ok()?);
            Some(Element { number, path: path.to_owned(), access })
        };
        elements.filter_map(element).collect()
    }
}

/// Collects the texts at a pointer.
fn collect<'a>(value: &'a Value, pointer: &str, texts: &mut Vec<&'a str>) {
    let Some(rest) = pointer.strip_prefix('/') else {
        texts.extend(value.as_str());
        return;
    };
    let (name, rest) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    match (name, value) {
        ("*", Value::Array(elements)) => elements.iter().for_each(|element| collect(element, rest, texts)),
        (name, Value::Object(members)) => {
            if let Some(member) = members.get(name) {
                collect(member, rest, texts);
            }
        }
        _ => {}
    }
}

/// The scopes that the details of a fault name as missing, separated by spaces.
pub fn missing_scopes(details: Option<&Value>) -> Option<String> {
    // What a deny rule covers is not opened by scopes.
    let details = details.filter(|details| details.get("denied").is_none())?;
    match details.get("scopes").and_then(Value::as_array) {
        Some(all) => Some(all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        None => details.get("scope")?.as_str().map(str::to_owned),
    }
}

/// What a caller may do: what its scopes grant, less what the deny rules take away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    scopes: Scopes,
    denied: Arc<DenyRules>,
}

/// Why an access is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A deny rule covers the path. No scope helps.
    Denied(Verb, WorkspacePath),
    /// No scope of the caller covers it.
    MissingScope(Access),
}

impl Permissions {
    /// Everything, without any deny rule.
    pub fn everything() -> Self {
        Self { scopes: Scopes::everything(), denied: Arc::default() }
    }

    /// What these scopes grant, less what these rules deny.
    pub fn new(scopes: Scopes, denied: Arc<DenyRules>) -> Self {
        Self { scopes, denied }
    }

    /// The scopes.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Checks an access. The answer says nothing about whether the path exists.
    pub fn check(&self, access: &Access) -> Result<(), Refusal> {
        let denied = match access {
            Access::Path(verb, path) | Access::Tree(verb, path) => Some((*verb, path)),
            Access::Enter(path) if self.denied.deny(Verb::Read, path.as_str().as_bytes()) => {
                Some((Verb::Read, path))
            }
            // What may not be written is no place to work in, either.
            Access::Enter(path) => Some((Verb::Write, path)),
            Access::Named(_) => None,
        };
        match denied {
            Some((verb, path)) if self.denied.deny(verb, path.as_str().as_bytes()) => {
                Err(Refusal::Denied(verb, path.clone()))
            }
            _ if self.scopes.cover(access) => Ok(()),
            _ => Err(Refusal::MissingScope(access.clone())),
        }
    }

    /// Whether there can be a call that is allowed, of a tool with these permissions.
    pub fn allow_some_call(&self, permissions: &[Permission]) -> bool {
        permissions.iter().all(|permission| match permission {
            Permission::AnyCaller | Permission::Enter(_) => true,
            Permission::SomePath(verb) | Permission::Argument(verb, _) | Permission::Address(verb) => {
                self.scopes.cover_some_path(*verb)
            }
            Permission::Workspace(verb) => self.scopes.cover(&Access::Tree(*verb, WorkspacePath::root())),
            Permission::Named(name) => self.scopes.cover(&Access::Named(name.clone())),
        })
    }

    /// Whether a path may be read.
    pub fn may_read(&self, path: &WorkspacePath) -> bool {
        !self.denied.deny(Verb::Read, path.as_str().as_bytes()) && self.scopes.may_read(path)
    }

    /// Whether a path may be read that a file system has: its names can be any bytes.
    pub fn may_read_bytes(&self, path: &[u8]) -> bool {
        !self.denied.deny(Verb::Read, path) && self.scopes.may_read_bytes(path)
    }

    /// Whether everything may be read.
    pub fn may_read_everything(&self) -> bool {
        self.scopes.are_everything() && self.denied.let_everything_be_read()
    }

    /// Whether every file directly in a folder may be read, whatever its name.
    pub fn may_read_all_in(&self, folder: &WorkspacePath) -> bool {
        self.denied.let_everything_be_read()
            && folder.join("x").is_some_and(|file| self.scopes.may_read(&file))
    }

    /// The names in a folder on the way to what may be read. They say no more than the scopes themselves.
    pub fn ways_from(&self, folder: &WorkspacePath) -> Vec<&str> {
        let may_be_entered = |name: &&str| {
            folder.join(name).is_some_and(|path| !self.denied.deny(Verb::Read, path.as_str().as_bytes()))
        };
        self.scopes.ways_from(folder).into_iter().filter(may_be_entered).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DenyGlobs;

    fn permissions(scopes: &[&str], read: &[&str]) -> Permissions {
        let read: Vec<String> = read.iter().map(|&glob| glob.to_owned()).collect();
        let denied = DenyRules::new(DenyGlobs { read: &read, ..DenyGlobs::default() }).expect("globs");
        Permissions::new(Scopes::parse(scopes.iter().copied()).expect("scopes"), Arc::new(denied))
    }

    fn path(verb: Verb, text: &str) -> Access {
        Access::Path(verb, WorkspacePath::parse(text).expect("a path"))
    }

    #[test]
    fn a_declaration_and_arguments_make_accesses() {
        let arguments =
            json!({"path": "/a//b/../c", "to": "d", "edits": [{"path": "e"}, {}, {"path": "f"}], "n": 5});
        for (permission, expected) in [
            (Permission::AnyCaller, vec![]),
            (Permission::SomePath(Verb::Read), vec![]),
            (Permission::Argument(Verb::Write, "/path"), vec!["write:/a/c"]),
            (Permission::Argument(Verb::Read, "/edits/*/path"), vec!["read:/e", "read:/f"]),
            (Permission::Argument(Verb::Read, "/absent"), vec![]),
            (Permission::Argument(Verb::Read, "/n"), vec![]),
            (Permission::Workspace(Verb::Write), vec!["write:/"]),
            (Permission::Named("assets:publish".into()), vec!["assets:publish"]),
        ] {
            let accesses = permission.accesses(&arguments).expect("paths");
            let shown: Vec<String> = accesses.iter().map(Access::to_string).collect();
            assert_eq!(shown, expected, "{permission:?}");
        }
        let escapes = Permission::Argument(Verb::Read, "/path").accesses(&json!({"path": "../x"}));
        assert_eq!(escapes, Err(PathProblem::Escapes));
        let in_list = json!({"edits": [{"path": "../x"}, {"path": "e"}]});
        let accesses =
            Permission::Argument(Verb::Read, "/edits/*/path").accesses(&in_list).expect("usable paths");
        assert_eq!(accesses.iter().map(Access::to_string).collect::<Vec<_>>(), ["read:/e"]);
    }

    #[test]
    fn a_tool_can_be_used_if_some_call_of_it_is_covered() {
        let publish = [Permission::Named("assets:publish".into())];
        let (read, write) =
            ([Permission::Argument(Verb::Read, "/path")], [Permission::Argument(Verb::Write, "/path")]);
        let (some, any) = ([Permission::SomePath(Verb::Read)], [Permission::AnyCaller]);
        for (scopes, allowed, refused) in [
            (&["read:/a/*"][..], vec![&read, &some, &any], vec![&write, &publish]),
            (&["write:/a"], vec![&read, &write], vec![&publish]),
            (&["assets:publish"], vec![&publish], vec![&read, &write, &some]),
            (&[], vec![&any], vec![&read, &write, &publish]),
        ] {
            let permissions = permissions(scopes, &[]);
            assert!(allowed.iter().all(|needed| permissions.allow_some_call(*needed)), "{scopes:?}");
            assert!(!refused.iter().any(|needed| permissions.allow_some_call(*needed)), "{scopes:?}");
            assert!(Permissions::everything().allow_some_call(&publish));
        }
    }

    #[test]
    fn what_is_denied_is_refused_with_and_without_a_scope() {
        for scopes in [&["write:/"][..], &["read:/a"], &[]] {
            let permissions = permissions(scopes, &[".env"]);
            for verb in [Verb::Read, Verb::Write] {
                let refusal = permissions.check(&path(verb, "a/.env/x")).expect_err("denied");
                assert!(matches!(refusal, Refusal::Denied(refused, _) if refused == verb), "{refusal:?}");
            }
            assert!(!permissions.may_read_bytes(b"a/.env") && !permissions.may_read_everything());
        }
        let permissions = permissions(&["read:/a/.env/deep", "read:/a/open"], &[".env"]);
        assert_eq!(permissions.ways_from(&WorkspacePath::parse("a").expect("a path")), ["open"]);
        let missing = permissions.check(&path(Verb::Read, "b")).expect_err("no scope");
        assert_eq!(missing, Refusal::MissingScope(path(Verb::Read, "b")));
    }

    #[test]
    fn nobody_is_asked_for_scopes_that_do_not_help() {
        for (details, expected) in [
            (json!({"scope": "read:/a"}), Some("read:/a")),
            (json!({"scope": "read:/a", "scopes": ["read:/a", "read:/b"]}), Some("read:/a read:/b")),
            (json!({"denied": "/.env", "scopes": ["read:/a"]}), None),
            (json!({"reason": "io"}), None),
        ] {
            assert_eq!(missing_scopes(Some(&details)).as_deref(), expected, "{details}");
        }
    }

    #[test]
    fn a_folder_to_work_in_needs_no_scope_and_must_not_be_denied() {
        let permissions = permissions(&[], &["secret"]);
        let enter = |text| Access::Enter(WorkspacePath::parse(text).expect("a path"));
        assert_eq!(permissions.check(&enter("")), Ok(()));
        for denied in ["secret/x", ".git/hooks"] {
            assert!(permissions.check(&enter(denied)).is_err(), "{denied}");
        }
    }
}
