//! A caller sees only what it may read: every answer is the same as if nothing else existed.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    search_tools::{World, names, paths, search},
    support::{Server, Setup, pintle, random::Random, request, rounds, run, skip, wait_until},
};

/// The files that the caller may read, the same in every world.
fn fill_a(world: &World) {
    let filler = "lorem ipsum dolor sit amet zebra\n".repeat(5);
    world.write(
        "a/shapes.rs",
        "pub struct Circle;\nfn area_of_circle() {}\nfn common() {}\n// zebra needle\n",
    );
    world.write("a/deep/er/more.py", "def area():\n    return 'needle'\n\nclass Common:\n    pass\n");
    world.write("a/notes.md", "# Zebra\n\nzebra zebra quagga needle\n");
    world.write("a/b/inner.txt", "needle in a folder named b\n");
    world.write("a/x/b", "needle in a file named b\n");
    world.write("a/.ignore", "*.log\n");
    world.write("a/left.log", "needle\n");
    world.write("a/binary.bin", b"needle\0");
    world.write("a/large.txt", "needle\n".repeat(3000));
    for number in 0..40 {
        world.write(&format!("a/many/{number}.txt"), format!("needle {number}\n{filler}"));
    }
    symlink("shapes.rs", world.at("a/link.rs")).expect("a link");
}

