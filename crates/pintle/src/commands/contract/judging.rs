//! Judges schemas in a process of its own.
//!
//! The algebra of schemas can take very long, use much memory, or overflow its stack on hostile schemas, and cannot be
//! stopped from outside. So it runs in a worker process with limits. A pair that takes too long, or that ends the worker,
//! is `unknown`, and the next worker goes on with the pair behind it.

use std::{
    io::{Read as _, Write as _},
    process::ExitCode,
    sync::mpsc,
    time::{Duration, Instant},
};

use pintle_process::{CommandSpec, Keep, Spawner};
use pintle_surface::{SchemaFinding, SchemaPair, Surface, compare, judge, judge_by_structure, read_deep};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::error::StartError;

/// How long one pair may take.
const PAIR_TIMEOUT: Duration = Duration::from_secs(4);
/// How long the changes of one pair are judged alone.
const ALONE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a worker may need to start and to read what it is given, besides judging.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long all pairs together may take. What is left then is judged by its structure alone.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);
/// The memory of a worker.
const MEMORY: u64 = 4 << 30;
/// The stack of the thread that judges: schemas are nested, and the algebra is recursive.
const STACK: usize = 512 << 20;
/// What a worker may print.
const LARGEST_OUTPUT: usize = 256 << 20;

/// The verdicts on all pairs of schemas that two surfaces have, in the order in which a comparison asks for them.
pub async fn judge_all(
    old: &Surface,
    new: &Surface,
    spawner: &Spawner,
) -> Result<Vec<Vec<SchemaFinding>>, StartError> {
    let mut pairs = Vec::new();
    compare(old, new, &mut |pair| {
        pairs.push(pair.clone());
        Vec::new()
    });
    let begun = Instant::now();
    let mut judged = Vec::with_capacity(pairs.len());
    while judged.len() < pairs.len() {
        let rest = &pairs[judged.len()..];
        if begun.elapsed() > TOTAL_TIMEOUT {
            let reason = "there was no time left to judge it";
            judged.extend(rest.iter().map(|pair| judge_by_structure(pair, reason)));
            break;
        }
        let (findings, reason) = run(rest, spawner).await?;
        judged.extend(findings);
        if let Some(pair) = pairs.get(judged.len()) {
            judged.push(judge_by_structure(pair, reason));
        }
    }
    Ok(judged)
}

/// Lets a worker judge. It may end early; then the reason is about the first pair without findings.
async fn run(
    pairs: &[SchemaPair],
    spawner: &Spawner,
) -> Result<(Vec<Vec<SchemaFinding>>, &'static str), StartError> {
    let program = std::env::current_exe().map_err(StartError::System)?;
    let spec = CommandSpec {
        program,
        arguments: vec!["contract".into(), "judge".into()],
        environment: Vec::new(),
        folder: "/".into(),
        stdin: Some(serde_json::to_vec(pairs).map_err(StartError::ArgumentsNotJson)?),
        grace: Duration::ZERO,
        keep_stdout: Keep::whole(LARGEST_OUTPUT),
        keep_stderr: Keep::ends(1024),
    };
    let timeout = START_TIMEOUT + PAIR_TIMEOUT * u32::try_from(pairs.len()).unwrap_or(u32::MAX).min(100);
    let finished = tokio::time::timeout(timeout, spawner.run(spec, |_| {}, ())).await;
    let Ok(finished) = finished else { return Ok((Vec::new(), "it took too long to judge")) };
    let finished = finished.map_err(|error| StartError::System(std::io::Error::other(error.to_string())))?;
    let text = finished.stdout.whole().unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let findings: Vec<Vec<SchemaFinding>> = lines.map_while(|line| read_deep(line).ok()).collect();
    let reason = match finished.exit {
        pintle_process::Exit::Code(code) if code == i32::from(TOO_SLOW) => {
            "it took more than 4 seconds to judge"
        }
        _ => "judging it took too much memory or too deep a recursion",
    };
    Ok((findings, reason))
}

/// The exit code of a worker that gave up on a pair because of the time.
const TOO_SLOW: u8 = 3;

/// The worker: reads pairs and prints the findings of each, a line each.
pub fn run_worker() -> Result<ExitCode, StartError> {
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    // An error is fine: the limit that there is may be lower.
    let _ = setrlimit(Resource::As, limit);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let mut given = Vec::new();
    std::io::stdin().read_to_end(&mut given).map_err(StartError::ArgumentsNotRead)?;
    let pairs: Vec<SchemaPair> = read_deep(&given).map_err(StartError::ArgumentsNotJson)?;
    let (send, judged) = mpsc::channel();
    let judging = move || {
        for pair in &pairs {
            if send.send(judge(pair, Instant::now() + ALONE_TIMEOUT)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(judging).map_err(StartError::System)?;
    let mut output = std::io::stdout().lock();
    loop {
        match judged.recv_timeout(PAIR_TIMEOUT) {
            Ok(findings) => {
                let line = serde_json::to_string(&findings).map_err(StartError::ArgumentsNotJson)?;
                writeln!(output, "{line}").map_err(StartError::Output)?;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => return Ok(ExitCode::from(TOO_SLOW)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(ExitCode::SUCCESS),
        }
    }
}
