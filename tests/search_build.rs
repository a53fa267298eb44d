//! The index: built in phases, refreshed in parts, and never trusted when it is incomplete. Whatever interrupts a
//! build, the old index still answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt, fs::symlink, net::UnixListener},
    },
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::inotify;
use serde_json::{Value, json};

use crate::{
    search_tools::{World, names, paths, search},
    support::{Server, hash, pintle, random::Random, request, rounds, run, skip, wait_until},
};

/// Files of several languages, each with a word that all files have and one that only it has.
fn fill(world: &World, count: usize, size: usize) {
    for number in 0..count {
        let (ending, start, end) = [
            ("rs", "fn ", "() { let x = 1; }"),
            ("py", "def ", "():\n    return 1"),
            ("js", "function ", "() { return 1; }"),
            ("c", "int ", "(void) { return 1; }"),
            ("go", "func ", "() int { return 1 }"),
            ("txt", "about ", " and so on"),
        ][number % 6];
        let mut text = format!("common only{number}x\n");
        let mut line = 0;
        while text.len() < size {
            text.push_str(&format!("{start}name_{number}_{line}{end}\n"));
            line += 1;
        }
        world.write(&format!("{}/{number}.{ending}", number % 10), text);
    }
}

/// A server that builds no index automatically.
fn with_manual_index(world: &World) -> Server {
    world.setup().args(["--index", "manual"]).start()
}

/// The files in the index folder that do not belong to the current generation.
fn leftovers(world: &World, what: &str) -> Vec<String> {
    let folder = world.index();
    let manifest = fs::read(folder.join("manifest")).unwrap_or_else(|error| panic!("{what}: {error}"));
    let manifest = String::from_utf8_lossy(&manifest).into_owned();
    let is_left =
        |name: &String| name != "manifest" && name != "lock" && !manifest.contains(&format!("\"{name}\""));
    names(&folder).into_iter().filter(is_left).collect()
}

/// Asserts that the index folder has only the files of the current generation.
fn assert_clean(world: &World, what: &str) {
    assert_eq!(leftovers(world, what), Vec::<String>::new(), "{what}: {:?}", names(&world.index()));
}

/// How many segments the index has.
fn segments(world: &World) -> usize {
    names(&world.index()).iter().filter(|name| name.ends_with("-text")).count()
}

fn build_with_progress(server: &mut Server, id: &str, arguments: Value) {
    let mut message = request(json!(id), "index_build", arguments);
    message["meta"] = json!({"progressToken": id});
    server.send(&message);
}

#[test]
fn without_automatic_builds_a_search_says_how_to_build_an_index() {
    let world = World::of(&[("a.rs", "fn needle() {}\n")]);
    let mut server = with_manual_index(&world);
    for how in ["literal", "regex", "words", "symbol"] {
        let frame = server.call("search", json!({"query": "needle", "match": how}));
        assert_eq!(frame["error"]["code"], json!(409), "{frame}");
        let error = &frame["error"]["data"];
        assert_eq!(error["code"], json!("NO_INDEX"), "{frame}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("index_build")), "{frame}");
    }
    let status = server.result("index_status", json!({}));
    assert_eq!((&status["exists"], &status["generation"]), (&json!(false), &json!(0)), "{status}");
    assert!(!world.state().join("index").exists(), "asking makes nothing");
    let built = server.result("index_build", json!({}));
    assert_eq!(
        (&built["files"], &built["read"], &built["found"]),
        (&json!(1), &json!(1), &json!(1)),
        "{built}"
    );
    assert!(built.get("rebuilt").is_none(), "{built}");
    assert_eq!(built["ready"], json!({"text": true, "words": true, "symbols": true}));
    for how in ["literal", "regex", "words", "symbol"] {
        assert_eq!(paths(&search(&mut server, how, "needle")), ["a.rs"], "{how}");
    }
    let status = server.result("index_status", json!({}));
    assert_eq!((&status["exists"], &status["generation"]), (&json!(true), &built["generation"]), "{status}");
    assert_eq!((&status["files"], &status["bytes"]), (&json!(1), &json!(15)), "{status}");
    assert_eq!(status["languages"], json!({"rust": 1}));
    assert_clean(&world, "after a build");
    server.finish();
}

#[test]
fn an_empty_root_has_an_index_too() {
    let world = World::new();
    let mut server = world.built();
    assert_eq!(search(&mut server, "literal", "x")["total"], json!(0));
    assert_eq!(search(&mut server, "words", "x")["total"], json!(0));
    assert_eq!(search(&mut server, "symbol", "x")["total"], json!(0));
    server.result("file.create", json!({"path": "a.rs", "content": "fn first() {}\n"}));
    for how in ["literal", "regex", "words", "symbol"] {
        assert_eq!(paths(&search(&mut server, how, "first")), ["a.rs"], "{how}");
    }
    server.finish();
}

#[test]
fn a_build_that_is_cancelled_leaves_the_old_index_and_nothing_else() {
    let world = World::new();
    fill(&world, 20, 500);
    let mut server = world.built();
    let before = names(&world.index());
    let complete = search(&mut server, "literal", "common")["hits"].clone();
    let count = rounds(400, 2_000);
    fill(&world, count, 20_000);
    let mut phases = BTreeSet::new();
    // Progress is reported four times a second, so a fast machine may end a phase before it is reported.
    for round in 0..100 {
        if round >= rounds(3, 18) && !phases.is_empty() {
            break;
        }
        let phase = ["text", "words", "symbols"][round % 3];
        build_with_progress(&mut server, "build", json!({"mode": "full"}));
        let mut is_cancelled = false;
        let reply = loop {
            let frame = server.frame();
            if frame.get("id").is_some() {
                break frame;
            }
            if !is_cancelled && frame["params"]["phase"] == json!(phase) {
                is_cancelled = true;
                server
                    .send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "build"}}));
            }
        };
        if reply.get("result").is_some() {
            println!("round {round}: the build was faster than its {phase} could be cancelled");
            continue;
        }
        phases.insert(phase);
        assert_eq!(reply["error"]["data"]["code"], json!("CANCELLED"), "{reply}");
        // The reply comes before the build has removed its files.
        let what = format!("cancelled in {phase}");
        wait_until("nothing of the build is left", || leftovers(&world, &what).is_empty());
        if server.result("index_status", json!({}))["generation"] == json!(1) {
            assert_eq!(names(&world.index()), before, "cancelled in {phase}");
        }
        // Everything that could be searched before can still be searched.
        for (how, query) in
            [("literal", "only19x"), ("regex", "only19[x]"), ("words", "only19x"), ("symbol", "name_19_1")]
        {
            let frame = server.call("search", json!({"query": query, "match": how}));
            assert_eq!(
                frame["result"]["hits"][0]["path"],
                json!("9/19.py"),
                "cancelled in {phase}: {how}: {frame}"
            );
        }
    }
    println!("cancelled in {phases:?}");
    assert!(!phases.is_empty(), "nothing was cancelled");
    let built = server.result("index_build", json!({}));
    assert_eq!(built["ready"], json!({"text": true, "words": true, "symbols": true}), "{built}");
    assert_eq!(built["files"], json!(count));
    let found = search(&mut server, "literal", "common");
    // If a full page ended the search, the answer has the least number of hits.
    let total = found["total"].as_u64().or(found["atLeast"].as_u64());
    assert!(total > Some(complete.as_array().map_or(0, Vec::len) as u64), "{found}");
    assert_clean(&world, "after the next build");
    server.finish();
}

