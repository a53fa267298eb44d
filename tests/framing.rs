//! Each line of input gets exactly one reply, in order, whatever the line contains.

use std::{
    io::Write,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::support::{Setup, peak_memory, random::Random, request, wait_until};

#[test]
fn ten_thousand_requests_at_once_get_ten_thousand_replies_in_order() {
    const COUNT: usize = 10_000;
    let mut server = Setup::fixtures().start();
    let mut stdin = server.take_stdin();
    let writer = std::thread::spawn(move || {
        let mut batch = String::new();
        for number in 0..COUNT {
            batch.push_str(&request(json!(number), "test_echo", json!({"value": number})).to_string());
            batch.push('\n');
        }
        stdin.write_all(batch.as_bytes()).expect("the server reads");
    });
    for number in 0..COUNT {
        assert_eq!(server.frame(), json!({"jsonrpc": "2.0", "id": number, "result": {"value": number}}));
    }
    writer.join().expect("writes");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.remaining_frames(), Vec::<String>::new());
}

/// A line and its expected reply: its id, and the number of its error if it is one.
struct Line {
    bytes: Vec<u8>,
    id: Value,
    expected: Expected,
}

enum Expected {
    Echo,
    Error(i64),
    TooLarge,
}

fn random_line(random: &mut Random, number: usize) -> Line {
    let echo = request(json!(number), "test_echo", json!({"value": "é"}));
    let without = |field: &str| {
        let mut message = echo.clone();
        message.as_object_mut().expect("an object").remove(field);
        message.to_string().into_bytes()
    };
    let with = |field: &str, value: Value| {
        let mut message = echo.clone();
        message[field] = value;
        message.to_string().into_bytes()
    };
    let text = echo.to_string().into_bytes();
    let (bytes, id, expected) = match random.below(14) {
        0..=3 => (text, json!(number), Expected::Echo),
        4 => {
            let end = 1 + random.below(text.len() - 1);
            let cut = text[..end].to_vec();
            (cut, Value::Null, Expected::Error(-32700))
        }
        5 => {
            let mut broken = text;
            let position = random.below(broken.len());
            broken[position] = 0xff;
            (broken, Value::Null, Expected::Error(-32700))
        }
        6 => (format!("[{echo}]").into_bytes(), Value::Null, Expected::Error(-32600)),
        7 => (without("jsonrpc"), json!(number), Expected::Error(-32600)),
        8 => (without("method"), json!(number), Expected::Error(-32600)),
        9 => (without("params"), json!(number), Expected::Error(-32600)),
        10 => (without("id"), Value::Null, Expected::Error(-32600)),
        11 => (with("extra", json!(1)), json!(number), Expected::Error(-32600)),
        12 => (with("id", Value::Null), Value::Null, Expected::Error(-32600)),
        _ => {
            let mut long = text;
            long.resize((1 << 20) + 1 + random.below(100_000), b' ');
            (long, Value::Null, Expected::TooLarge)
        }
    };
    Line { bytes, id, expected }
}

#[test]
fn five_thousand_good_and_bad_lines_get_one_reply_each_in_order() {
    const COUNT: usize = 5_000;
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut server = Setup::fixtures().arg("--log-level=off").start();
    let mut stdin = server.take_stdin();
    let (sender, expectations) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        for number in 0..COUNT {
            let mut line = random_line(&mut random, number);
            line.bytes.push(b'\n');
            stdin.write_all(&line.bytes).expect("the server reads");
            sender.send((line.id, line.expected)).expect("the test listens");
        }
    });
    let too_large = json!({
        "ok": false, "reason": "validation_failed",
        "errors": [{"path": "", "msg": "payload_too_large"}],
    });
    for (id, expected) in expectations {
        let frame = server.frame();
        assert_eq!(frame["id"], id, "{frame}");
        match expected {
            Expected::Echo => assert_eq!(frame["result"], json!({"value": "é"}), "{frame}"),
            Expected::TooLarge => assert_eq!(frame["result"], too_large, "{frame}"),
            Expected::Error(number) => {
                assert_eq!(frame["error"]["code"], json!(number), "{frame}");
                assert_eq!(frame["error"]["data"]["code"], json!("INVALID_REQUEST"), "{frame}");
            }
        }
    }
    writer.join().expect("writes");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.remaining_frames(), Vec::<String>::new());
}

#[test]
fn a_line_of_one_gibibyte_is_answered_within_bounded_memory_and_the_next_request_works() {
    let mut server = Setup::fixtures().start();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        server.write(&chunk);
    }
    server.write(b"\n");
    let frame = server.frame();
    assert_eq!(frame["result"]["errors"][0]["msg"], json!("payload_too_large"), "{frame}");
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    let peak = peak_memory(server.pid());
    assert!(peak < 64, "peak memory: {peak} MiB");
    server.finish();
}

#[test]
fn a_request_of_exactly_the_limit_is_accepted() {
    let mut server = Setup::fixtures().arg("--max-request-bytes=200").start();
    let mut line = request(json!(1), "test_echo", json!({"value": 1})).to_string().into_bytes();
    line.resize(200, b' ');
    server.write(&[&line[..], b"\n"].concat());
    assert_eq!(server.frame()["result"], json!({"value": 1}));
    server.write(&[&line[..], b" \n"].concat());
    assert_eq!(server.frame()["result"]["reason"], json!("validation_failed"));
    server.finish();
}

