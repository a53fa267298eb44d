//! The folder for the table of paths, with a file of every kind, and the table itself.
//!
//! A file that is not a link contains `in PATH`, so that its content shows which file was read. Next to the root is a
//! folder that no call may reach.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

/// The content that no call may read.
pub const SECRET: &str = "outside secret\n";

/// One line of the table.
pub struct Case {
    pub line: usize,
    /// The operations of the case.
    pub operations: Vec<Operation>,
    pub path: String,
    pub expected: Expected,
}

/// An operation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Read,
    List,
    Create,
    Edit,
    Remove,
    MoveFrom,
    MoveTo,
}

/// The expected outcome.
#[derive(Debug)]
pub enum Expected {
    /// The operation succeeds on this resolved path.
    Done(String),
    /// The operation is refused with this code and this part of the message, and nothing has changed.
    Refused { code: String, piece: String },
}

/// The table.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, text) in include_str!("table.txt").lines().enumerate() {
        if !text.trim().is_empty() && !text.starts_with('#') {
            let line = index + 1;
            cases.push(case(line, text).unwrap_or_else(|| panic!("line {line} makes no sense: {text}")));
        }
    }
    cases
}

fn case(line: usize, text: &str) -> Option<Case> {
    let (operations, rest) = text.split_once(' ')?;
    let operations = operations.split('+').map(operations_of).collect::<Option<Vec<_>>>()?.concat();
    let (path, rest) = quoted(rest.trim_start())?;
    let (word, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
    let rest = rest.trim_start();
    let expected = match word {
        "ok" if rest.starts_with('"') => Expected::Done(quoted(rest)?.0),
        "ok" => Expected::Done(repeated(rest)),
        code => Expected::Refused { code: code.to_owned(), piece: rest.to_owned() },
    };
    Some(Case { line, operations, path, expected })
}

fn operations_of(word: &str) -> Option<Vec<Operation>> {
    use Operation::{Create, Edit, List, MoveFrom, MoveTo, Read, Remove};
    Some(match word {
        "read" => vec![Read],
        "list" => vec![List],
        "create" => vec![Create],
        "edit" => vec![Edit],
        "remove" => vec![Remove],
        "move" => vec![MoveFrom],
        "into" => vec![MoveTo],
        // All operations on an existing file.
        "use" => vec![Read, Edit, Remove, MoveFrom],
        // All operations that create a file.
        "put" => vec![Create, MoveTo],
        "any" => vec![Read, List, Create, Edit, Remove, MoveFrom, MoveTo],
        _ => return None,
    })
}

/// A text in quotes as in JSON, and the rest after it. `{x*255}` stands for that many.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = values.next()?.ok()?;
    let rest = &text[values.byte_offset()..];
    Some((repeated(&value), rest))
}

fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once('{') else { return text.to_owned() };
    let (inner, after) = rest.split_once('}').expect("it is closed");
    let (what, count) = inner.rsplit_once('*').expect("a count");
    format!("{before}{}{}", what.repeat(count.parse().expect("a number")), repeated(after))
}

/// Files, each with its path as its content.
fn files() -> Vec<String> {
    let names = [
        "file.txt",
        "FILE.TXT",
        "plain",
        "a/file.txt",
        "a/c:",
        "a/b/file.txt",
        "a/b/c/deep.txt",
        "a/.pintle-tmp.txt",
        ".hidden",
        ".config/x",
        "...",
        "..a",
        "a..",
        ".a.",
        " lead",
        "trail ",
        "sp ace",
        " ",
        "new\nline",
        "cr\rname",
        "tab\tname",
        "bell\u{7}",
        "\u{1b}[31m",
        "del\u{7f}",
        "-dash",
        "--version",
        "co:lon",
        "1:",
        ":",
        "ab:c",
        "per%cent",
        "%2e%2e",
        "a%2Ffile.txt",
        "%00",
        "quo\"te",
        "apos'trophe",
        "star*",
        "quest?ion",
        "[ab]",
        "$HOME",
        "$(true)",
        "`true`",
        "~",
        "~root",
        "#hash",
        "a&b",
        "semi;colon",
        "pipe|",
        "<in>",
        "!bang",
        "@at",
        "a=b",
        "com,ma",
        "CON",
        "nul",
        "x.pintle-tmp",
        ".pintle-tmpx",
        ".PINTLE-TMP",
        "pintle-tmp",
        "ünïcödé",
        // These look the same but differ in their bytes.
        "caf\u{e9}",
        "cafe\u{301}",
        "日本語/ファイル",
        "😀",
        "\u{202e}gnp.exe",
        "zero\u{200b}width",
        "\u{feff}bom",
        "\u{a0}",
        "fraction\u{2215}slash",
        "full\u{ff0f}width",
        "dots\u{2025}",
        "odd\u{fffd}.txt",
    ];
    let mut files: Vec<String> = names.map(str::to_owned).into();
    files.push("x".repeat(255));
    files.push(format!("{}abc", "😀".repeat(63)));
    files.push(format!("{}/file", "y".repeat(255)));
    files
}