#[test]
fn a_first_build_that_is_cancelled_before_its_text_is_ready_leaves_no_index() {
    let world = World::new();
    fill(&world, rounds(400, 2_000), 20_000);
    let mut server = with_manual_index(&world);
    build_with_progress(&mut server, "build", json!({}));
    server.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "build"}}));
    let reply = loop {
        let frame = server.frame();
        if frame.get("id").is_some() {
            break frame;
        }
    };
    assert_eq!(reply["error"]["data"]["code"], json!("CANCELLED"), "{reply}");
    assert_eq!(server.error("search", json!({"query": "common"}))["code"], json!("NO_INDEX"));
    let is_left = |name: &String| name != "lock";
    wait_until("nothing is left", || {
        !world.index_if_any().is_some_and(|index| names(&index).iter().any(is_left))
    });
    server.finish();
}

#[test]
fn text_is_searchable_before_words_and_symbols_and_the_status_reports_it() {
    let world = World::new();
    fill(&world, rounds(400, 2_000), 20_000);
    let (mut builder, mut seeker) = (with_manual_index(&world), with_manual_index(&world));
    build_with_progress(&mut builder, "build", json!({}));
    let mut phases: Vec<String> = Vec::new();
    let mut was_early = false;
    let (mut progress, mut reply) = (Vec::new(), Value::Null);
    while reply.is_null() {
        let frame = builder.frame();
        if frame.get("id").is_some() {
            reply = frame;
            continue;
        }
        progress.extend(frame["params"]["progress"].as_f64());
        let phase = frame["params"]["phase"].as_str().expect("a phase").to_owned();
        if phases.last() != Some(&phase) {
            phases.push(phase.clone());
        }
        if phase != "words" && phase != "symbols" {
            continue;
        }
        // The text is ready, and the status reports what is not.
        let answer = search(&mut seeker, "literal", "only42x");
        assert_eq!(paths(&answer), ["2/42.rs"], "{answer}");
        let status = seeker.result("index_status", json!({}));
        assert_eq!(status["ready"]["text"], json!(true), "{status}");
        if status["ready"]["symbols"] == json!(false) {
            was_early = true;
            let frame = seeker.call("search", json!({"query": "name_42_1", "match": "symbol"}));
            if frame.get("result").is_none() {
                assert_eq!(frame["error"]["data"]["code"], json!("NO_INDEX"), "{frame}");
            }
        }
    }
    println!("{phases:?}");
    assert!(progress.is_sorted_by(|one, next| one < next), "{progress:?}");
    let order = ["wait", "walk", "text", "words", "symbols"];
    let positions: Vec<_> =
        phases.iter().map(|phase| order.iter().position(|known| known == phase)).collect();
    assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{phases:?}");
    assert!(was_early, "no search ran before everything was ready: {phases:?}");
    assert_eq!(reply["result"]["ready"], json!({"text": true, "words": true, "symbols": true}), "{reply}");
    assert_eq!(search(&mut seeker, "symbol", "name_42_1")["hits"][0]["path"], json!("2/42.rs"));
    builder.finish();
    seeker.finish();
}

/// Runs a build and kills it after a delay. Returns true if it was killed before its end.
fn killed_build(world: &World, by_server: bool, delay: Duration) -> bool {
    let spin = || {
        let start = Instant::now();
        while start.elapsed() < delay {
            std::thread::yield_now();
        }
    };
    if by_server {
        let mut server = world.start();
        server.request(json!(1), "index_build", json!({}));
        spin();
        server.signal_if_running(rustix::process::Signal::KILL);
        server.wait();
        return server.remaining_frames().is_empty();
    }
    let mut command = pintle();
    command.args(["index", "--root"]).arg(world.root()).env("PINTLE_STATE_DIR", world.state());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    spin();
    let _ = child.kill();
    !child.wait().expect("ends").success()
}

