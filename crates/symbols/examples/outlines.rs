//! Outlines every file below a folder and prints how fast that was: `outlines FOLDER [LANGUAGE]`.

use pintle_symbols::{Kind, Language, Outline, Outliner};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut pending = vec![PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()))];
    let only = arguments.next().and_then(|name| Language::from_name(&name));
    let mut outliner = Outliner::new();
    let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
    let mut languages: BTreeMap<&str, (u64, Duration)> = BTreeMap::new();
    let (mut files, mut name_bytes) = (0u64, 0u64);
    while let Some(path) = pending.pop() {
        let about = path.symlink_metadata()?;
        if about.is_dir() {
            pending.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            continue;
        }
        let language = Language::of_path(path.as_os_str().as_encoded_bytes());
        let Some(language) = language.filter(|language| about.is_file() && language.has_symbols()) else {
            continue;
        };
        if only.is_some_and(|only| only != language) {
            continue;
        }
        let text = std::fs::read(&path)?;
        let start = Instant::now();
        let outline = outliner.outline(language, &text, &|| false);
        let took = start.elapsed();
        if matches!(outline, Outline::GaveUp(_)) {
            println!("gave up: {} ({} bytes)", path.display(), text.len());
        }
        if took > Duration::from_millis(500) {
            println!("slow: {} ({} bytes, {took:?})", path.display(), text.len());
        }
        for symbol in outline.symbols().unwrap_or_default() {
            *kinds.entry(symbol.kind).or_default() += 1;
            name_bytes += symbol.name.len() as u64;
        }
        files += 1;
        let total = languages.entry(language.name()).or_default();
        *total = (total.0 + text.len() as u64, total.1 + took);
    }
    for (kind, count) in &kinds {
        println!("{:>10} {}", count, kind.name());
    }
    println!("{files} files, {} symbols, {name_bytes} bytes of names", kinds.values().sum::<u64>());
    for (language, (bytes, took)) in languages {
        let megabytes = bytes as f64 / 1e6;
        println!(
            "{language:>12}: {megabytes:8.1} MB in {took:.1?}, {:.1} MB/s",
            megabytes / took.as_secs_f64()
        );
    }
    Ok(())
}
