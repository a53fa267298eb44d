//! The sources of Linux 6.1, for which the bars are set.
//!
//! The files are hard links to the fetched tree and are never written to: a changed file is replaced by a new one.

use std::{env, fs, path::Path};

use super::{
    groups::{Group, Query},
    tree::{self, Tree},
};

pub fn make(_quick: bool) -> Result<Tree, String> {
    // The variable can name another copy of the tree.
    let source = env::var_os("PINTLE_BENCH_TREE").or_else(|| env::var_os("BENCH_LINUX"));
    let source = source.filter(|path| !path.is_empty()).ok_or("the sources of Linux could not be fetched")?;
    let source = Path::new(&source);
    let workspace = tree::workspace();
    let root = workspace.root();
    tree::copy(source, &root, &mut |file, target| {
        if fs::hard_link(file, target).is_err() {
            fs::copy(file, target).expect("enough disk space");
        }
    });
    remove_packaging_rule(&root.join(".gitignore"));
    Ok(Tree {
        name: "Linux 6.1",
        workspace,
        has_bar: true,
        suits_codesearch: true,
        groups: groups(),
        common: &["return", "struct", "static", "include", "unsigned"],
        renamed: Some("msghdr"),
    })
}

/// Removes the rule of Debian's package that ignores the whole tree.
fn remove_packaging_rule(ignored: &Path) {
    let Ok(rules) = fs::read_to_string(ignored) else { return };
    let own: Vec<&str> = rules.lines().take_while(|line| *line != "/*").collect();
    // Removed first, because it is a hard link.
    fs::remove_file(ignored).expect("a file of ours");
    fs::write(ignored, own.join("\n") + "\n").expect("a file");
}

fn groups() -> Vec<Group> {
    let literals = |patterns: &[&str]| patterns.iter().map(|pattern| Query::literal(pattern)).collect();
    vec![
        Group::absent_and_rare(literals(&[
            "ZZZ_notthere",
            "no_such_function_here",
            "pm_runtime_never_put",
            "bpf_prog_array_free_sleepable",
            "tcp_fastopen_cookie_gen",
            "ntfs_attr_make_non_resident",
            "zstd_compress_bound",
        ])),
        Group::no_hit_in_codesearch(literals(&["ZZZ_notthere"])),
        Group::selective_in_codesearch(vec![
            Query::literal("ntfs_attr_make_non_resident"),
            Query::regex(r"EXPORT_SYMBOL_GPL\(bpf_[a-z]+"),
        ]),
        Group::common_in_codesearch(literals(&["PM_RESUME"])),
        Group::every_line(literals(&["return"])),
        Group::short(literals(&["~", "zq", "if"])),
        Group::any_case(
            ["zzz_NotThere", "Pm_Resume", "NTFS_attr_make_NON_resident"].map(Query::any_case).to_vec(),
        ),
        Group::without_bar(vec![
            Query::literal("struct file_operations"),
            Query::regex("[A-Z]+_SUSPEND"),
            Query::regex(r"\w{5}\s+\w{5}\s+\w{5}\s+\w{5}\s+\w{5}"),
        ]),
    ]
}