/// Files that the caller may not read.
type Shape = (&'static str, fn(&World));

const SHAPES: &[Shape] = &[
    ("the same words in many files", |world| {
        for number in 0..rounds(600, 5000) {
            world.write(
                &format!("b/{}/{number}.txt", number % 20),
                "zebra quagga needle common area\nzebra and more zebra\n",
            );
        }
    }),
    ("rare words and long files", |world| {
        for number in 0..50 {
            world.write(&format!("b/{number}.md"), format!("word{number} quagga\n").repeat(300));
        }
    }),
    ("the same names", |world| {
        for number in 0..60 {
            let name =
                ["Circle", "area_of_circle", "common", "area", "areas", "Circles", "cmmon"][number % 7];
            world.write(&format!("b/{number}.rs"), format!("struct {name};\nfn {name}() {{}}\n"));
        }
        world.write("b/shapes.rs", "fn area_of_circle() {}\n");
    }),
    ("ignored, binary, large and linked", |world| {
        world.write("b/.ignore", "skip/\n*.o\n");
        world.write("b/skip/x.txt", "needle\n");
        world.write("b/x.o", "needle\n");
        world.write("b/x.bin", b"needle\0");
        world.write("b/large.txt", "needle\n".repeat(5000));
        world.write("b/file.txt", "needle\n");
        symlink("../a/shapes.rs", world.at("b/link.rs")).expect("a link");
        symlink("../a", world.at("b/folder")).expect("a link");
    }),
    ("files before and after", |world| {
        for path in ["0.txt", "z.txt", "A/x.txt", "a.txt", "a-/x.txt", "aa/x.txt", "a0", "ab", "b/a/x.txt"] {
            world.write(path, "needle zebra\n");
        }
    }),
    ("folders and files of the names that are asked for", |world| {
        world.write("many/x.txt", "needle\n");
        world.write("b/x.txt", "needle\n");
        world.write("deep/er/x.txt", "needle\n");
        world.write("shapes.rs", "fn area_of_circle() {}\n");
    }),
];

/// Changes after the build of the index: first in files that the caller may read, then in others.
fn make_dirty_a(world: &World) {
    world.write("a/notes.md", "# Zebra\n\nzebra quagga needle, changed\n");
    world.write("a/new.rs", "fn area_anew() {} // needle\n");
    fs::remove_file(world.at("a/many/7.txt")).expect("removes");
}

fn make_dirty_b(world: &World) {
    for number in 0..30 {
        world.write(&format!("b/dirty/{number}.rs"), "fn area_of_circle() {} // zebra quagga needle\n");
    }
    world.write("b/dirty.txt", "zebra ".repeat(1000));
}

fn scoped(world: &World, scope: &str) -> Server {
    world.setup().args(["--scope", scope, "--max-file-bytes", "10000"]).start()
}

fn build(world: &World) {
    let mut server = world.setup().args(["--max-file-bytes", "10000"]).start();
    server.result("index_build", json!({}));
    server.finish();
}

/// Every kind of query that a caller can send.
fn questions() -> Vec<(&'static str, Value)> {
    let mut questions = Vec::new();
    let search = |arguments: Value| ("search", arguments);
    for (how, query) in [
        ("literal", "needle"),
        ("literal", "word7"),
        ("literal", "absent"),
        ("regex", "n.{2}dle"),
        ("regex", "^"),
        ("regex", "fn [a-z_]+"),
        ("words", "zebra"),
        ("words", "quagga zebra"),
        ("words", "needle common area"),
        ("words", "word7 lorem"),
        ("symbol", "area"),
        ("symbol", "area_of_circle"),
        ("symbol", "Circle"),
        ("symbol", "cmmon"),
        ("symbol", "areas"),
        ("symbol", "aoc"),
    ] {
        for top in [3, 1000] {
            questions.push(search(json!({"query": query, "match": how, "top": top})));
        }
    }
    for (how, query) in
        [("literal", "needle"), ("regex", "n.{2}dle"), ("words", "needle quagga"), ("symbol", "area")]
    {
        for path in
            ["b", "/b/", "b/**", "!a", "*.rs", "many", "deep", "shapes.rs", "a", "b/shapes.rs", "../b", "x"]
        {
            questions.push(search(json!({"query": query, "match": how, "path": path, "context": 1})));
        }
        questions.push(search(json!({"query": query, "match": how, "lang": "rust", "top": 1})));
    }
    questions.push(search(json!({"query": "area", "match": "symbol", "kind": "function"})));
    for tool in ["index_status", "workspace_status", "check_status", "index_build"] {
        questions.push((tool, json!({})));
    }
    for path in
        ["b", "b/shapes.rs", "b/missing", "a/missing", "a", "z.txt", "a/link.rs", "a/shapes.rs", "/", "../x"]
    {
        questions.push(("show_file", json!({"path": path})));
        questions.push(("index_build", json!({"path": path})));
    }
    questions
}

/// The frame without the values that differ between any two worlds: the path of the root and the time of the build.
fn normalized(world: &World, frame: &Value) -> String {
    let mut frame = frame.clone();
    for pointer in ["/result/builtAt", "/result/index/builtAt"] {
        if let Some(time) = frame.pointer_mut(pointer) {
            *time = json!("then");
        }
    }
    frame.to_string().replace(&world.root().display().to_string(), "ROOT")
}

/// Sends all queries and follows every cursor for some pages.
fn answers(world: &World, server: &mut Server) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    for (tool, arguments) in questions() {
        let mut arguments = arguments;
        for page in 0..3 {
            let frame = server.call(tool, arguments.clone());
            answers.push((format!("{tool} {arguments}, page {page}"), normalized(world, &frame)));
            let Some(cursor) = frame.pointer("/result/cursor") else { break };
            arguments["cursor"] = cursor.clone();
        }
    }
    answers
}

/// Compares all answers in a world with hidden files with those in a world without.
fn compare(shape: &str, full: &[(String, String)], bare: &[(String, String)]) -> Vec<String> {
    let differing = full.iter().zip(bare).filter(|(full, bare)| full != bare);
    let mut failures: Vec<String> = differing
        .map(|((question, full), (_, bare))| {
            format!("{shape}: {question}:\n  with:    {full}\n  without: {bare}")
        })
        .collect();
    if full.len() != bare.len() {
        failures.push(format!("{shape}: {} answers and {}", full.len(), bare.len()));
    }
    failures
}

#[test]
fn files_outside_the_scope_change_no_answer() {
    let bare = World::new();
    fill_a(&bare);
    build(&bare);
    let mut server = scoped(&bare, "read:/a/");
    let without = answers(&bare, &mut server);
    server.finish();
    assert!(without.iter().filter(|(_, answer)| answer.contains("\"path\":\"a/")).count() > 40);
    let mut failures = Vec::new();
    for (shape, fill_b) in SHAPES {
        let full = World::new();
        fill_a(&full);
        fill_b(&full);
        build(&full);
        let mut server = scoped(&full, "read:/a/");
        let with = answers(&full, &mut server);
        server.finish();
        failures.extend(compare(shape, &with, &without));
    }
    let shown = failures.iter().take(8).map(|text| text.chars().take(1500).collect::<String>());
    let shown = shown.collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} answers differ:\n{shown}", failures.len());
}