/// Links by their names, with their targets.
const LINKS: &[(&str, &str)] = &[
    ("l_file", "a/file.txt"),
    ("l_folder", "a"),
    ("l_folder_slash", "a/"),
    ("l_dots", "./a/../a/./file.txt"),
    ("l_doubled", "a//b///file.txt"),
    ("l_twice", "l_file"),
    ("l_thrice", "l_twice"),
    ("l_through", "l_folder/b/file.txt"),
    ("l_here", "."),
    ("l_around", "a/.."),
    ("l name\n", "a/file.txt"),
    ("a/up", ".."),
    ("a/sibling", "b"),
    ("a/b/around", "../../a/b/../file.txt"),
    ("a/b/to_top", "../../file.txt"),
    ("l_file_slash", "a/file.txt/"),
    ("l_self", "l_self"),
    ("l_one", "l_two"),
    ("l_two", "l_one"),
    ("l_into_self", "l_into_self/x"),
    ("l_dangling", "missing"),
    ("l_dangling_deep", "missing/deeper/x"),
    ("l_dangling_out", "../outside/new"),
    ("l_dangling_folder_out", "../outside/new_folder/new"),
    ("l_case", "A/file.txt"),
    ("l_out_file", "../outside/secret.txt"),
    ("l_out_folder", "../outside"),
    ("l_out_deep", "a/b/../../../outside/folder"),
    ("a/b/l_out", "../../../outside/secret.txt"),
    ("l_out_twice", "l_out_folder"),
    ("l_out_through", "l_out_folder/secret.txt"),
    ("l_parent", ".."),
    ("l_far_up", "../../../../../../../../../../../../.."),
    ("l_return", "../root/a/file.txt"),
    ("l_return_folder", "../root/a"),
    ("a/l_return", "../../root/a/b"),
    ("l_return_self", "../root"),
    ("l_slash", "/"),
    ("l_slashes", "//"),
    ("l_etc", "/etc"),
    ("l_passwd", "/etc/passwd"),
    ("l_null", "/dev/null"),
    ("l_zero", "/dev/zero"),
    ("l_proc_root", "/proc/self/root"),
    ("l_proc_cwd", "/proc/self/cwd"),
    ("l_proc_fd", "/proc/self/fd"),
    ("l_proc_fd_0", "/proc/self/fd/0"),
    ("l_proc_fd_3", "/proc/self/fd/3"),
    ("l_proc_environ", "/proc/self/environ"),
    ("l_thread_root", "/proc/thread-self/root"),
    ("l_fifo", "fifo"),
    ("l_socket", "socket"),
    ("l_drive", "c:drive"),
    ("l_back", "back\\slash"),
    ("l_tilde", "~/x"),
];

/// More links than the system follows.
const TOO_MANY: usize = 50;

/// Empties a folder and fills it. `outside` is next to it.
pub fn build(root: &Path, outside: &Path) {
    for folder in [root, outside] {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match fs::symlink_metadata(&path).expect("there").is_dir() {
                true => fs::remove_dir_all(path).expect("removes"),
                false => fs::remove_file(path).expect("removes"),
            }
        }
    }
    fs::create_dir(outside.join("folder")).expect("a folder");
    for (name, content) in
        [("secret.txt", SECRET), ("folder/inner.txt", SECRET), ("hard.txt", "outside hard\n")]
    {
        fs::write(outside.join(name), content).expect("writes");
    }
    for folder in ["a/b/c", "empty", "日本語", ".config", &"y".repeat(255), "fold er", "a/drive"] {
        fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    for name in files() {
        let mut file = fs::File::create(root.join(&name)).expect("a file");
        writeln!(file, "in {name}").expect("writes");
    }
    // The same content as the secret, so that an edit of the secret would succeed with its hash.
    fs::write(root.join("copy"), SECRET).expect("writes");
    for name in [&b"c:drive"[..], b"back\\slash", b"odd\xff.txt", b"odd\xfe.txt"] {
        fs::write(root.join(OsStr::from_bytes(name)), "unnameable\n").expect("writes");
    }
    fs::create_dir(root.join(OsStr::from_bytes(b"odd\xff"))).expect("a folder");
    fs::write(root.join(OsStr::from_bytes(b"odd\xff/file")), "unnameable\n").expect("writes");
    for (link, target) in LINKS {
        symlink(target, root.join(link)).expect("a link");
    }
    symlink(root.join("a/file.txt"), root.join("l_absolute_inside")).expect("a link");
    symlink(root.join("a"), root.join("l_absolute_inside_folder")).expect("a link");
    symlink(outside.join("secret.txt"), root.join("l_absolute_out")).expect("a link");
    symlink(outside, root.join("l_absolute_out_folder")).expect("a link");
    symlink(OsStr::from_bytes(b"odd\xff.txt"), root.join("l_odd")).expect("a link");
    symlink(OsStr::from_bytes(b"odd\xff"), root.join("l_odd_folder")).expect("a link");
    symlink("a/file.txt", root.join("l_chain_0")).expect("a link");
    for number in 1..TOO_MANY {
        let target = format!("l_chain_{}", number - 1);
        symlink(target, root.join(format!("l_chain_{number}"))).expect("a link");
    }
    fs::hard_link(outside.join("hard.txt"), root.join("hard")).expect("a link");
    fs::hard_link(root.join("file.txt"), root.join("a/other_name")).expect("a link");
    let cwd = rustix::fs::CWD;
    rustix::fs::mknodat(cwd, root.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    drop(UnixListener::bind(root.join("socket")).expect("a socket"));
}

/// An entry of a folder, with everything that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Folder,
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Special,
}

