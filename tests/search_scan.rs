//! A search answers at once: without an index it reads the files, and an index is built automatically.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    search_tools::{World, assert_refused, names, paths, positions, search},
    support::{Server, Setup, hash, hold_build_lock, pintle, request, rounds, run, skip, wait_until},
};

/// A few files of several kinds.
fn fill(world: &World) {
    world.write("a.rs", "fn needle() {}\nfn other() {}\n");
    world.write("b/c.txt", "one\nneedle here\nthree\n");
    world.write("b/d.bin", b"needle\0");
    world.write("large.txt", "needle\n".repeat(2000));
    world.write(".ignore", "*.log\n");
    world.write("x.log", "needle\n");
}

fn setup(world: &World) -> Setup {
    world.setup().args(["--max-file-bytes", "10000"])
}

fn status(server: &mut Server) -> Value {
    server.result("index_status", json!({}))
}

/// Waits until the index is complete.
fn wait_for_index(server: &mut Server) {
    wait_until("the index is complete", || {
        let status = status(server);
        status["ready"] == json!({"text": true, "words": true, "symbols": true})
            && status.get("building").is_none()
    });
}

#[test]
fn the_first_search_reads_the_files_and_starts_a_build_of_the_index() {
    let world = World::new();
    fill(&world);
    let mut server = setup(&world).start();
    assert_eq!(status(&mut server)["exists"], json!(false));
    assert!(!world.state().join("index").exists(), "asking for the state makes nothing");
    let scanned = search(&mut server, "literal", "needle");
    assert_eq!(positions(&scanned), [("a.rs".to_owned(), 1), ("b/c.txt".to_owned(), 2)]);
    assert_eq!((&scanned["indexed"], &scanned["generation"]), (&json!(false), &json!(0)), "{scanned}");
    assert_eq!((&scanned["total"], &scanned["truncated"]), (&json!(2), &json!(false)));
    let expected = json!({"files": 3, "skipped": {"binary": 1, "too_large": 1}, "complete": true});
    assert_eq!(scanned["coverage"], expected);
    assert_eq!(scanned["hits"][1]["hash"], json!(hash("one\nneedle here\nthree\n")));
    wait_for_index(&mut server);
    let indexed = search(&mut server, "literal", "needle");
    assert_eq!((&indexed["indexed"], &indexed["generation"]), (&json!(true), &json!(1)), "{indexed}");
    assert_eq!(indexed["hits"], scanned["hits"]);
    server.finish();
}

#[test]
fn words_and_symbols_wait_for_their_part_of_the_first_index() {
    for (how, query) in [("words", "needle"), ("symbol", "needle")] {
        let world = World::new();
        fill(&world);
        let mut server = setup(&world).start();
        let answer = search(&mut server, how, query);
        assert_eq!(paths(&answer)[0], "a.rs", "{how}: {answer}");
        assert_eq!(answer["indexed"], json!(true), "{how}: {answer}");
        server.finish();
    }
}

#[test]
fn a_search_for_words_ends_with_the_deadline_if_the_build_takes_longer() {
    let world = World::new();
    fill(&world);
    let _lock = hold_build_lock(&world.root(), &world.state());
    let mut server = setup(&world).args(["--timeout", "search=300ms"]).start();
    let frame = server.call("search", json!({"query": "needle", "match": "words"}));
    assert_eq!(frame["error"]["data"]["code"], json!("TOOL_TIMEOUT"), "{frame}");
    // The build that the search has started waits for the lock, and the status reports it.
    wait_until("the build is reported", || status(&mut server)["building"]["phase"] == json!("wait"));
    let warnings = server.result("check_status", json!({}))["warnings"].to_string();
    assert!(warnings.contains("being built in the background"), "{warnings}");
    server.finish();
}

#[test]
fn a_scan_with_a_full_page_reports_that_it_is_incomplete_and_its_pages_have_all_hits() {
    let world = World::new();
    for number in 0..40 {
        world.write(&format!("{number:02}.txt"), "needle\nother\nneedle\n");
    }
    let _lock = hold_build_lock(&world.root(), &world.state());
    let mut server = world.start();
    let complete = search(&mut server, "literal", "needle");
    assert_eq!((&complete["total"], &complete["coverage"]["files"]), (&json!(80), &json!(40)));
    let mut hits = Vec::new();
    let mut arguments = json!({"query": "needle", "top": 7});
    loop {
        let page = server.result("search", arguments.clone());
        assert_eq!(page["indexed"], json!(false));
        hits.extend(page["hits"].as_array().expect("hits").clone());
        let Some(cursor) = page.get("cursor") else {
            assert_eq!((&page["total"], &page["coverage"]["complete"]), (&json!(80), &json!(true)), "{page}");
            break;
        };
        assert_eq!(page["coverage"]["complete"], json!(false), "{page}");
        assert!(page["coverage"]["files"].as_u64() < Some(40), "it stops when it has enough: {page}");
        assert!(page.get("total").is_none() && page["atLeast"].as_u64() > Some(hits.len() as u64), "{page}");
        arguments["cursor"] = cursor.clone();
    }
    assert_eq!(json!(hits), complete["hits"]);
    server.finish();
}

