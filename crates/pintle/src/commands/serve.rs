//! `pintle serve`: from ready to the last reply.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_engine::{CallLog, Engine, Level, Outlet};
use pintle_wire::{McpHandler, PatientFile, Pipe, PipeOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    cli::{LogLevel, ServeArguments},
    environment, notices,
    ready::ReadyFile,
    settings::{Serve, Workspace},
    workbench,
};

/// Serves until the client leaves or a signal comes.
pub fn run(arguments: ServeArguments) -> Result<ExitCode, String> {
    let (workspace, file) = Workspace::read(arguments.workspace.clone())?;
    workspace.refuse_state_inside_root()?;
    let serve = Serve::decide(&arguments, &file, workspace.timeouts.clone())?;
    let stderr = notices::through_outlet().map_err(|error| format!("cannot start: {error}"))?;
    environment::warn_of_unknown();
    let log = Log::open(&serve, stderr)?;
    let engine = Arc::new(workbench::build_engine(&workspace, serve.engine.clone(), log.calls)?);
    if serve.log_level >= LogLevel::Debug {
        tell_what_is_served(&workspace, &serve);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One thread may compute while another takes cancels and signals.
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
        .thread_name("pintle-worker")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let ended = runtime.block_on(serve_stdio(engine, serve, log.file));
    // Work that was given up may still compute in threads that nobody waits for.
    runtime.shutdown_background();
    ended
}

async fn serve_stdio(engine: Arc<Engine>, serve: Serve, log: Option<Outlet>) -> Result<ExitCode, String> {
    // What a client does not read may gather up to here before replies wait.
    const REPLIES_HELD: usize = 1 << 20;
    let problem = |error: std::io::Error| format!("cannot serve on standard input and output: {error}");
    let mut signals = Signals::listen().map_err(problem)?;
    let output = pintle_wire::standard_output().map_err(problem)?;
    let outlet = Outlet::new("pintle-writer", output, REPLIES_HELD, Duration::ZERO).map_err(problem)?;
    let closing = outlet.clone();
    pintle_wire::on_output_hangup(move || closing.close()).map_err(problem)?;
    let options =
        PipeOptions { max_request_bytes: serve.max_request_bytes, progress_always: serve.progress_always };
    let input = pintle_wire::standard_input().map_err(problem)?;
    let lost_log = log.clone().map(|log| tokio::spawn(tell_when_lost(log)));
    let ready = ReadyFile::write(serve.ready_file.clone());
    let handler = McpHandler::new(Arc::clone(&engine));
    let mut pipe = Pipe::start(engine, handler, input, outlet.clone(), options).map_err(problem)?;
    notices::plain("mcp:ready mode=stdio");
    let mut deadline = None;
    tokio::select! {
        () = pipe.ended() => {}
        () = signals.next() => {
            deadline = Some(Instant::now() + serve.drain);
            pipe.stop_taking();
            tokio::select! {
                () = drain(&mut pipe, serve.drain) => {}
                () = signals.next() => return Ok(ended_at_once(ready)),
            }
        }
    }
    let written = loop {
        tokio::select! {
            written = finish(&outlet, deadline) => break written,
            () = signals.next() => match deadline {
                None => deadline = Some(Instant::now() + serve.drain),
                Some(_) => return Ok(ended_at_once(ready)),
            },
        }
    };
    if let (Some(log), Some(lost)) = (log, lost_log) {
        finish(&log, Some(Instant::now() + LAST_RECORDS)).await;
        if log.is_closed() {
            let _ = lost.await;
        }
    }
    drop(ready);
    Ok(match outlet.failure() {
        Some(failure) => {
            notices::error(&format!("replies were lost: standard output cannot be written: {failure}"));
            ExitCode::FAILURE
        }
        None => {
            // Only a signal sets a limit to the wait, and then the end is what was asked for.
            if !written {
                notices::warning("replies were lost: nobody read them in time");
            }
            ExitCode::SUCCESS
        }
    })
}

/// How long the last records may take to reach a log file.
const LAST_RECORDS: Duration = Duration::from_secs(10);

fn ended_at_once(ready: Option<ReadyFile>) -> ExitCode {
    drop(ready);
    std::process::exit(1)
}

/// Waits for what runs, and cancels it when the time is over.
async fn drain(pipe: &mut Pipe, patience: Duration) {
    const CANCELLED_ENDS: Duration = Duration::from_secs(1);
    if tokio::time::timeout(patience, pipe.ended()).await.is_err() {
        pipe.cancel_running();
        let _ = tokio::time::timeout(CANCELLED_ENDS, pipe.ended()).await;
    }
}

/// Waits until everything is written: for as long as it takes, or until a deadline, but for a moment at
/// least. Says whether it was.
async fn finish(outlet: &Outlet, deadline: Option<Instant>) -> bool {
    const MOMENT: Duration = Duration::from_secs(1);
    let started = Instant::now();
    loop {
        let waiting = outlet.clone();
        let finished = tokio::task::spawn_blocking(move || waiting.finish(MOMENT)).await;
        if finished.unwrap_or(true) {
            return true;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline.max(started + MOMENT)) {
            return false;
        }
    }
}

/// Says so when the call log cannot be written any more.
async fn tell_when_lost(log: Outlet) {
    log.closed().await;
    let reason = log.failure().unwrap_or_else(|| "nobody reads it".into());
    notices::error(&format!("the call log is lost from here on: {reason}"));
}

/// Nothing secret: a backend's address may hold a password.
fn tell_what_is_served(workspace: &Workspace, serve: &Serve) {
    let folder =
        |path: &Option<PathBuf>| path.as_ref().map_or("none".into(), |path| path.display().to_string());
    notices::plain(&format!("debug: root {}", workspace.root.display()));
    notices::plain(&format!("debug: state {}", folder(&workspace.state_dir)));
    notices::plain(&format!("debug: schemas {}", folder(&workspace.schemas_dir)));
    notices::plain(&format!("debug: examples {}", folder(&workspace.examples_dir)));
    let backend = if workspace.backend_url.is_some() { "configured" } else { "none" };
    notices::plain(&format!("debug: backend {backend}"));
    notices::plain(&format!("debug: {:?}", serve.engine));
}

/// The signals that end a server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The call log, and its file if it has one of its own.
struct Log {
    calls: CallLog,
    file: Option<Outlet>,
}

impl Log {
    fn open(serve: &Serve, stderr: Outlet) -> Result<Self, String> {
        let level = match serve.log_level {
            LogLevel::Off => return Ok(Self { calls: CallLog::off(), file: None }),
            LogLevel::Error => Level::Error,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info | LogLevel::Debug => Level::Info,
        };
        let Some(path) = &serve.log_file else {
            return Ok(Self { calls: CallLog::lossy(stderr, level), file: None });
        };
        // A pipe that nobody reads is an error now, instead of a start that never ends.
        let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().create(true).append(true).custom_flags(no_wait).open(path);
        let outlet = file.and_then(|file| CallLog::outlet(PatientFile::from(file)));
        let outlet =
            outlet.map_err(|error| format!("cannot write the log file {}: {error}", path.display()))?;
        Ok(Self { calls: CallLog::lossless(outlet.clone(), level), file: Some(outlet) })
    }
}