pub type Tree = BTreeMap<PathBuf, Node>;

/// All entries below a folder.
pub fn tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    collect_entries(folder, Path::new(""), &mut tree);
    tree
}

fn collect_entries(folder: &Path, below: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder.join(below)).expect("a folder") {
        let below = below.join(entry.expect("an entry").file_name());
        let path = folder.join(&below);
        let metadata = fs::symlink_metadata(&path).expect("there");
        let node = match metadata.file_type() {
            kind if kind.is_dir() => {
                collect_entries(folder, &below, tree);
                Node::Folder
            }
            kind if kind.is_file() => Node::file(fs::read(&path).expect("reads"), metadata.mode()),
            kind if kind.is_symlink() => Node::Link(fs::read_link(&path).expect("a link")),
            _ => Node::Special,
        };
        tree.insert(below, node);
    }
}

impl Node {
    pub fn file(content: Vec<u8>, mode: u32) -> Self {
        Self::File { content, mode: fs::Permissions::from_mode(mode).mode() & 0o7777 }
    }
}

/// The expected tree after an operation on a resolved path. `moved` is the other path of a move.
pub fn after(mut tree: Tree, operation: Operation, resolved: &str, content: &[u8], moved: &str) -> Tree {
    let put = |tree: &mut Tree, path: &str, node: Node| {
        for folder in Path::new(path).ancestors().skip(1).filter(|folder| *folder != Path::new("")) {
            tree.entry(folder.to_owned()).or_insert(Node::Folder);
        }
        assert!(tree.insert(path.into(), node).is_none(), "{path} existed");
    };
    let take = |tree: &mut Tree, path: &str| tree.remove(Path::new(path)).expect("it existed");
    match operation {
        Operation::Read | Operation::List => {}
        Operation::Create => {
            // The mode that the system gives to new files.
            let Some(Node::File { mode, .. }) = tree.get(Path::new("plain")) else { panic!("no plain file") };
            let node = Node::file(content.to_vec(), *mode);
            put(&mut tree, resolved, node);
        }
        Operation::Edit => match tree.get_mut(Path::new(resolved)) {
            Some(Node::File { content: old, .. }) => old.extend(content),
            other => panic!("{resolved} is {other:?}"),
        },
        Operation::Remove => drop(take(&mut tree, resolved)),
        Operation::MoveFrom => {
            let node = take(&mut tree, resolved);
            put(&mut tree, moved, node);
        }
        Operation::MoveTo => {
            let node = take(&mut tree, moved);
            put(&mut tree, resolved, node);
        }
    }
    tree
}

/// Restores what has changed.
pub fn restore(folder: &Path, found: &Tree, wanted: &Tree) {
    let differing = |one: &Tree, other: &Tree| -> Vec<(PathBuf, Node)> {
        let differing = one.iter().filter(|(path, node)| other.get(*path) != Some(node));
        differing.map(|(path, node)| (folder.join(path), node.clone())).collect()
    };
    // A folder comes before its entries.
    for (path, node) in differing(found, wanted).into_iter().rev() {
        match node {
            Node::Folder => fs::remove_dir(path).expect("removes"),
            _ => fs::remove_file(path).expect("removes"),
        }
    }
    for (path, node) in differing(wanted, found) {
        match node {
            Node::Folder => fs::create_dir(path).expect("a folder"),
            Node::File { content, mode } => {
                fs::write(&path, content).expect("writes");
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            }
            Node::Link(target) => symlink(target, path).expect("a link"),
            Node::Special => panic!("{} was changed", path.display()),
        }
    }
}