#[test]
fn a_scan_sees_edits_through_the_tools_and_from_outside() {
    let world = World::new();
    fill(&world);
    let _lock = hold_build_lock(&world.root(), &world.state());
    let mut server = setup(&world).start();
    let hit = &search(&mut server, "literal", "needle here")["hits"][0];
    let edit =
        json!({"path": hit["path"], "hash": hit["hash"], "lines": [2, 3], "old": hit["text"], "new": "gone"});
    server.result("text.replace", edit);
    world.write("new/file.txt", "needle here\n");
    assert_eq!(paths(&search(&mut server, "literal", "needle here")), ["new/file.txt"]);
    server.finish();
}

#[test]
fn a_scan_opens_and_counts_no_file_that_its_caller_may_not_read() {
    if !Command::new("strace").arg("-V").output().is_ok_and(|probe| probe.status.success()) {
        return skip("there is no strace");
    }
    let world = World::new();
    fill(&world);
    for number in 0..50 {
        world.write(&format!("b/secret/closed_{number}.txt"), "needle\n");
        world.write(&format!("open/{number}.txt"), "needle\n");
    }
    // A build would read everything. None can start as long as the lock is held.
    let _lock = hold_build_lock(&world.root(), &world.state());
    let trace = world.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=open,openat,openat2", "-o"]).arg(&trace);
    command.arg(pintle().get_program()).args(["serve", "--root"]).arg(world.root());
    command.args(["--scope", "read:/open/"]);
    command.env("PINTLE_STATE_DIR", world.state()).env("MCP_READY_FILE", world.path("ready"));
    // A hint may take as long as its search took, which may be too short on a busy machine: one of several is long
    // enough.
    const HINTS: usize = 8;
    let asked = [
        vec![json!({"query": "NEEDLE"}); HINTS],
        vec![json!({"query": "needle", "top": 1000})],
        vec![json!({"query": "needle", "count": true})],
        vec![json!({"query": "needle", "path": "b/secret/closed_1.txt"})],
        vec![json!({"query": "needle", "path": "closed_1.txt"})],
    ]
    .concat();
    let input: String = asked
        .iter()
        .enumerate()
        .map(|(id, arguments)| format!("{}\n", request(json!(id), "search", arguments.clone())))
        .collect();
    let (code, output, errors) = run(&mut command, input.as_bytes());
    if code != Some(0) && output.is_empty() {
        return skip(&format!("strace cannot trace here: {errors}"));
    }
    assert_eq!(code, Some(0), "{errors}");
    let mut answers = vec![Value::Null; asked.len()];
    for line in output.lines() {
        let frame: Value = serde_json::from_str(line).expect("JSON");
        answers[usize::try_from(frame["id"].as_u64().expect("an id")).expect("small")] =
            frame["result"].clone();
    }
    let (hints, answers) = answers.split_at(HINTS);
    let mut hints = hints.iter().filter_map(|answer| answer["hint"].as_str()).peekable();
    assert!(hints.peek().is_some(), "no search had time for a hint");
    assert!(hints.all(|hint| hint.contains("50 lines")));
    assert_eq!((&answers[0]["total"], &answers[0]["coverage"]["files"]), (&json!(50), &json!(50)));
    assert!(answers[0]["coverage"]["skipped"].as_object().expect("reasons").is_empty(), "{}", answers[0]);
    assert_eq!(
        (&answers[1]["total"], &answers[1]["files"].as_array().map(Vec::len)),
        (&json!(50), &Some(50))
    );
    for answer in &answers[2..] {
        assert_eq!(answer["total"], json!(0), "{answer}");
        let reported = answer.to_string().replace("b/secret/closed_1.txt", "").replace("closed_1.txt", "");
        assert!(!reported.contains("secret") && !reported.contains("closed"), "{answer}");
    }
    let opened = fs::read_to_string(&trace).expect("a trace");
    assert!(opened.contains("open/7.txt"), "nothing was traced");
    assert!(!opened.contains("closed_"), "files were opened that may not be read");
}