#[test]
fn ids_come_back_byte_for_byte() {
    let mut server = Setup::fixtures().start();
    let ids =
        [r#""a""#, "0", "-1", "1.0", "1e3", "12345678901234567890", r#""é""#, r#""\u00e9\n""#, "-0.0E+2"];
    for id in ids {
        let line = format!(r#"{{"jsonrpc":"2.0","method":"test_echo","params":{{"value":0}},"id":{id}}}"#);
        server.write(format!("{line}\n").as_bytes());
        assert_eq!(server.line(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"value":0}}}}"#));
    }
    server.finish();
}

#[test]
fn the_last_line_needs_no_newline_and_blank_lines_are_ignored() {
    let mut server = Setup::fixtures().start();
    let line = request(json!(7), "test_echo", json!({"value": 1})).to_string();
    server.write(format!("\n  \r\n{line}\r\n\n{}", line.replace('7', "8")).as_bytes());
    server.close_stdin();
    assert_eq!(server.frame()["id"], json!(7));
    assert_eq!(server.frame()["id"], json!(8));
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.remaining_frames(), Vec::<String>::new());
}

#[test]
fn a_duplicate_of_an_id_in_flight_is_refused_and_free_again_after_the_reply() {
    let mut server = Setup::fixtures().start();
    server.request(json!(1), "test_sleep", json!({"ms": 200}));
    server.request(json!("1"), "test_echo", json!({"value": 1}));
    server.write(b"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"test_echo\",\"params\":{\"value\":1}}\n");
    assert_eq!(server.frame()["result"], json!({"slept": 200}));
    for id in [json!("1"), json!(1.0)] {
        let refused = server.frame();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&id, &json!(-32600)), "{refused}");
    }
    server.request(json!("1"), "test_echo", json!({"value": 1}));
    assert_eq!(server.frame()["result"], json!({"value": 1}));
    server.finish();
}

#[test]
fn a_client_that_reads_nothing_causes_back_pressure_and_loses_nothing() {
    const COUNT: usize = 16_000;
    /// Of about 17 MB: the replies that may wait (1 MiB), the requests that may wait (64), two pipes, and a margin.
    const MOST_TAKEN: usize = 4_000;
    let mut server = Setup::fixtures().arg("--log-level=off").start_without_reader();
    let mut stdin = server.take_stdin();
    let input = stdin.as_fd().try_clone_to_owned().expect("a descriptor");
    let value = "x".repeat(1_000);
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let writer = std::thread::spawn(move || {
        for number in 0..COUNT {
            let line = request(json!(number), "test_echo", json!({"value": value}));
            writeln!(stdin, "{line}").expect("the server reads");
            counter.store(number + 1, Ordering::SeqCst);
        }
    });
    // Either the server sleeps although there is input, or it has read everything.
    let has_input = || rustix::io::ioctl_fionread(&input).expect("a pipe") > 0;
    wait_until("the server reads no more", || server.sleeps_while(has_input) || writer.is_finished());
    let taken = sent.load(Ordering::SeqCst);
    assert!(taken < MOST_TAKEN, "it read {taken} requests without a reader of its replies");
    drop(input);
    server.start_reading();
    for number in 0..COUNT {
        assert_eq!(server.frame()["id"], json!(number));
    }
    writer.join().expect("writes");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn unknown_notifications_and_responses_get_no_reply() {
    let mut server = Setup::fixtures().start();
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/whatever"}));
    server.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    server.send(&json!({"jsonrpc": "2.0", "id": 6, "error": {"code": 1, "message": "x"}}));
    assert_eq!(server.result("test_echo", json!({"value": 1})), json!({"value": 1}));
    server.finish();
}

#[test]
fn replies_wait_for_a_late_reader_after_the_end_of_input() {
    const COUNT: usize = 10_000;
    // Only a signal limits the wait for the reader. If the drain limited it, it would be this one.
    let mut server = Setup::fixtures().args(["--log-level=off", "--drain=1ms"]).start_without_reader();
    let mut stdin = server.take_stdin();
    for number in 0..COUNT {
        writeln!(stdin, "{}", request(json!(number), "test_echo", json!({"value": 0}))).expect("reads");
    }
    drop(stdin);
    // The output is full and has no reader. The server has to keep polling it.
    for _ in 0..3 {
        wait_until("the server waits", || !server.is_running() || server.sleeps_while(|| true));
        let sleeps = server.sleeps();
        wait_until("the server looks again", || !server.is_running() || server.sleeps() != sleeps);
        assert!(server.is_running(), "it gave up: {}", server.stderr());
    }
    server.start_reading();
    for number in 0..COUNT {
        assert_eq!(server.frame()["id"], json!(number));
    }
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn json_that_cannot_be_represented_is_refused_with_its_id() {
    let mut server = Setup::fixtures().start();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in ["1e400", "123456789012345678901", "0.12345678901234567890", r#""\ud800""#, &deep] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":"x","method":"test_echo","params":{{"value":{value}}}}}"#);
        server.write(format!("{line}\n").as_bytes());
        let frame = server.frame();
        assert_eq!(
            (&frame["id"], &frame["error"]["code"]),
            (&json!("x"), &json!(-32600)),
            "{value}: {frame}"
        );
    }
    for value in ["18446744073709551615", "-9223372036854775808", "1e-300", "0.1", "1e22"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test_echo","params":{{"value":{value}}}}}"#);
        server.write(format!("{line}\n").as_bytes());
        assert!(server.frame().get("result").is_some(), "{value}");
    }
    server.finish();
}