#[test]
fn a_kill_at_any_moment_of_a_build_leaves_the_old_index_or_none() {
    let world = World::new();
    fill(&world, 60, 4_000);
    let mut random = Random::new(7);
    let started = Instant::now();
    world.built().finish();
    let usual = started.elapsed();
    let mut cut = 0;
    let rounds = rounds(6, 100);
    for round in 0..rounds {
        let is_first = round % 3 == 0;
        if is_first {
            fs::remove_dir_all(world.state()).expect("removes");
        } else {
            // Half of the files have changed, or only a few.
            for number in 0..if round % 3 == 1 { 40 } else { 3 } {
                world.write(
                    &format!("0/new{number}.rs"),
                    format!("fn changed_{round}_{number}() {{}}\n").repeat(200),
                );
            }
        }
        let delay = usual.mul_f64((round as f64 * 0.618_034).fract() + random.below(100) as f64 / 1000.0);
        let what = format!("round {round}, after {delay:?} of {usual:?}");
        cut += usize::from(killed_build(&world, round % 2 == 0, delay));

        // The old index answers, or there is none. In neither case is it damaged.
        let mut server = with_manual_index(&world);
        let frame = server.call("search", json!({"query": "only59x"}));
        match frame.get("result") {
            Some(answer) => assert_eq!(paths(answer), ["9/59.txt"], "{what}"),
            None => {
                assert!(is_first, "{what}: the old index is lost: {frame}");
                assert_eq!(frame["error"]["data"]["code"], json!("NO_INDEX"), "{what}: {frame}");
            }
        }
        if !is_first {
            let answer = search(&mut server, "literal", &format!("changed_{round}_1("));
            assert_eq!(answer["total"], json!(200), "{what}");
            let answer = search(&mut server, "symbol", "name_54_1");
            assert_eq!(answer["hits"][0]["path"], json!("4/54.rs"), "{what}");
        }
        let built = server.result("index_build", json!({}));
        assert!(built.get("rebuilt").is_none(), "{what}: {built}");
        assert_clean(&world, &what);
        assert_eq!(paths(&search(&mut server, "words", "only59x"))[0], "9/59.txt", "{what}");
        assert_eq!(search(&mut server, "symbol", "name_54_1")["hits"][0]["path"], json!("4/54.rs"), "{what}");
        let status = server.result("index_status", json!({}));
        assert_eq!(
            (&status["pending"], &status["ready"]["symbols"]),
            (&json!(0), &json!(true)),
            "{what}: {status}"
        );
        server.finish();
    }
    println!("{cut} of {rounds} builds were cut short");
    assert!(cut > 0, "every build was faster");
}

#[test]
fn two_builds_at_once_from_two_processes_both_succeed() {
    for round in 0..rounds(3, 30) {
        let world = World::new();
        fill(&world, 60, 3_000);
        let (mut one, mut other) = (world.start(), world.start());
        let mut command = pintle();
        command.args(["index", "--root"]).arg(world.root()).env("PINTLE_STATE_DIR", world.state());
        one.request(json!(1), "index_build", json!({}));
        other.request(json!(2), "index_build", json!({"mode": "full"}));
        let (code, _, errors) = run(&mut command, b"");
        assert_eq!(code, Some(0), "{errors}");
        for server in [&mut one, &mut other] {
            let frame = server.frame();
            assert_eq!(frame["result"]["files"], json!(60), "round {round}: {frame}");
            assert_eq!(frame["result"]["ready"]["symbols"], json!(true), "round {round}: {frame}");
        }
        assert_clean(&world, "after three builds");
        for server in [&mut one, &mut other] {
            assert_eq!(paths(&search(server, "literal", "only33x")), ["3/33.c"]);
            assert_eq!(search(server, "symbol", "name_33_3")["hits"][0]["path"], json!("3/33.c"));
            assert_eq!(search(server, "words", "common")["total"], json!(60));
        }
        one.finish();
        other.finish();
    }
}