#[test]
fn text_is_searched_without_a_usable_state_folder() {
    let world = World::new();
    fill(&world);
    // There is a file where the index folder would be.
    fs::create_dir(world.state()).expect("a folder");
    let mut server = setup(&world).start();
    fs::write(world.state().join("index"), "in the way").expect("writes");
    for _ in 0..2 {
        let answer = search(&mut server, "literal", "needle");
        assert_eq!((&answer["total"], &answer["indexed"]), (&json!(2), &json!(false)), "{answer}");
    }
    wait_until("the build has failed", || status(&mut server).get("notBuilt").is_some());
    let error = server.error("search", json!({"query": "needle", "match": "words"}));
    assert_eq!(error["code"], json!("NO_INDEX"), "{error}");
    let checked = server.result("check_status", json!({}));
    let text = checked["capabilities"].as_array().expect("capabilities");
    assert!(text.contains(&json!({"name": "text search", "state": "works"})), "{checked}");
    assert!(checked["warnings"].to_string().contains("built automatically"), "{checked}");
    server.finish();
}

#[test]
fn the_home_folder_is_not_indexed_automatically_and_the_status_says_so() {
    let world = World::new();
    fill(&world);
    let mut server = setup(&world).env("HOME", world.root()).start();
    for _ in 0..2 {
        let answer = search(&mut server, "literal", "needle");
        assert_eq!((&answer["total"], &answer["indexed"]), (&json!(2), &json!(false)), "{answer}");
    }
    for how in ["words", "symbol"] {
        let error = server.error("search", json!({"query": "needle", "match": how}));
        assert_eq!(error["code"], json!("NO_INDEX"), "{error}");
        assert!(
            error["message"].as_str().is_some_and(|reported| reported.contains("home folder")),
            "{error}"
        );
        assert!(error["hint"].as_str().is_some_and(|reported| reported.contains("index_build")), "{error}");
    }
    let reported = status(&mut server);
    assert!(
        reported["notBuilt"].as_str().is_some_and(|reported| reported.contains("home folder")),
        "{reported}"
    );
    assert!(!world.state().join("index").exists(), "nothing was built");
    // An explicit request builds the index.
    server.result("index_build", json!({}));
    assert_eq!(search(&mut server, "symbol", "needle")["indexed"], json!(true));
    assert!(status(&mut server).get("notBuilt").is_none());
    server.finish();
}

#[test]
fn the_setting_is_a_flag_a_variable_and_a_key() {
    let world = World::new();
    fill(&world);
    let config = world.path("pintle.toml");
    fs::write(&config, "index = \"manual\"\n").expect("writes");
    let refused = |mut server: Server| {
        let error = server.error("search", json!({"query": "needle"}));
        assert_eq!(error["code"], json!("NO_INDEX"), "{error}");
        assert!(!world.state().join("index").exists());
        server.finish();
    };
    refused(setup(&world).args(["--index", "manual"]).start());
    refused(setup(&world).env("PINTLE_INDEX", "manual").start());
    refused(setup(&world).arg("--config").arg(&config).start());
    let setup = setup(&world).arg("--config").arg(&config).args(["--index", "auto"]);
    let mut server = setup.start();
    assert_eq!(search(&mut server, "literal", "needle")["total"], json!(2));
    server.finish();
}

/// Files that take a while to be indexed.
fn fill_large(world: &World) {
    for number in 0..rounds(120, 400) {
        let text: String =
            (0..300).map(|line| format!("fn name_{number}_{line}() {{ let common = {line}; }}\n")).collect();
        world.write(&format!("{}/{number}.rs", number % 10), text);
    }
}

