use super::*;
use proptest::prelude::*;

fn terms(text: &[u8]) -> Vec<String> {
    let mut terms = Vec::new();
    tokenize(text, |token| {
        let text = String::from_utf8_lossy(&text[token.range.clone()]).to_lowercase();
        if text.len() <= LONGEST_TERM {
            assert_eq!(token.term, Term::of_lower(&text), "{text}");
        }
        terms.push(text);
    });
    terms
}

#[test]
fn words_fall_into_parts_and_a_whole() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("Plain PLAIN pLAIN", "plain plain p lain plain"),
        ("getHTTPResponse_code2", "get http response code 2 gethttpresponse_code2"),
        ("file_open", "file open file_open"),
        ("__init__", "init"),
        ("_a__b_", "a b a__b"),
        ("HTTPServer", "http server httpserver"),
        ("AServer", "a server aserver"),
        ("aB", "a b ab"),
        ("AB", "ab"),
        ("Ab", "ab"),
        ("ABc", "a bc abc"),
        ("x86_64", "x 86 64 x86_64"),
        ("u8", "u 8 u8"),
        ("utf8ToUTF16", "utf 8 to utf 16 utf8toutf16"),
        ("A1B2c3", "a 1 b 2 c 3 a1b2c3"),
        ("V2X", "v 2 x v2x"),
        ("kebab-case.dot", "kebab case dot"),
        ("a(b)", "a b"),
        ("_ __ ___", ""),
        ("42 404 12345 0x1f 0xdeadbeef 3d 10ms 100ms 1_0_", "42 404 0x1f 3d 10ms 1_0"),
        ("don't", "don t"),
    ] {
        assert_eq!(terms(text.as_bytes()).join(" "), expected, "{text}");
    }
}

#[test]
fn letters_beyond_ascii_are_letters() {
    for (text, expected) in [
        ("größe", "größe"),
        ("GrößeÄndern", "größe ändern größeändern"),
        ("ÄNDERNSatz_ü2", "ändern satz ü 2 ändernsatz_ü2"),
        ("„wort“—wort…", "wort wort"),
        ("日本語 テスト", "日本語 テスト"),
        ("Ελλάδα_ΑΘήνα", "ελλάδα α θήνα ελλάδα_αθήνα"),
        ("5µ 5000µ µ5", "5µ µ 5 µ5"),
        ("é_", "é"),
        ("a\u{a0}b", "a b"),
    ] {
        assert_eq!(terms(text.as_bytes()).join(" "), expected, "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_separate() {
    assert_eq!(terms(b"one\xfftwo\xc3three\xe2\x82four").join(" "), "one two three four");
    assert_eq!(terms(b"\xff\xfe\x00a\x00b\xc3").join(" "), "a b");
    assert_eq!(terms(b"\xc3\xa9\xc3").join(" "), "é");
}

#[test]
fn long_terms_are_cut_and_longer_words_left_out() {
    let long = "a".repeat(100);
    assert_eq!(terms(long.as_bytes()), ["a".repeat(64)]);
    assert_eq!(terms(format!("{long}_{long}").as_bytes()), vec!["a".repeat(64); 3]);
    assert!(terms("a".repeat(257).as_bytes()).is_empty());
    assert!(terms("aB".repeat(129).as_bytes()).is_empty());
    assert!(terms("é".repeat(129).as_bytes()).is_empty());
    let mut cut = Vec::new();
    tokenize("é".repeat(33).as_bytes(), |token| cut.push(token.term));
    assert_eq!(cut, [Term::of_lower(&"é".repeat(32))]);
}

#[test]
fn a_token_knows_its_place_and_how_many_parts_it_is_made_of() {
    let mut tokens = Vec::new();
    tokenize(b"  fileOpen x", |token| tokens.push((token.range, token.parts)));
    assert_eq!(tokens, [(2..6, 1), (6..10, 1), (2..10, 2), (11..12, 1)]);
}

proptest! {
    /// Of ASCII, eight bytes are looked at together; beyond it, each character by itself. They must agree.
    #[test]
    fn both_ways_of_splitting_agree(text in "[aB2_ ]{0,200}|([a-z]{1,9}|[A-Z]{1,9}|[0-9]{1,3}|_){1,40}") {
        let mut slow = Vec::new();
        let mut position = 0;
        while position < text.len() {
            match text.as_bytes()[position] {
                b' ' | b'_' => position += 1,
                _ => position = beyond_ascii(text.as_bytes(), position, &mut |token| slow.push((token.term, token.parts))),
            }
        }
        let mut fast = Vec::new();
        tokenize(text.as_bytes(), |token| fast.push((token.term, token.parts)));
        prop_assert_eq!(fast, slow);
    }
}