#[test]
fn only_what_has_changed_is_read_again() {
    let world = World::new();
    fill(&world, 40, 500);
    // A file that was just written may change again within the same clock tick, so it is read again.
    let write = |path: &str, content: &str| {
        world.write(path, content);
        let file = fs::File::options().write(true).open(world.at(path)).expect("opens");
        file.set_modified(SystemTime::now() - Duration::from_secs(100)).expect("sets");
    };
    for path in (0..40).map(|number| format!("{}/{number}", number % 10)) {
        let ending = ["rs", "py", "js", "c", "go", "txt"]
            .into_iter()
            .find(|ending| world.at(&format!("{path}.{ending}")).exists())
            .expect("a file");
        let path = format!("{path}.{ending}");
        let content = fs::read_to_string(world.at(&path)).expect("reads");
        write(&path, &content);
    }
    let mut server = world.start();
    let built = server.result("index_build", json!({}));
    assert_eq!((&built["read"], &built["removed"], &built["files"]), (&json!(40), &json!(0), &json!(40)));
    let again = server.result("index_build", json!({}));
    assert_eq!((&again["read"], &again["generation"]), (&json!(0), &built["generation"]), "{again}");
    write("x/one.txt", "one common\n");
    write("y/two.txt", "two common\n");
    fs::remove_file(world.at("5/5.txt")).expect("removes");
    // A build of a part reads only that part, but the search sees all changes.
    let part = server.result("index_build", json!({"path": "x"}));
    assert_eq!((&part["read"], &part["removed"]), (&json!(1), &json!(0)), "{part}");
    let status = server.result("index_status", json!({}));
    assert_eq!(status["pending"], json!(2), "{status}");
    for word in ["one", "two"] {
        assert_eq!(search(&mut server, "words", word)["total"], json!(1), "{word}");
    }
    assert_eq!(search(&mut server, "literal", "only5x")["total"], json!(0));
    let part = server.result("index_build", json!({"path": "/y/two.txt"}));
    assert_eq!((&part["read"], &part["removed"]), (&json!(1), &json!(0)), "{part}");
    let rest = server.result("index_build", json!({}));
    assert_eq!((&rest["read"], &rest["removed"]), (&json!(0), &json!(1)), "{rest}");
    assert_eq!(server.result("index_status", json!({}))["pending"], json!(0));
    let full = server.result("index_build", json!({"mode": "full"}));
    assert_eq!((&full["read"], &full["files"]), (&json!(41), &json!(41)), "{full}");
    assert_eq!(segments(&world), 1, "{:?}", names(&world.index()));
    server.finish();
    // The result is the same without a server that has watched the files.
    write("x/one.txt", "three common\n");
    let (code, output, errors) = world.run(&["index", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    let reported: Value = serde_json::from_str(output.lines().last().unwrap_or_default())
        .or_else(|_| serde_json::from_str(&output))
        .unwrap_or_else(|error| panic!("{error}: {output}"));
    assert_eq!(reported["read"], json!(1), "{reported}");
}

/// The files below a root that are opened, as reported by inotify.
struct Openings {
    queue: OwnedFd,
    folders: BTreeMap<i32, String>,
}

impl Openings {
    /// Watches the folders that exist now.
    fn of(world: &World) -> Self {
        let queue = inotify::init(inotify::CreateFlags::NONBLOCK).expect("a queue");
        let mut folders = BTreeMap::new();
        for name in names(&world.root()).into_iter().filter(|name| world.at(name).is_dir()) {
            let watch = inotify::add_watch(&queue, world.at(&name), inotify::WatchFlags::OPEN);
            folders.insert(watch.expect("a watch"), name);
        }
        Self { queue, folders }
    }

    /// The files that were opened since the last call.
    fn take(&self) -> BTreeSet<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut opened = BTreeSet::new();
        while let Ok(event) = events.next() {
            assert!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW), "too many events");
            if let Some(name) = event.file_name() {
                opened.insert(format!("{}/{}", self.folders[&event.wd()], name.to_string_lossy()));
            }
        }
        opened
    }
}

#[test]
fn many_small_refreshes_keep_few_segments_and_right_answers() {
    let world = World::new();
    fill(&world, 40, 500);
    fs::create_dir(world.at("r")).expect("a folder");
    let mut server = world.built();
    let openings = Openings::of(&world);
    let (mut generation, mut merges) = (0, 0);
    for round in 0..rounds(15, 60) {
        world.write(&format!("r/{round}.rs"), format!("fn refreshed_{round}() {{}} // common\n"));
        world.write("r/same.rs", format!("fn same_{round}() {{}} // common\n"));
        if round % 4 == 3 {
            fs::remove_file(world.at(&format!("r/{}.rs", round - 2))).expect("removes");
        }
        openings.take();
        let built = server.result("index_build", json!({}));
        // The build reports as read exactly the files that it has opened: the two that have changed or, when segments
        // are merged, all that have ever changed.
        let opened = openings.take();
        assert_eq!(built["read"], json!(opened.len()), "round {round}: {built}, opened {opened:?}");
        merges += usize::from(opened.len() > 2);
        assert!(built["generation"].as_u64() > Some(generation), "round {round}: {built}");
        generation = built["generation"].as_u64().expect("a number");
        assert!(segments(&world) <= 8, "round {round}: {:?}", names(&world.index()));
        assert_clean(&world, &format!("round {round}"));
        let is_there = |number: usize| !(number % 4 == 1 && number + 2 <= round);
        let found: BTreeSet<String> =
            paths(&search(&mut server, "literal", "refreshed_")).into_iter().collect();
        let expected: BTreeSet<String> =
            (0..=round).filter(|number| is_there(*number)).map(|number| format!("r/{number}.rs")).collect();
        assert_eq!(found, expected, "round {round}");
        let answer = search(&mut server, "literal", "same_");
        assert_eq!(answer["hits"][0]["text"], json!(format!("fn same_{round}() {{}} // common")), "{answer}");
        assert_eq!(answer["total"], json!(1), "{answer}");
        let count = 41 + (0..=round).filter(|number| is_there(*number)).count();
        let words = search(&mut server, "words", "common");
        assert_eq!(
            (&words["total"], &words["coverage"]["files"]),
            (&json!(count), &json!(count)),
            "round {round}"
        );
        let symbols = server.result("search", json!({"query": format!("same_{round}"), "match": "symbol"}));
        assert_eq!(symbols["hits"][0]["name"], json!(format!("same_{round}")), "round {round}");
    }
    assert!(merges > 1, "{merges} merges");
    // A new index gives the same hits with the same scores.
    let ask = |server: &mut Server| {
        ["literal", "regex", "words"].map(|how| search(server, how, "common")["hits"].clone())
    };
    let refreshed = ask(&mut server);
    server.result("index_build", json!({"mode": "full"}));
    assert_eq!(ask(&mut server), refreshed);
    server.finish();
}

#[test]
fn a_path_that_does_not_exist_and_is_not_indexed_is_refused() {
    let world = World::new();
    fill(&world, 20, 200);
    let mut server = world.start();
    let refused = |frame: Value| assert_eq!(frame["error"]["data"]["code"], json!("NOT_FOUND"), "{frame}");
    refused(server.call("index_build", json!({"path": "no/such"})));
    assert!(server.call("index_build", json!({}))["result"].is_object());
    refused(server.call("index_build", json!({"path": "no/such"})));
    fs::remove_dir_all(world.at("2")).expect("removes");
    let frame = server.call("index_build", json!({"path": "2"}));
    assert_eq!(frame["result"]["removed"], json!(2), "{frame}");
    server.finish();
}

