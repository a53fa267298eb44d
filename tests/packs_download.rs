//! Packs from an address: only over TLS, only with a checksum, and never more than fits.

use std::{io::Write, process::Command};

use serde_json::json;

use crate::support::{
    https::{HttpsServer, respond},
    packs::{World, lamps, sha256},
    run,
};

/// `pintle pack add` that trusts the server's authority.
fn add(world: &World, server: &HttpsServer, arguments: &[&str]) -> Command {
    let authority = world.write("authority.pem", server.authority.as_bytes());
    let mut command = world.command(["add"].iter().chain(arguments));
    command.env("SSL_CERT_FILE", authority);
    command
}

/// A server that has one pack, and redirects to it and elsewhere.
fn start() -> HttpsServer {
    HttpsServer::start(|path, to| {
        let redirect = |to: &mut dyn Write, location: &str| {
            respond(to, 302, &format!("location: {location}\r\n"), b"");
        };
        match path.split('?').next().unwrap_or_default() {
            "/lamps.zip" => respond(to, 200, "", &lamps("remote")),
            "/moved.zip" => redirect(to, "/lamps.zip"),
            "/insecure.zip" => redirect(to, "http://127.0.0.1:9/lamps.zip"),
            "/local.zip" => redirect(to, "file:///etc/passwd"),
            "/loop.zip" => redirect(to, "/loop.zip"),
            "/short.zip" => {
                let _ = to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nPK\x03\x04");
            }
            "/large.zip" => {
                let _ = to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 67108865\r\n\r\nPK\x03\x04");
            }
            "/endless.zip" => {
                let _ = to.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
                // Not really without an end: a test that fails must not fill the disk.
                let _ = (0..1200).try_for_each(|_| to.write_all(&[0; 64 << 10]));
            }
            _ => respond(to, 404, "", b"not here"),
        }
    })
}

#[test]
fn a_pack_is_downloaded_over_tls_and_its_checksum_is_verified() {
    let (world, server) = (World::default(), start());
    let right = sha256(&lamps("remote"));
    let (code, _, errors) =
        run(&mut add(&world, &server, &[&server.url("/lamps.zip"), "--sha256", &right]), b"");
    assert_eq!(code, Some(0), "{errors}");
    let pack = world.list()[0].clone();
    assert_eq!((&pack["name"], &pack["source"]), (&json!("lamps"), &json!(server.url("/lamps.zip"))));
    assert_eq!(pack["sha256"], json!(right));
    // What is there already is not downloaded again.
    let count = server.requests().len();
    let again = [&server.url("/lamps.zip"), "--sha256", &right];
    assert_eq!(run(&mut add(&world, &server, &again), b"").0, Some(0));
    assert_eq!(server.requests().len(), count);
    // A redirect is followed; what may be secret in an address is neither kept nor shown.
    let secret = server.url("/moved.zip?signature=hunter2").replace("https://", "https://me:hunter2@");
    let (code, _, errors) = run(&mut add(&world, &server, &[&secret, "--sha256", &right]), b"");
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(world.list()[1]["source"], json!(server.url("/moved.zip")));
    assert!(!errors.contains("hunter2"), "{errors}");
}

#[test]
fn a_download_that_cannot_be_trusted_is_refused_and_nothing_is_left() {
    let (world, server) = (World::default(), start());
    world.add("lamps", &lamps("old"));
    let before = world.snapshot();
    let right = sha256(&lamps("remote"));
    let url = |path: &str| server.url(path);
    let insecure = url("/lamps.zip").replace("https:", "http:");
    for (address, sum, expected) in [
        (url("/lamps.zip"), None, ["INVALID_REQUEST", "--sha256"]),
        (insecure, Some(&right), ["INVALID_REQUEST", "https only"]),
        ("ftp://127.0.0.1/lamps.zip".into(), Some(&right), ["INVALID_REQUEST", "https only"]),
        ("https://".into(), Some(&right), ["INVALID_REQUEST", "address"]),
        (url("/lamps.zip"), Some(&sha256(b"x")), ["DOWNLOAD_VERIFY_FAILED", "checksum is wrong"]),
        (url("/nothing.zip?hunter2"), Some(&right), ["UPSTREAM_FAILED", "status 404"]),
        (url("/insecure.zip"), Some(&right), ["UPSTREAM_FAILED", "redirects"]),
        (url("/local.zip"), Some(&right), ["UPSTREAM_FAILED", "redirects"]),
        (url("/loop.zip"), Some(&right), ["UPSTREAM_FAILED", "redirects"]),
        (url("/short.zip"), Some(&right), ["UPSTREAM_FAILED", "cannot be downloaded"]),
        (url("/large.zip"), Some(&right), ["ARCHIVE_TOO_LARGE", "67108864 bytes"]),
        (url("/endless.zip"), Some(&right), ["ARCHIVE_TOO_LARGE", "67108864 bytes"]),
    ] {
        let mut arguments = vec![address.as_str(), "--replace", "--name", "lamps"];
        arguments.extend(sum.into_iter().flat_map(|sum| ["--sha256", sum]));
        let (code, _, errors) = run(&mut add(&world, &server, &arguments), b"");
        assert_eq!(code, Some(2), "{address}: {errors}");
        assert!(expected.iter().all(|expected| errors.contains(expected)), "{address}: {errors}");
        assert!(!errors.contains("hunter2"), "{address}: {errors}");
        assert_eq!(world.snapshot(), before, "{address}");
    }
    let loops = server.requests().iter().filter(|path| *path == "/loop.zip").count();
    assert_eq!(loops, 6, "a redirect is followed five times");
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (world, server, other) = (World::default(), start(), start());
    let right = sha256(&lamps("remote"));
    let arguments = [&server.url("/lamps.zip"), "--sha256", &right];
    // The authority of another server.
    let (code, _, errors) = run(&mut add(&world, &other, &arguments), b"");
    assert_eq!(code, Some(2));
    assert!(errors.contains("UPSTREAM_FAILED") && errors.contains("certificate"), "{errors}");
    assert!(errors.contains("SSL_CERT_FILE"), "{errors}");
    assert_eq!(server.requests(), Vec::<String>::new());
    assert!(world.snapshot().len() <= 1, "only the folder of packs may be there");
}
