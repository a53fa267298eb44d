//! Redacts file URLs in messages of the schema compiler, so that no caller learns where files lie on this machine. A
//! URL in the schemas folder is shortened to its path in the folder, any other to the text that the schema contains.

use crate::references::Library;

const SCHEME: &str = "file://";

/// Returns the message with every `file://` URL shortened. `folder` is the URL of the schemas folder, with a final
/// `/`.
pub(crate) fn redact_file_urls(message: &str, folder: Option<&str>, library: &Library) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(SCHEME) {
        out.push_str(&rest[..start]);
        let url = &rest[start..];
        // These characters are percent-encoded in a file URI, so the URL ends here.
        let end = url.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(url.len());
        out.push_str(shortened(&url[..end], folder, library));
        rest = &url[end..];
    }
    out.push_str(rest);
    out
}

fn shortened<'a>(url: &'a str, folder: Option<&str>, library: &'a Library) -> &'a str {
    let below = folder.and_then(|folder| url.strip_prefix(folder));
    let last_segment = || url.rsplit('/').next().unwrap_or_default();
    below.or_else(|| library.as_written(url)).unwrap_or_else(last_segment)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;
    use serde_json::json;

    #[test]
    fn a_url_is_shortened_to_its_path_or_as_written_or_to_its_last_segment() {
        let mut library = Library::default();
        let schema = json!({"items": [{"$ref": "../up.json#/a"}, {"$ref": "file:///etc/passwd"}]});
        library.add(Path::new("/home/me/s"), "d/a.json", Arc::new(schema));
        let redacted = |message: &str| redact_file_urls(message, Some("file:///home/me/s/"), &library);
        assert_eq!(redacted("`file:///home/me/s/d/b.json#/x` is not there"), "`d/b.json#/x` is not there");
        assert_eq!(redacted("'file:///home/me/s2/x.json': no"), "'x.json': no");
        assert_eq!(
            redacted("file:///etc/passwd and 'file:///etc/shadow'"),
            "file:///etc/passwd and 'shadow'"
        );
        assert_eq!(redacted("nothing"), "nothing");
        let redacted = redact_file_urls("no `file:///home/me/s/up.json`", None, &library);
        assert_eq!(redacted, "no `../up.json#/a`");
    }
}