#[test]
fn a_build_of_a_part_is_refused_without_an_index() {
    let world = World::new();
    fill(&world, 20, 200);
    let mut server = world.start();
    for mode in ["incremental", "full"] {
        let error = server.error("index_build", json!({"path": "2", "mode": mode}));
        assert_eq!(error["code"], json!("NO_INDEX"), "{error}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("build without `path`")), "{error}");
    }
    assert_eq!(server.result("index_status", json!({}))["exists"], json!(false));
    let (code, _, errors) = world.run(&["index", "2"]);
    assert!(code != Some(0) && errors.contains("no index"), "{code:?}: {errors}");
    assert_eq!(server.result("index_status", json!({}))["exists"], json!(false));
    server.result("index_build", json!({}));
    assert_eq!(server.result("index_build", json!({"path": "2"}))["read"], json!(0));
    server.finish();
}

#[test]
fn an_index_that_cannot_be_opened_for_lack_of_descriptors_is_not_called_damaged() {
    let world = World::new();
    fill(&world, 20, 200);
    world.built().finish();
    // Files that were written just before the build are read once more. After that, a refresh changes nothing.
    wait_until("every stamp is trusted", || {
        let (code, output, errors) = world.run(&["index", "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        serde_json::from_str::<Value>(&output).expect("JSON")["read"] == json!(0)
    });
    let bytes = || {
        names(&world.index())
            .into_iter()
            .map(|name| (fs::read(world.index().join(&name)).map(hash).ok(), name))
    };
    let before = bytes().collect::<Vec<_>>();
    let (mut short, mut enough) = (0, 0);
    for limit in 3..40 {
        let script = format!(r#"ulimit -n {limit} && exec "$0" "$@""#);
        for arguments in [&["search", "common", "--match", "words"][..], &["index", "--json"]] {
            let mut command = Command::new("sh");
            command.args(["-c", &script]).arg(pintle().get_program()).args(arguments);
            command.arg("--root").arg(world.root()).env("PINTLE_STATE_DIR", world.state());
            let (code, output, errors) = run(&mut command, b"");
            let reported = format!("{limit} descriptors, {arguments:?}: {code:?} {output} {errors}");
            assert!(!errors.contains("damaged") && !output.contains("damaged"), "{reported}");
            match code {
                Some(0) => enough += 1,
                _ => short += 1,
            }
        }
        assert_eq!(bytes().collect::<Vec<_>>(), before, "{limit} descriptors");
    }
    assert!(short > 0 && enough > 0, "{short} failed, {enough} did not");
}

#[test]
fn only_its_owner_can_read_an_index() {
    let world = World::new();
    fill(&world, 20, 200);
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask 0 && exec "$0" "$@""#]).arg(pintle().get_program()).arg("index");
    command.arg("--root").arg(world.root()).env("PINTLE_STATE_DIR", world.state());
    let (code, _, errors) = run(&mut command, b"");
    assert_eq!(code, Some(0), "{errors}");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    for folder in [world.state(), world.state().join("index"), world.index()] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    for name in names(&world.index()) {
        assert_eq!(mode(&world.index().join(&name)), 0o600, "{name}");
    }
}

/// Searches of all modes.
const QUERIES: [(&str, &str); 9] = [
    ("literal", "common"),
    ("literal", "only7x"),
    ("literal", "absent"),
    ("regex", r"name_\d+_2\b"),
    ("regex", "^"),
    ("words", "common"),
    ("words", "only11x name"),
    ("symbol", "name_12_1"),
    ("symbol", "name"),
];

/// The hits of the searches; none where there is no index.
fn all_hits(server: &mut Server) -> Result<Vec<Option<Value>>, String> {
    let ask = |(how, query): &(&str, &str)| {
        let frame = server.call("search", json!({"query": query, "match": how, "top": 15}));
        match frame.get("result") {
            Some(answer) => Ok(Some(json!({"hits": answer["hits"], "total": answer["total"]}))),
            None if frame["error"]["data"]["code"] == json!("NO_INDEX") => Ok(None),
            None => Err(format!("{how} {query}: {frame}")),
        }
    };
    QUERIES.iter().map(ask).collect()
}

/// Checks that a server with a damaged index answers correctly or not at all, and rebuilds the index by itself. Only an
/// index that was removed has to be built on request.
fn check_rebuilt(
    server: &mut Server,
    right: &[Option<Value>],
    is_removed: bool,
) -> Result<&'static str, String> {
    let before = all_hits(server)?;
    let see = |hits: &[Option<Value>], when: &str| {
        let wrong =
            hits.iter().zip(right).zip(QUERIES).find(|((hits, right), _)| hits.is_some() && hits != right);
        wrong.map_or(Ok(()), |((hits, _), query)| Err(format!("wrong {when}: {query:?}: {hits:?}")))
    };
    see(&before, "before the build")?;
    let was_refused = before.iter().any(Option::is_none);
    if was_refused && !is_removed {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let hits = all_hits(server)?;
            see(&hits, "while it is rebuilt")?;
            if hits.iter().all(Option::is_some) {
                break;
            }
            if Instant::now() > deadline {
                return Err("not rebuilt".into());
            }
        }
    }
    let frame = server.call("index_build", json!({}));
    let built = frame.get("result").ok_or_else(|| format!("not built: {frame}"))?;
    let after = all_hits(server)?;
    see(&after, "after the build")?;
    if after.iter().any(Option::is_none) {
        return Err(format!("no index after the build: {built}"));
    }
    Ok(match (was_refused, built["rebuilt"].is_string()) {
        (true, _) => "not answered",
        (false, true) => "answered rightly and rebuilt",
        (false, false) => "answered rightly",
    })
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("copies");
    }
}

/// A kind of damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    CutToHalf,
    CutByOne,
    Flip(usize, u8),
    Grow,
    Gone,
    Folder,
    Link,
    Loop,
    Pipe,
    Unreadable,
    Foreign,
}