#[test]
fn edits_outside_the_scope_change_no_answer() {
    let (bare, full) = (World::new(), World::new());
    let mut all = Vec::new();
    for world in [&bare, &full] {
        fill_a(world);
        if std::ptr::eq(world, &full) {
            world.write("b/x.txt", "needle zebra\n");
        }
        build(world);
        let mut server = scoped(world, "read:/a/");
        let mut gathered = answers(world, &mut server);
        make_dirty_a(world);
        if std::ptr::eq(world, &full) {
            make_dirty_b(world);
        }
        wait_until("the changes are seen", || {
            let answer = server.result("search", json!({"query": "changed"}));
            paths(&answer) == ["a/notes.md"]
                && search(&mut server, "literal", "area_anew")["total"] == json!(1)
        });
        gathered.extend(answers(world, &mut server));
        server.finish();
        all.push(gathered);
    }
    let failures = compare("dirty", &all[1], &all[0]);
    let shown = failures.iter().take(8).map(|text| text.chars().take(1500).collect::<String>());
    let shown = shown.collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} answers differ:\n{shown}", failures.len());
}

#[test]
fn a_scope_for_a_folder_and_its_children_counts_only_those() {
    let world = World::new();
    fill_a(&world);
    build(&world);
    let mut server = scoped(&world, "read:/a/*");
    let found: BTreeSet<String> = paths(&search(&mut server, "literal", "needle")).into_iter().collect();
    assert_eq!(found, ["a/notes.md", "a/shapes.rs"].map(String::from).into());
    let status = server.result("index_status", json!({}));
    // `.ignore`, `notes.md` and `shapes.rs`.
    assert_eq!(status["files"], json!(3), "{status}");
    assert_eq!(
        status["skipped"],
        json!({"binary": 1, "ignored_by_rule": 1, "symbolic_link": 1, "too_large": 1}),
        "{status}"
    );
    assert!(status.get("size").is_none(), "{status}");
    server.finish();
    // A caller that may read nothing finds nothing, and is not refused.
    let mut server = scoped(&world, "read:/nowhere/");
    for how in ["literal", "regex", "words", "symbol"] {
        let answer = search(&mut server, how, "area");
        assert_eq!((&answer["hits"], &answer["total"]), (&json!([]), &json!(0)), "{how}");
        assert_eq!(answer["coverage"]["files"], json!(0), "{how}");
        assert_eq!(answer["coverage"]["skipped"], json!({}), "{how}");
    }
    server.finish();
}

#[test]
fn a_build_needs_the_right_to_write_everywhere() {
    let world = World::new();
    fill_a(&world);
    build(&world);
    let before = names(&world.index());
    for scope in ["read:/", "read:/a/", "write:/a/", "write:/*"] {
        let mut server = scoped(&world, scope);
        for arguments in
            [json!({}), json!({"mode": "full"}), json!({"path": "a"}), json!({"path": "/a/notes.md"})]
        {
            let frame = server.call("index_build", arguments.clone());
            assert_eq!(frame["error"]["code"], json!(403), "{scope} {arguments}: {frame}");
            let error = &frame["error"]["data"];
            assert_eq!(error["code"], json!("FORBIDDEN"), "{scope} {arguments}: {frame}");
            assert_eq!(error["details"]["scope"], json!("write:/"), "{scope} {arguments}: {frame}");
        }
        server.finish();
    }
    assert_eq!(names(&world.index()), before);
    let mut server = scoped(&world, "write:/");
    server.result("index_build", json!({"mode": "full"}));
    server.finish();
}

