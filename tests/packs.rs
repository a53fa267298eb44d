//! Packs: how they are installed, listed, used and removed.

use std::{ffi::OsStr, fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::{
    Setup,
    archives::{Tar, Zip},
    packs::{World, lamps, sha256},
    pintle, run,
};

const SCHEMA: &[u8] = br#"{"type": "object"}"#;

fn names(packs: &[Value]) -> Vec<&str> {
    packs.iter().map(|pack| pack["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_pack_is_listed_with_its_source_checksum_time_and_counts() {
    let world = World::default();
    assert_eq!(world.list(), Vec::<Value>::new());
    let archive = lamps("first");
    let file = world.write("lamps-1.2.zip", &archive);
    let (code, errors) = world.pack(["add".as_ref(), file.as_os_str()]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("--schemas-dir pack:lamps-1.2"), "{errors}");
    let packs = world.list();
    let mut pack = packs[0].clone();
    let added = pack["added"].take();
    assert!(added.as_str().is_some_and(|added| added.ends_with('Z') && added.len() == 20), "{added}");
    let bytes = pack["bytes"].take();
    assert!(bytes.as_u64().is_some_and(|bytes| bytes > 100), "{bytes}");
    let expected = json!({
        "name": "lamps-1.2", "source": file, "sha256": sha256(&archive), "added": null, "schemas": 1, "examples": 1,
        "bytes": null
    });
    assert_eq!(pack, expected);
    let (code, output, _) = run(&mut world.command(["list"]), b"");
    assert_eq!(code, Some(0));
    let expected = [
        "lamps-1.2",
        "1",
        "1",
        added.as_str().expect("a time"),
        &sha256(&archive),
        file.to_str().expect("text"),
    ];
    assert_eq!(output, format!("{}\n", expected.join("\t")));
}

#[test]
fn packs_are_sorted_by_name_and_removed_by_name() {
    let world = World::default();
    for name in ["b", "C", "a", "a-2", "10"] {
        world.add(name, &lamps(name));
    }
    assert_eq!(names(&world.list()), ["10", "C", "a", "a-2", "b"]);
    assert_eq!(world.pack(["remove", "a"]).0, Some(0));
    assert_eq!(names(&world.list()), ["10", "C", "a-2", "b"]);
    let (code, errors) = world.pack(["remove", "a-3"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("NOT_FOUND: there is no pack `a-3` (the nearest is `a-2`)"), "{errors}");
    assert_ne!(world.pack(["remove", "../packs/b"]).0, Some(0));
    assert_eq!(names(&world.list()), ["10", "C", "a-2", "b"]);
    for name in ["10", "C", "a-2", "b"] {
        assert_eq!(world.pack(["remove", name]).0, Some(0));
    }
    assert_eq!(world.snapshot().len(), 1, "only the folder of packs is left");
}

#[test]
fn a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced() {
    let world = World::default();
    world.add("lamps", &lamps("first"));
    let before = world.snapshot();
    let second = world.write("lamps.zip", &lamps("second"));
    let add = ["add".as_ref(), second.as_os_str()];
    let (code, errors) = world.pack(add);
    assert_eq!(code, Some(2));
    assert!(errors.contains("CONFLICT") && errors.contains("--replace"), "{errors}");
    assert_eq!(world.snapshot(), before);
    let (code, errors) = world.pack([add[0], add[1], "--replace".as_ref()]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(world.list()[0]["sha256"], json!(sha256(&lamps("second"))));
    assert_eq!(world.staging().len(), 0);
    // The same archive again changes nothing, and is no mistake.
    let before = world.snapshot();
    let (code, errors) = world.pack(add);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("installed already"), "{errors}");
    assert_eq!(world.snapshot(), before);
}

#[test]
fn only_its_owner_can_read_a_pack() {
    let world = World::default();
    let archive = Tar::default().file("a/b/c.json", SCHEMA).file("a/d.json", SCHEMA).gz();
    world.add("plain", &archive);
    for (path, (mode, content)) in world.snapshot() {
        let expected = if content.is_some() { 0o600 } else { 0o700 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    let mode = fs::metadata(world.state()).expect("a folder").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}

/// The schemas and examples that a server has, by name and path.
fn served(setup: Setup) -> (Vec<Value>, Vec<Value>) {
    let mut server = setup.start();
    let mut list = |tool: &str, member: &str, name: &str| {
        let result = server.result(tool, json!({}));
        let items = result[member].as_array().unwrap_or_else(|| panic!("{result}"));
        items.iter().map(|item| item[name].clone()).collect::<Vec<_>>()
    };
    (list("list_schemas", "schemas", "name"), list("list_examples", "examples", "path"))
}

#[test]
fn every_layout_is_found() {
    let world = World::default();
    let example = br#"{"watts": 5}"#;
    let folder = tar::EntryType::Directory;
    let layouts = [
        Tar::default()
            .file("jsonschema/lamp.schema.json", SCHEMA)
            .file("examples/Lamp_Desk.json", example)
            .gz(),
        // As `tar -czf pack.tar.gz .` writes it.
        Tar::default()
            .entry("./", folder, "", b"")
            .entry("./jsonschema/", folder, "", b"")
            .file("./jsonschema/lamp.schema.json", SCHEMA)
            .file("./examples/Lamp_Desk.json", example)
            .gz(),
        // As `git archive` and the archives of a repository are.
        Tar::default()
            .entry("pax_global_header", tar::EntryType::XGlobalHeader, "", b"17 comment=abcde\n")
            .entry("lamps-1.0/", folder, "", b"")
            .file("lamps-1.0/.github/workflow.json", b"not JSON")
            .file("lamps-1.0/README.md", b"lamps")
            .file("lamps-1.0/package.json", b"{}")
            .file("lamps-1.0/jsonschema/lamp.schema.json", SCHEMA)
            .file("lamps-1.0/examples/Lamp_Desk.json", example)
            .gz(),
        Zip::default().file("lamp.schema.json", SCHEMA).file("examples/Lamp_Desk.json", example).bytes(),
        Zip::default().file("x/lamp.schema.json", SCHEMA).file("x/examples/Lamp_Desk.json", example).bytes(),
    ];
    for (index, archive) in layouts.iter().enumerate() {
        let name = format!("layout-{index}");
        world.add(&name, archive);
        let setup = Setup::new().env("PINTLE_STATE_DIR", world.state());
        let (schemas, examples) = served(setup.env("SYN_SCHEMAS_DIR", format!("pack:{name}")));
        assert_eq!((schemas, examples), (vec![json!("lamp")], vec![json!("Lamp_Desk.json")]), "{name}");
        let pack = world.list()[index].clone();
        assert_eq!((&pack["schemas"], &pack["examples"]), (&json!(1), &json!(1)), "{pack}");
    }
    let (code, errors) = world.pack([
        OsStr::new("add"),
        world.write("none.zip", &Zip::default().file("examples/Lamp_Desk.json", example).bytes()).as_ref(),
    ]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("INVALID_REQUEST") && errors.contains("jsonschema/"), "{errors}");
}

#[test]
fn a_pack_is_named_wherever_the_folder_of_schemas_is() {
    let world = World::default();
    world.add("lamps", &lamps("first"));
    let other = Zip::default().file("shade.schema.json", SCHEMA).bytes();
    world.add("shades", &other);
    let setup = || Setup::new().env("PINTLE_STATE_DIR", world.state());
    let (lamp, desk) = (vec![json!("lamp")], vec![json!("Lamp_Desk.json")]);
    assert_eq!(served(setup().args(["--schemas-dir", "pack:lamps"])), (lamp.clone(), desk.clone()));
    // A key in the file is no path beside the file.
    let file = world.write("pintle.toml", b"schemas_dir = \"pack:lamps\"\n");
    assert_eq!(served(setup().arg("--config").arg(file)), (lamp.clone(), desk.clone()));
    // Examples of another pack, or of none.
    let both = setup().args(["--schemas-dir", "pack:shades", "--examples-dir", "pack:lamps"]);
    assert_eq!(served(both), (vec![json!("shade")], desk));
    assert_eq!(served(setup().args(["--schemas-dir", "pack:shades"])), (vec![json!("shade")], vec![]));
    // A folder of that name is still a folder.
    let folder = setup();
    fs::create_dir(folder.path("root/pack:lamps")).expect("a folder");
    fs::write(folder.path("root/pack:lamps/other.json"), SCHEMA).expect("writes");
    assert_eq!(served(folder.args(["--schemas-dir", "./pack:lamps"])).0, vec![json!("other")]);
    let mut validate = pintle();
    let file = world.write("Lamp_Floor.json", br#"{"watts": "many"}"#);
    validate
        .args(["validate", "--schemas-dir", "pack:lamps"])
        .arg(file)
        .env("PINTLE_STATE_DIR", world.state());
    let (code, output, errors) = run(&mut validate, b"");
    assert_eq!(code, Some(1), "{errors}");
    assert!(output.contains("(schema lamp)") && output.contains("/watts"), "{output}");
}

#[test]
fn a_pack_that_is_not_there_stops_the_start_with_what_to_do() {
    let world = World::default();
    world.add("lamps", &lamps("first"));
    let start = |variable: &str| {
        let mut command = pintle();
        command.args(["serve"]).current_dir(world.path("")).env("SYN_SCHEMAS_DIR", variable);
        command.env("PINTLE_STATE_DIR", world.state()).env("PINTLE_ROOT", world.path("root"));
        command.env("MCP_READY_FILE", world.path("ready"));
        run(&mut command, b"")
    };
    fs::create_dir(world.path("root")).expect("a folder");
    let (code, _, errors) = start("pack:lamp");
    assert_eq!(code, Some(2));
    assert!(errors.contains("SYN_SCHEMAS_DIR: NOT_FOUND: there is no pack `lamp`"), "{errors}");
    assert!(errors.contains("the nearest is `lamps`"), "{errors}");
    let (code, _, errors) = start("pack:../packs/lamps");
    assert_eq!(code, Some(2));
    assert!(errors.contains("cannot be the name of a pack"), "{errors}");
    assert_eq!(start("pack:lamps").0, Some(0));
    assert_eq!(world.pack(["remove", "lamps"]).0, Some(0));
    let (code, _, errors) = start("pack:lamps");
    assert_eq!(code, Some(2));
    assert!(errors.contains("pintle pack add"), "{errors}");
}

#[test]
fn several_that_add_at_once_install_one_of_the_packs_whole() {
    for _ in 0..crate::support::rounds(3, 30) {
        let world = World::default();
        let archives: Vec<_> = (0..6).map(|index| lamps(&format!("number {index}"))).collect();
        let files: Vec<_> = archives
            .iter()
            .enumerate()
            .map(|(index, archive)| world.write(&format!("{index}.zip"), archive))
            .collect();
        let add_all = |more: &[&str]| -> Vec<(Option<i32>, String)> {
            std::thread::scope(|scope| {
                let add = |file| {
                    let arguments = [OsStr::new("add"), file, "--name".as_ref(), "lamps".as_ref()];
                    world.pack(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))
                };
                let adds: Vec<_> =
                    files.iter().map(|file| scope.spawn(move || add(file.as_os_str()))).collect();
                adds.into_iter().map(|add| add.join().expect("adds")).collect()
            })
        };
        let ended = add_all(&[]);
        assert_eq!(ended.iter().filter(|(code, _)| *code == Some(0)).count(), 1, "{ended:?}");
        let conflicts = ended.iter().filter(|(_, errors)| errors.contains("CONFLICT")).count();
        assert_eq!(conflicts, files.len() - 1, "{ended:?}");
        let ended = add_all(&["--replace"]);
        assert!(ended.iter().all(|(code, _)| *code == Some(0)), "{ended:?}");
        let installed = world.list()[0]["sha256"].clone();
        let index =
            archives.iter().position(|archive| json!(sha256(archive)) == installed).expect("one of them");
        let schema = world.state().join("packs/lamps/jsonschema/lamp.schema.json");
        assert!(fs::read_to_string(schema).expect("a schema").contains(&format!("number {index}")));
        assert_eq!(world.staging().len(), 0);
    }
}