impl Damage {
    fn apply(&self, path: &Path, foreign: &Path) {
        let mut bytes = fs::read(path).expect("reads");
        match self {
            Self::Cut(length) => bytes.truncate(*length),
            Self::CutToHalf => bytes.truncate(bytes.len() / 2),
            Self::CutByOne => bytes.truncate(bytes.len() - 1),
            Self::Flip(offset, bits) => bytes[*offset] ^= bits,
            Self::Grow => bytes.extend(b"garbage"),
            Self::Gone => return fs::remove_file(path).expect("removes"),
            Self::Folder => {
                fs::remove_file(path).expect("removes");
                return fs::create_dir(path).expect("a folder");
            }
            Self::Link => {
                fs::remove_file(path).expect("removes");
                return symlink("nowhere", path).expect("a link");
            }
            Self::Loop => {
                fs::remove_file(path).expect("removes");
                return symlink(path, path).expect("a link");
            }
            Self::Pipe => {
                fs::remove_file(path).expect("removes");
                return create_pipe(path);
            }
            Self::Unreadable => {
                let mode = fs::Permissions::from_mode(0o000);
                return fs::set_permissions(path, mode).expect("changes the mode");
            }
            Self::Foreign => bytes = fs::read(foreign).expect("reads"),
        }
        // A new file, as after a crash; no process has the old one open.
        fs::remove_file(path).expect("removes");
        fs::write(path, bytes).expect("writes");
    }
}

fn create_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "a pipe");
}

/// Replaces the content of a folder with that of another.
fn restore(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    copy_folder(from, to);
}

/// Two roots with an index each, a copy of the first index, and the answers of the first one.
fn two_worlds() -> (World, World, Vec<Option<Value>>) {
    let (world, other) = (World::new(), World::new());
    fill(&world, 13, 200);
    // As many files, with the same names and other content.
    fill(&other, 13, 900);
    for name in names(&other.at("2")) {
        other.write(&format!("2/{name}"), "fn nothing_of_it() {}\n");
    }
    let mut server = world.built();
    let right = all_hits(&mut server).expect("answers");
    assert!(right.iter().all(Option::is_some));
    server.finish();
    other.built().finish();
    copy_folder(&world.index(), &world.path("whole"));
    (world, other, right)
}