#[test]
fn a_kill_or_a_shutdown_at_any_moment_of_the_background_build_does_no_harm() {
    let world = World::new();
    fill_large(&world);
    for round in 0..rounds(6, 60) {
        let _ = fs::remove_dir_all(world.state());
        let mut server = world.start();
        assert_eq!(search(&mut server, "literal", "name_7_3(")["total"], json!(1));
        // Each round ends the build in another phase, if that phase lasts long enough.
        let phase = ["wait", "walk", "text", "words", "symbols", "none"][round % 6];
        let mut polls = 0;
        loop {
            let reported = status(&mut server);
            polls += 1;
            if reported["building"]["phase"] == json!(phase)
                || reported.get("building").is_none()
                || polls > 2000
            {
                break;
            }
        }
        if round % 2 == 0 {
            server.signal_if_running(rustix::process::Signal::KILL);
            server.wait();
        } else {
            server.finish();
        }
        let mut server = world.start();
        let answer = search(&mut server, "literal", "name_7_3(");
        assert_eq!(paths(&answer), ["7/7.rs"], "{phase}");
        let answer = search(&mut server, "symbol", "name_11_5");
        assert_eq!(answer["hits"][0]["path"], json!("1/11.rs"), "{phase}");
        wait_for_index(&mut server);
        let leftover: Vec<_> =
            names(&world.index()).into_iter().filter(|name| name.contains("scratch")).collect();
        assert!(leftover.is_empty(), "{phase}: {leftover:?}");
        server.finish();
    }
}

#[test]
fn two_servers_on_a_root_without_an_index_build_one_and_both_answer() {
    let world = World::new();
    fill_large(&world);
    let (mut one, mut two) = (world.start(), world.start());
    for server in [&mut one, &mut two] {
        assert_eq!(search(server, "literal", "name_9_9(")["total"], json!(1));
    }
    for server in [&mut one, &mut two] {
        assert_eq!(search(server, "symbol", "name_9_9")["hits"][0]["path"], json!("9/9.rs"));
        wait_for_index(server);
        let answer = search(server, "literal", "name_9_9(");
        assert_eq!(
            (&answer["total"], &answer["indexed"], &answer["generation"]),
            (&json!(1), &json!(true), &json!(1))
        );
    }
    one.finish();
    two.finish();
}

#[test]
fn the_build_continues_when_the_search_that_started_it_is_cancelled() {
    let world = World::new();
    fill_large(&world);
    let mut server = world.start();
    server.send(&request(json!("s"), "search", json!({"query": "name_9_9", "match": "symbol"})));
    wait_until("the build has begun", || world.state().join("index").exists());
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "s"}}));
    let reply = server.frame();
    // On a fast machine the build may end before the cancel.
    if reply.get("result").is_none() {
        assert_eq!(reply["error"]["data"]["code"], json!("CANCELLED"), "{reply}");
    }
    // A request for the status starts no build.
    wait_for_index(&mut server);
    server.finish();
}

#[test]
fn the_end_of_the_server_ends_its_background_build() {
    let world = World::new();
    fill_large(&world);
    let mut server = world.start();
    search(&mut server, "literal", "absent");
    wait_until("the build has its lock", || {
        world.index_if_any().is_some_and(|index| index.join("lock").exists())
    });
    server.finish();
    let lock = fs::File::open(world.index().join("lock")).expect("a lock");
    lock.try_lock().expect("no build holds the lock");
    drop(lock);
    let mut next = world.start();
    assert_eq!(search(&mut next, "literal", "name_9_9(")["total"], json!(1));
    wait_for_index(&mut next);
    next.finish();
}

