//! The interface of MCP resources, one implementation a URI scheme.

use std::{future::Future, pin::Pin};

use percent_encoding::percent_decode_str;
use pintle_contract::{Access, ErrorCode, Fault, Permission, WorkspacePath};

use crate::{context::CallContext, tool::unusable_path};

/// A resource in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEntry {
    /// The URI to read it by.
    pub uri: String,
    /// A short name for people.
    pub name: String,
    /// The type of its content.
    pub mime_type: &'static str,
}

/// The text of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContent {
    /// The type of `text`.
    pub mime_type: &'static str,
    /// The content.
    pub text: String,
}

/// A boxed future, for methods of trait objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The resources of one URI scheme.
///
/// ```
/// use pintle_contract::{Fault, Permission};
/// use pintle_tool::{Boxed, CallContext, ResourceContent, ResourceEntry, Resources, decode_address};
///
/// /// `greeting://{name}`: a greeting for anyone.
/// struct Greetings;
///
/// impl Resources for Greetings {
///     fn scheme(&self) -> &'static str {
///         "greeting"
///     }
///
///     fn template(&self) -> Option<&'static str> {
///         Some("greeting://{name}")
///     }
///
///     fn permission(&self) -> Permission {
///         Permission::AnyCaller
///     }
///
///     fn list<'a>(&'a self, _: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>> {
///         Box::pin(async { Ok(Vec::new()) })
///     }
///
///     fn read<'a>(&'a self, _: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>> {
///         Box::pin(async move {
///             let text = format!("Hello, {}!", decode_address(rest)?);
///             Ok(ResourceContent { mime_type: "text/plain", text })
///         })
///     }
///
///     fn complete<'a>(&'a self, _: &'a CallContext, prefix: &'a str) -> Boxed<'a, Vec<String>> {
///         let names = ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(prefix));
///         let names = names.map(str::to_owned).collect();
///         Box::pin(async { names })
///     }
/// }
///
/// assert_eq!(Greetings.template(), Some("greeting://{name}"));
/// ```
pub trait Resources: Send + Sync {
    /// The scheme, without `://`.
    fn scheme(&self) -> &'static str;

    /// The URI template (RFC 6570), if the URIs have variables.
    fn template(&self) -> Option<&'static str>;

    /// Lists the resources that the caller may read.
    fn list<'a>(&'a self, call: &'a CallContext) -> Boxed<'a, Result<Vec<ResourceEntry>, Fault>>;

    /// The permission that reading a resource needs. It is checked before the resource is read.
    fn permission(&self) -> Permission;

    /// The accesses that reading a resource needs; `rest` is what follows `://` in the URI.
    fn accesses(&self, rest: &str) -> Result<Vec<Access>, Fault> {
        match self.permission() {
            Permission::Address(verb) => {
                let path = WorkspacePath::parse(&decode_address(rest)?).map_err(unusable_path)?;
                Ok(vec![Access::Path(verb, path)])
            }
            permission => permission.accesses(&serde_json::Value::Null).map_err(unusable_path),
        }
    }

    /// Reads one resource; `rest` is what follows `://` in the URI.
    fn read<'a>(&'a self, call: &'a CallContext, rest: &'a str) -> Boxed<'a, Result<ResourceContent, Fault>>;

    /// Values of the template's variable that start with `prefix`.
    fn complete<'a>(&'a self, call: &'a CallContext, prefix: &'a str) -> Boxed<'a, Vec<String>>;
}

/// Decodes a percent-encoded part of a URI.
pub fn decode_address(text: &str) -> Result<String, Fault> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| {
        Fault::new(ErrorCode::InvalidRequest, "the address is not UTF-8 once its percent signs are decoded")
    })
}