#[test]
fn a_damaged_index_gives_no_wrong_answer_and_is_rebuilt() {
    let (world, other, right) = two_worlds();
    let (index, complete) = (world.index(), world.path("whole"));
    let mut random = Random::new(3);
    let mut cases: Vec<(String, Damage)> = Vec::new();
    for name in names(&complete).into_iter().filter(|name| name != "lock") {
        let length =
            usize::try_from(fs::metadata(complete.join(&name)).expect("there").len()).expect("small");
        let mut damages = vec![
            Damage::Cut(0),
            Damage::CutToHalf,
            Damage::CutByOne,
            Damage::Grow,
            Damage::Gone,
            Damage::Folder,
            Damage::Link,
            Damage::Loop,
            Damage::Pipe,
            // The index of another root has files of the same names.
            Damage::Foreign,
            Damage::Flip(0, 1),
            Damage::Flip(length - 1, 128),
        ];
        if !rustix::process::geteuid().is_root() {
            damages.push(Damage::Unreadable);
        }
        for _ in 0..rounds(3, 400) {
            damages.push(Damage::Flip(random.below(length), 1 << random.below(8)));
        }
        for _ in 0..rounds(1, 40) {
            damages.push(Damage::Cut(random.below(length)));
        }
        cases.extend(damages.into_iter().map(|damage| (name.clone(), damage)));
    }
    let mut outcomes = BTreeMap::new();
    let mut failures = Vec::new();
    for (name, damage) in &cases {
        println!("{name}: {damage:?}");
        restore(&complete, &index);
        damage.apply(&index.join(name), &other.index().join(name));
        let mut server = world.start();
        let is_removed = name == "manifest" && matches!(damage, Damage::Gone);
        match check_rebuilt(&mut server, &right, is_removed) {
            Ok(outcome) => *outcomes.entry(outcome).or_insert(0) += 1,
            Err(problem) => failures.push(format!("{name}: {damage:?}: {problem}")),
        }
        server.finish();
    }
    println!("{} cases: {outcomes:?}", cases.len());
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The server cannot know whether another process holds the lock, so it does not remove it.
#[test]
fn a_lock_that_is_no_file_is_reported_by_name() {
    let (world, _, right) = two_worlds();
    let lock = world.index().join("lock");
    let put: [(&str, &dyn Fn()); 3] = [
        ("a pipe", &|| create_pipe(&lock)),
        ("a folder", &|| fs::create_dir(&lock).expect("a folder")),
        ("a link", &|| symlink(&lock, &lock).expect("a link")),
    ];
    let mut server = world.start();
    for (what, put) in put {
        let _ = fs::remove_file(&lock).or_else(|_| fs::remove_dir(&lock));
        put();
        let frame = server.call("index_build", json!({}));
        let error = &frame["error"];
        assert_eq!(error["data"]["code"], json!("CAPABILITY_MISSING"), "{what}: {frame}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("/lock is not a plain file; remove it"), "{what}: {frame}");
        assert_eq!(all_hits(&mut server).expect("answers"), right, "{what}");
    }
    fs::remove_file(&lock).expect("removes");
    assert!(server.call("index_build", json!({}))["result"].is_object());
    server.finish();
}

#[test]
fn an_index_that_is_damaged_while_a_server_has_it_open_does_not_end_the_server() {
    let (world, other, right) = two_worlds();
    let (index, complete) = (world.index(), world.path("whole"));
    let mut random = Random::new(9);
    let mut failures = Vec::new();
    let mut see = |what: String, is_removed: bool, damage: &dyn Fn()| {
        println!("{what}");
        restore(&complete, &index);
        let mut server = world.start();
        assert_eq!(all_hits(&mut server).expect("answers"), right);
        damage();
        if let Err(problem) = check_rebuilt(&mut server, &right, is_removed) {
            failures.push(format!("{what}: {problem}"));
        }
        server.finish();
    };
    // The damage is in place, where the server may have mapped the file.
    let opened = |name: &str| fs::File::options().write(true).open(index.join(name)).expect("opens");
    for name in names(&complete).into_iter().filter(|name| name != "lock") {
        let length = fs::metadata(complete.join(&name)).expect("there").len();
        for round in 0..rounds(2, 40) {
            let left = [0, random.next() % length, length - 1, length / 2][round % 4];
            let cut = || opened(&name).set_len(left).expect("truncates");
            see(format!("{name} cut to {left} of {length}"), false, &cut);
        }
        let zeros = vec![0; usize::try_from(length).expect("small")];
        let overwrite = || std::io::Write::write_all(&mut opened(&name), &zeros).expect("writes");
        see(format!("{name} overwritten in the same length"), false, &overwrite);
    }
    let remove = || fs::remove_dir_all(world.state()).expect("removes");
    see("the state folder is removed".into(), true, &remove);
    see("another root's index".into(), false, &|| restore(&other.index(), &index));
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_index_of_another_root_is_not_trusted() {
    let (world, other, right) = two_worlds();
    restore(&other.index(), &world.index());
    let mut server = with_manual_index(&world);
    assert!(all_hits(&mut server).expect("answers").iter().all(Option::is_none), "it was trusted");
    check_rebuilt(&mut server, &right, false).expect("repaired");
    server.finish();
    // The root under another name is another root; its index is not used for the folder that has the old name.
    fs::rename(world.root(), world.path("moved")).expect("renames");
    fs::create_dir(world.root()).expect("a root");
    world.write("new.txt", "common\n");
    let mut server = world.start();
    match all_hits(&mut server).expect("answers")[0].clone() {
        Some(answer) => assert_eq!(paths(&answer), ["new.txt"]),
        None => {
            server.result("index_build", json!({}));
        }
    }
    assert_eq!(paths(&search(&mut server, "literal", "common")), ["new.txt"]);
    assert_eq!(search(&mut server, "words", "common")["total"], json!(1));
    server.finish();
}

#[test]
fn a_full_disk_is_reported_and_the_old_index_answers() {
    let world = World::new();
    fs::create_dir(world.state()).expect("a folder");
    let mut probe = Command::new("unshare");
    probe.args(["-Urm", "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(world.state());
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        return skip("this system gives users no disk of their own");
    }
    world.write("a.rs", "fn needle() {}\n");
    // Words that are all different need much space.
    let mut random = Random::new(1);
    let mut many = String::new();
    while many.len() < 4 << 20 {
        many.push_str(&format!("{:x}\n", random.next()));
    }
    fs::write(world.path("many.txt"), many).expect("writes");
    let calls = |calls: &[(&str, Value)]| {
        let lines = calls
            .iter()
            .map(|(tool, arguments)| format!("{}\n", request(json!(tool), tool, arguments.clone())));
        lines.collect::<String>()
    };
    let find = ("search", json!({"query": "needle"}));
    fs::write(world.path("first"), calls(&[("index_build", json!({})), find.clone()])).expect("writes");
    let second = [("index_build", json!({})), find.clone(), ("index_status", json!({}))];
    fs::write(world.path("second"), calls(&second)).expect("writes");
    let script = r#"mount -t tmpfs -o size=512k tmpfs state || exit 9
        "$0" serve --root root --state-dir state < first || exit 8
        cp many.txt root/many.txt
        "$0" serve --root root --state-dir state < second || exit 7
        rm root/many.txt
        "$0" serve --root root --state-dir state < first || exit 6
        find state -type f"#;
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", script]).arg(pintle().get_program()).current_dir(world.path(""));
    command.env("MCP_READY_FILE", world.path("ready"));
    let (code, output, errors) = run(&mut command, b"");
    assert_eq!(code, Some(0), "{errors}");
    let replies: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(replies.len(), 7, "{output}");
    assert_eq!(replies[0]["result"]["files"], json!(1), "{}", replies[0]);
    assert_eq!(paths(&replies[1]["result"]), ["a.rs"]);
    let message = replies[2]["error"]["data"]["message"].as_str().unwrap_or_else(|| panic!("{}", replies[2]));
    assert!(message.contains("full"), "{message}");
    let error = &replies[2]["error"]["data"];
    let reported = (&error["code"], &error["details"]["reason"], error["hint"].is_string());
    assert_eq!(reported, (&json!("UPSTREAM_FAILED"), &json!("no_space"), true), "{error}");
    assert_eq!(paths(&replies[3]["result"]), ["a.rs"], "{}", replies[3]);
    assert_eq!(replies[4]["result"]["exists"], json!(true), "{}", replies[4]);
    assert_eq!(replies[5]["result"]["files"], json!(1), "{}", replies[5]);
    assert_eq!(paths(&replies[6]["result"]), ["a.rs"]);
    assert!(!output.contains("scratch"), "{output}");
}

/// The number of entries below a folder that are not folders, without any ignore rules.
fn entries(folder: &Path) -> u64 {
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        count += if entry.file_type().expect("a type").is_dir() { entries(&entry.path()) } else { 1 };
    }
    count
}

/// Asserts that every file below the root is counted exactly once. Returns the status.
fn assert_counts(server: &mut Server, world: &World, built: Option<&Value>, what: &str) -> Value {
    let status = server.result("index_status", json!({}));
    let answer = server.result("search", json!({"query": "needle"}));
    let skipped = |object: &Value| -> u64 {
        object["skipped"].as_object().expect("an object").values().filter_map(Value::as_u64).sum()
    };
    let found = entries(&world.root());
    for object in [Some(&status), built].into_iter().flatten() {
        let files = object["files"].as_u64().expect("a number");
        assert_eq!(files + skipped(object), object["found"].as_u64().expect("a number"), "{what}: {object}");
        assert_eq!(object["found"], json!(found), "{what}: {object}");
    }
    let coverage = &answer["coverage"];
    assert_eq!((&coverage["files"], &coverage["skipped"]), (&status["files"], &status["skipped"]), "{what}");
    assert_eq!(coverage["complete"], json!(true), "{what}");
    let languages: u64 =
        status["languages"].as_object().expect("an object").values().filter_map(Value::as_u64).sum();
    assert_eq!(json!(languages), status["files"], "{what}: {status}");
    status
}

#[test]
fn every_file_below_the_root_is_counted_once() {
    let world = World::of(&[
        ("a.rs", "fn needle() {}\n"),
        ("sub/b.txt", "needle\n"),
        ("empty", ""),
        (".hidden/c.py", "needle\n"),
        ("large.txt", &"needle\n".repeat(200)),
        (".gitignore", "target/\n*.log\n"),
        ("target/x/y.o", "needle\n"),
        ("target/z.o", "needle\n"),
        ("sub/q.log", "needle\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/info/exclude", "\n"),
        (".git/objects/ab/cdef", "needle\n"),
    ]);
    world.write("binary.bin", b"needle\0\n");
    world.write("sub/late.bin", [&b"needle\n".repeat(100)[..], b"\0"].concat());
    symlink("a.rs", world.at("link.rs")).expect("a link");
    symlink("sub", world.at("folder_link")).expect("a link");
    symlink("nowhere", world.at("sub/broken")).expect("a link");
    create_pipe(&world.at("sub/pipe"));
    let _socket = UnixListener::bind(world.at("socket")).expect("a socket");
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        world.write("secret.txt", "needle\n");
        fs::set_permissions(world.at("secret.txt"), fs::Permissions::from_mode(0o000))
            .expect("changes the mode");
    }
    let mut server = world.setup().args(["--max-file-bytes", "1000"]).start();
    let built = server.result("index_build", json!({}));
    let status = assert_counts(&mut server, &world, Some(&built), "built");
    assert_eq!(status["files"], json!(5), "{status}");
    assert_eq!(status["maxFileBytes"], json!(1000));
    let mut expected = json!({
        "binary": 2, "too_large": 1, "ignored_by_rule": 3, "inside_git": 3, "symbolic_link": 3, "special_file": 2,
    });
    if !is_root {
        expected["unreadable"] = json!(1);
    }
    assert_eq!(status["skipped"], expected);

    // The counts are also right after changes and a refresh.
    for (path, content) in [
        ("target/new.o", &b"x"[..]),
        ("new/deep/n.txt", b"needle\n"),
        ("new/n.log", b"needle\n"),
        ("new/n.bin", b"\0"),
        (".git/objects/cd/ef", b"x"),
        ("sub/late.bin", b"text now\n"),
    ] {
        world.write(path, content);
    }
    symlink("a.rs", world.at("new/link")).expect("a link");
    fs::remove_file(world.at("sub/q.log")).expect("removes");
    fs::remove_file(world.at("binary.bin")).expect("removes");
    wait_until("the changes are seen", || {
        server.result("search", json!({"query": "needle", "path": "new"}))["total"] == json!(1)
    });
    let built = server.result("index_build", json!({}));
    assert_counts(&mut server, &world, Some(&built), "refreshed");
    let built = server.result("index_build", json!({"mode": "full"}));
    let status = assert_counts(&mut server, &world, Some(&built), "rebuilt");
    assert_eq!(status["files"], json!(7), "{status}");
    // New rules move files from one count to the other.
    world.write(".gitignore", "sub/\n");
    wait_until("the rules are seen", || {
        server.result("search", json!({"query": "needle", "path": "sub"}))["total"] == json!(0)
    });
    let built = server.result("index_build", json!({}));
    assert_counts(&mut server, &world, Some(&built), "new rules");
    server.finish();
}

#[test]
fn the_counts_are_also_right_before_the_refresh() {
    let world = World::of(&[("a.txt", "needle\n"), (".ignore", "*.log\n"), ("x.log", "needle\n")]);
    let mut server = world.built();
    assert_counts(&mut server, &world, None, "built");
    world.write("b.txt", "needle\n");
    world.write("b.bin", b"\0");
    wait_until("the changes are seen", || search(&mut server, "literal", "needle")["total"] == json!(2));
    assert_counts(&mut server, &world, None, "new files");
    world.write("y.log", "needle\n");
    server.result("file.create", json!({"path": "z.log", "content": "needle\n"}));
    server.result("file.create", json!({"path": "sub/c.txt", "content": "needle\n"}));
    assert_counts(&mut server, &world, None, "new files that are ignored");
    server.finish();
}

#[test]
fn another_limit_on_the_size_of_files_rebuilds_the_index() {
    let world = World::of(&[("small.txt", "needle\n"), ("large.txt", &"needle\n".repeat(1000))]);
    world.built().finish();
    let mut server = world.setup().args(["--max-file-bytes", "100"]).start();
    let built = server.result("index_build", json!({}));
    assert!(built["rebuilt"].is_string(), "{built}");
    assert_eq!(paths(&search(&mut server, "literal", "needle")), ["small.txt"]);
    server.finish();
}