#[test]
fn show_file_is_refused_outside_the_scope_whether_or_not_the_file_exists() {
    let world = World::new();
    fill_a(&world);
    world.write("b/there.txt", "secret\n");
    symlink("../b/there.txt", world.at("a/out")).expect("a link");
    let mut server = scoped(&world, "read:/a/");
    for path in ["b/there.txt", "b/missing.txt", "b", "/b/there.txt", "a/../b/there.txt"] {
        let error = server.error("show_file", json!({"path": path}));
        assert_eq!(error["code"], json!("FORBIDDEN"), "{path}: {error}");
    }
    let error = server.error("show_file", json!({"path": "a/out"}));
    assert_eq!(error["code"], json!("FORBIDDEN"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
    server.result("show_file", json!({"path": "a/notes.md"}));
    server.finish();
}

/// The paths that were opened according to a trace.
fn opened(trace: &Path) -> Vec<String> {
    let text = fs::read_to_string(trace).expect("a trace");
    text.lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

#[test]
fn a_search_opens_no_file_that_its_caller_may_not_read() {
    if !Command::new("strace").arg("-V").output().is_ok_and(|probe| probe.status.success()) {
        return skip("there is no strace");
    }
    let world = World::new();
    fill_a(&world);
    for number in 0..200 {
        world.write(
            &format!("b/closed_{number}.rs"),
            "fn area_of_circle() {} // needle zebra quagga common\n",
        );
    }
    build(&world);
    let trace = world.path("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-s", "4096", "-e", "trace=open,openat,openat2", "-o"]).arg(&trace);
    command.arg(pintle().get_program()).args(["serve", "--root"]).arg(world.root());
    command.args(["--scope", "read:/a/", "--max-file-bytes", "10000"]);
    command.env("PINTLE_STATE_DIR", world.state()).env("MCP_READY_FILE", world.path("ready"));
    let mut random = Random::new(2);
    let mut asked = questions();
    // The order is different from that of the other tests.
    asked.sort_by_cached_key(|_| random.next());
    let line = |(id, (tool, arguments)): (usize, &(&str, Value))| {
        format!("{}\n", request(json!(id), tool, arguments.clone()))
    };
    let input: String = asked.iter().enumerate().map(line).collect();
    let (code, output, errors) = run(&mut command, input.as_bytes());
    if code != Some(0) && output.is_empty() {
        return skip(&format!("strace cannot trace here: {errors}"));
    }
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.matches("\"path\":\"a/").count() > 100, "{output}");
    let opened = opened(&trace);
    assert!(
        opened.iter().any(|path| path.contains("a/notes.md") || path.ends_with("notes.md")),
        "nothing was traced"
    );
    let closed: Vec<&String> = opened.iter().filter(|path| path.contains("closed_")).collect();
    assert!(closed.is_empty(), "opened: {closed:?}");
}

#[test]
fn scopes_hold_over_http_as_well() {
    let world = World::new();
    fill_a(&world);
    world.write("b/x.txt", "needle\n");
    build(&world);
    let setup: Setup = world.setup().args(["--scope", "read:/a/b/", "--max-file-bytes", "10000"]);
    let server = setup.http().start();
    let call = |tool: &str, arguments: Value| request(json!(1), tool, arguments);
    let answer = server.connect().post("/rpc", &call("search", json!({"query": "needle"}))).result();
    assert_eq!(paths(&answer), ["a/b/inner.txt"]);
    assert_eq!(answer["total"], json!(1));
    let refused = server.connect().post("/rpc", &call("index_build", json!({})));
    assert_eq!(refused.refusal(), (403, 403), "{refused:?}");
}

#[test]
fn files_with_names_that_no_scope_can_have_are_covered_by_their_folders() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let world = World::of(&[("a/plain.txt", "needle\n"), ("b/plain.txt", "needle\n")]);
    for name in
        [&b"a/odd\xff.txt"[..], b"a/back\\slash.txt", b"a/s/odd\xfe.txt", b"b/odd\xff.txt", b"odd\xff/x.txt"]
    {
        let path = world.root().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, "needle\n").expect("writes");
    }
    world.built().finish();
    for (scope, count) in
        [("read:/", 7), ("read:/a/", 4), ("read:/a/*", 3), ("read:/a/s/", 1), ("read:/b/", 2)]
    {
        let mut server = world.setup().args(["--scope", scope]).start();
        let answer = search(&mut server, "literal", "needle");
        assert_eq!(
            (&answer["total"], &answer["coverage"]["files"]),
            (&json!(count), &json!(count)),
            "{scope}"
        );
        server.finish();
    }
}
