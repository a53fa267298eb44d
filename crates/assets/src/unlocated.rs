//! Takes out of a message where files lie on this machine, which is nobody's business: an address below
//! the schemas folder is told from there, any other one as the schema has it.

use crate::references::Library;

const SCHEME: &str = "file://";

/// The message with every file's address in the words of whoever wrote the schemas; `folder` is the
/// address of the schemas folder, with a final `/`.
pub(crate) fn unlocated(message: &str, folder: Option<&str>, library: &Library) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(SCHEME) {
        out.push_str(&rest[..start]);
        let address = &rest[start..];
        // Addresses are spelled without any of these.
        let end = address.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(address.len());
        out.push_str(in_the_schemas_words(&address[..end], folder, library));
        rest = &address[end..];
    }
    out.push_str(rest);
    out
}

fn in_the_schemas_words<'a>(address: &'a str, folder: Option<&str>, library: &'a Library) -> &'a str {
    let below = folder.and_then(|folder| address.strip_prefix(folder));
    let last_segment = || address.rsplit('/').next().unwrap_or_default();
    below.or_else(|| library.as_written(address)).unwrap_or_else(last_segment)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_is_told_from_the_folder_or_as_written_or_by_its_last_segment() {
        let mut library = Library::default();
        let schema = json!({"items": [{"$ref": "../up.json#/a"}, {"$ref": "file:///etc/passwd"}]});
        library.add(Path::new("/home/me/s"), "d/a.json", Arc::new(schema));
        let told = |message: &str| unlocated(message, Some("file:///home/me/s/"), &library);
        assert_eq!(told("`file:///home/me/s/d/b.json#/x` is not there"), "`d/b.json#/x` is not there");
        assert_eq!(told("'file:///home/me/s2/x.json': no"), "'x.json': no");
        assert_eq!(told("file:///etc/passwd and 'file:///etc/shadow'"), "file:///etc/passwd and 'shadow'");
        assert_eq!(told("nothing"), "nothing");
        let told = unlocated("no `file:///home/me/s/up.json`", None, &library);
        assert_eq!(told, "no `../up.json#/a`");
    }
}
