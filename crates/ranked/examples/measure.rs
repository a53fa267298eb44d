//! Builds both indexes of a tree and prints how fast that was, how large they are, and how long queries take.
//!
//! `cargo run --release -p pintle-ranked --example measure -- FOLDER [THREADS]`

use pintle_ranked::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BUDGET: usize = 64 << 20;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let threads = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(1);
    let mut files = Vec::new();
    walk(&folder, &mut files)?;
    files.sort();
    let scratch = std::env::temp_dir();

    let started = Instant::now();
    let builders = on_threads(
        threads,
        &files,
        || WordsBuilder::new(Some(&scratch), BUDGET),
        |builder, file, text| builder.add(file, text),
    )?;
    let bytes: u64 = builders.iter().map(|(_, bytes)| bytes).sum();
    let collected = started.elapsed();
    let mut words = Vec::new();
    let builders = builders.into_iter().map(|(builder, _)| builder).collect();
    WordsBuilder::finish(builders, files.len() as u32, &mut words)?;
    let all = started.elapsed();
    println!(
        "words: {} files, {} MB, collected in {collected:.2?}, merged in {:.2?}: {:.0} MB/s, {:.1} MB",
        files.len(),
        bytes / 1_000_000,
        all - collected,
        bytes as f64 / 1e6 / all.as_secs_f64(),
        words.len() as f64 / 1e6,
    );
    query_words(&words, &files);

    let started = Instant::now();
    let builders =
        on_threads(threads, &files, || NamesBuilder::new(Some(&scratch), BUDGET), add_definitions)?;
    let collected = started.elapsed();
    let mut names = Vec::new();
    let builders = builders.into_iter().map(|(builder, _)| builder).collect();
    NamesBuilder::finish(builders, files.len() as u32, &mut names)?;
    let Ok(index) = Names::open(&names) else { return Ok(()) };
    println!(
        "names: {} definitions of {} names, collected in {collected:.2?}, merged in {:.2?}, {:.1} MB, {:.1} bytes each",
        index.definition_count(),
        index.name_count(),
        started.elapsed() - collected,
        names.len() as f64 / 1e6,
        names.len() as f64 / index.definition_count() as f64,
    );
    query_names(index, &files);
    Ok(())
}

/// Takes every macro, and every identifier before the first `(` of a line that begins with a letter.
fn add_definitions(builder: &mut NamesBuilder, file: u32, text: &[u8]) -> std::io::Result<()> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let (kind, start, end) = if let Some(rest) = line.strip_prefix(b"#define ") {
            (1, 8, 8 + rest.iter().take_while(|byte| is_part(byte)).count())
        } else if line.first().is_some_and(u8::is_ascii_alphabetic) {
            let Some(end) = line.iter().position(|&byte| byte == b'(') else { continue };
            (2, end - line[..end].iter().rev().take_while(|byte| is_part(byte)).count(), end)
        } else {
            continue;
        };
        let line_number = number as u32 + 1;
        let end_line = line_number + if kind == 1 { 0 } else { line.len() as u32 };
        let definition = Definition { kind, line: line_number, column: start as u32 + 1, end_line };
        builder.add(file, &line[start..end], definition)?;
    }
    Ok(())
}

fn query_names(names: Names<'_>, files: &[PathBuf]) {
    for name in [
        "vfs_open",
        "vfs_op",
        "vfs_",
        "a",
        "openfile",
        "fo",
        "fileop",
        "regmap_iniy",
        "kmem_cahce_aloc",
        "zzqqzzqq",
    ] {
        let query = NameQuery { name, case: Case::Insensitive, kinds: None };
        let (took, finding) = quickest(|| find(&[NamesPart { names, allowed: None }], &query, 20, &|| false));
        let show = |found: &Found| format!("{} in {}", found.name, files[found.file as usize].display());
        println!(
            "  {name:?}: {took:.2?}, {}{}: {:?}, {:?}",
            finding.total,
            if finding.is_total_exact { "" } else { "+" },
            finding.found.first().map(show),
            finding.found.last().map(show),
        );
    }
}

fn query_words(words: &[u8], files: &[PathBuf]) {
    let Ok(words) = Words::open(words) else { return };
    for query in ["vfs_open", "page cache writeback", "static int struct return if", "absent_identifier_xyz"]
    {
        let half = |file: u32| file.is_multiple_of(2);
        for allowed in [None, Some(&half as &dyn Fn(u32) -> bool)] {
            let (took, (best, total)) =
                quickest(|| rank(&[WordsPart { words, allowed }], query, 20, &|| false));
            let first = best.first().map(|best| (files[best.file as usize].display(), best.score));
            println!(
                "  {query:?}, {}: {took:.2?}, {total} files, {first:?}",
                if allowed.is_some() { "half" } else { "all" }
            );
        }
    }
}

/// The shortest of several times, and what came out.
fn quickest<T>(run: impl Fn() -> T) -> (std::time::Duration, T) {
    let mut best: Option<(std::time::Duration, T)> = None;
    for _ in 0..10 {
        let started = Instant::now();
        let result = run();
        let took = started.elapsed();
        if best.as_ref().is_none_or(|(best, _)| took < *best) {
            best = Some((took, result));
        }
    }
    best.expect("it ran")
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Gives every thread a builder and adds the files to them in turn.
fn on_threads<B: Send>(
    threads: usize,
    files: &[PathBuf],
    new: impl Fn() -> B + Sync,
    add: impl Fn(&mut B, u32, &[u8]) -> std::io::Result<()> + Sync,
) -> std::io::Result<Vec<(B, u64)>> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let (mut builder, mut bytes) = (new(), 0);
        loop {
            let file = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(path) = files.get(file) else { return Ok((builder, bytes)) };
            let text = std::fs::read(path)?;
            bytes += text.len() as u64;
            add(&mut builder, file as u32, &text)?;
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