#[test]
fn a_search_without_hits_suggests_a_reason() {
    let world = World::of(&[
        ("src/parser.rs", "fn Needle() {}\nfn NEEDLE() {}\n"),
        ("src/lib.rs", "nothing\n"),
        (".ignore", "*.log\n"),
        ("x.log", "absent\n"),
        ("y.log", "absent\n"),
    ]);
    let scanning = world.path("elsewhere");
    let _lock = hold_build_lock(&world.root(), &scanning);
    let setup = Setup::new().arg("--root").arg(world.root()).env("PINTLE_STATE_DIR", &scanning);
    for mut server in [world.built(), setup.start()] {
        let mut hint = |arguments: Value| {
            let answer = server.result("search", arguments.clone());
            assert_eq!(answer["total"], json!(0), "{arguments}: {answer}");
            answer.get("hint").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        // A check that takes longer than the search is skipped, so a busy machine may need more than one try.
        wait_until("the hint reports the other case", || {
            hint(json!({"query": "needle"})).contains("ignoring case, 2 lines match")
        });
        wait_until("the hint reports the other case", || {
            hint(json!({"query": "needle", "count": true})).contains("ignoring case, 2 lines match")
        });
        wait_until("the hint reports ignored files", || {
            hint(json!({"query": "absent"})).contains("2 files are left out by ignore rules")
        });
        assert!(
            !hint(json!({"query": "needle", "case": "insensitive", "path": "src/lib.rs"}))
                .contains("another case")
        );
        for (path, near) in [
            (json!("scr/parser.rs"), "src/parser.rs"),
            (json!("srcs"), "`src`"),
            (json!("src/parsr.rs"), "`src/parser.rs`"),
            (json!(["parser.rss"]), "nothing at `parser.rss`"),
            (json!("*.py"), "`path` matches no searched file"),
            (json!("x.log"), "exists, but no file there is searched"),
        ] {
            wait_until(near, || hint(json!({"query": "Needle", "path": path})).contains(near));
        }
        let found = server.result("search", json!({"query": "Needle"}));
        assert!(found.get("hint").is_none(), "{found}");
        assert_refused(&mut server, "search", json!({"query": "x", "lang": "rus"}), &["rust"]);
        server.finish();
    }
}

#[test]
fn whole_words_context_and_counts_are_as_in_ripgrep() {
    let world = World::of(&[("a.txt", "1\nthe needle\n3\nneedles\n5\n"), ("b.txt", "needle needle\n")]);
    let mut server = world.built();
    let found = |answer: &Value| positions(answer);
    let answer = server.result("search", json!({"query": "needle", "word": true}));
    assert_eq!(found(&answer), [("a.txt".to_owned(), 2), ("b.txt".to_owned(), 1)]);
    for (more, before, after) in [
        (json!({"before": 1}), json!(["1"]), json!([])),
        (json!({"after": 2}), json!([]), json!(["3", "needles"])),
        (json!({"context": 1, "after": 0}), json!(["1"]), json!([])),
        (json!({"context": 1, "before": 0}), json!([]), json!(["3"])),
    ] {
        let mut arguments = json!({"query": "the needle"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let hit = &server.result("search", arguments)["hits"][0];
        assert_eq!((&hit["before"], &hit["after"]), (&before, &after), "{more}");
    }
    let counted = server.result("search", json!({"query": "needle", "count": true}));
    assert_eq!(counted["files"], json!([{"path": "a.txt", "count": 2}, {"path": "b.txt", "count": 1}]));
    assert_eq!((&counted["total"], &counted["truncated"]), (&json!(3), &json!(false)));
    assert!(counted.get("hits").is_none(), "{counted}");
    for (arguments, pieces) in [
        (json!({"query": "x", "match": "words", "count": true}), &["count", "literal"][..]),
        (json!({"query": "x", "match": "symbol", "word": true}), &["word", "literal"]),
        (json!({"query": "x", "count": true, "cursor": "x"}), &["cursor"]),
        (json!({"query": "x", "before": 51}), &["before"]),
    ] {
        assert_refused(&mut server, "search", arguments, pieces);
    }
    for number in 0..1005 {
        world.write(&format!("many/{number:04}.txt"), "needle\nneedle\n");
    }
    wait_until("the files are seen", || {
        let counted = server.result("search", json!({"query": "needle", "count": true, "path": "many"}));
        counted["total"] == json!(2010)
            && counted["truncated"] == json!(true)
            && counted["files"].as_array().map(Vec::len) == Some(1000)
    });
    server.finish();
}

#[test]
fn the_first_page_of_many_hits_has_no_total() {
    let world = World::of(&[("a.txt", &"needle\n".repeat(9))]);
    let mut server = world.built();
    let page = server.result("search", json!({"query": "needle", "top": 1}));
    assert!(page.get("total").is_none(), "{page}");
    assert_eq!((&page["atLeast"], &page["truncated"]), (&json!(2), &json!(true)));
    let page = server.result("search", json!({"query": "needle", "top": 9}));
    assert_eq!((&page["total"], page.get("atLeast")), (&json!(9), None));
    server.finish();
}

#[test]
fn a_call_for_the_first_version_is_refused_and_names_the_second() {
    let world = World::of(&[("a.txt", "needle\n")]);
    let mut server = world.start();
    let discovered = server.result("mcp.discover", json!({}));
    for tool in discovered["tools"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        if ["search", "index_build", "index_status", "workspace_status"].contains(&name) {
            assert_eq!(tool["schemaVersion"], json!(2), "{name}");
            let input = if name == "search" { json!({"query": "needle"}) } else { json!({}) };
            let asked = |major: u64| json!({"tool": format!("mcp.tool:{name}"), "input": input, "version": {"major": major}});
            assert_refused(&mut server, "mcp.tool.invoke", asked(1), &["this server has 2"]);
            server.result("mcp.tool.invoke", asked(2));
        }
    }
    server.finish();
}
