//! `pintle serve`: from ready to the last reply.

use std::{fs::OpenOptions, process::ExitCode, sync::Arc, time::Duration};

use pintle_engine::{CallLog, Engine, Level, Outlet};
use pintle_wire::{Pipe, PipeOptions, StandardInput, StandardOutput};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    cli::{LogLevel, ServeArguments},
    config::FileConfig,
    environment, notices,
    ready::ReadyFile,
    settings::{Serve, Workspace},
    workbench,
};

/// Serves until the client leaves or a signal comes.
pub fn run(arguments: ServeArguments) -> Result<ExitCode, String> {
    let file = FileConfig::load(arguments.workspace.config.as_deref())?;
    let workspace = Workspace::decide(arguments.workspace.clone(), &file)?;
    let serve = Serve::decide(&arguments, &file, workspace.timeouts.clone())?;
    environment::warn_of_unknown();
    let log = open_log(&serve)?;
    let engine = Arc::new(workbench::build_engine(&workspace, serve.engine.clone(), log)?);
    if serve.log_level >= LogLevel::Debug {
        notices::plain(&format!("debug: root {}", workspace.root.display()));
        notices::plain(&format!("debug: {workspace:?}"));
        notices::plain(&format!("debug: {serve:?}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One thread may compute while another takes cancels and signals.
        .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).max(2))
        .thread_name("pintle-worker")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let ended = runtime.block_on(serve_stdio(engine, serve));
    // Work that was given up may still compute in threads that nobody waits for.
    runtime.shutdown_background();
    ended
}

async fn serve_stdio(engine: Arc<Engine>, serve: Serve) -> Result<ExitCode, String> {
    // What a client does not read may gather up to here before replies wait.
    const REPLIES_HELD: usize = 1 << 20;
    let problem = |error: std::io::Error| format!("cannot serve on standard input and output: {error}");
    let mut signals = Signals::listen().map_err(problem)?;
    let output = StandardOutput::open().map_err(problem)?;
    let outlet = Outlet::new("pintle-writer", output, REPLIES_HELD, Duration::ZERO).map_err(problem)?;
    let closing = outlet.clone();
    StandardOutput::on_hangup(move || closing.close()).map_err(problem)?;
    let options =
        PipeOptions { max_request_bytes: serve.max_request_bytes, progress_always: serve.progress_always };
    let input = StandardInput::open().map_err(problem)?;
    let ready = ReadyFile::write(serve.ready_file.clone());
    let mut pipe = Pipe::start(Arc::clone(&engine), input, outlet.clone(), options).map_err(problem)?;
    notices::plain("mcp:ready mode=stdio");
    tokio::select! {
        () = pipe.ended() => {}
        () = signals.next() => {
            pipe.stop_taking();
            tokio::select! {
                () = drain(&mut pipe, serve.drain) => {}
                () = signals.next() => {
                    drop(ready);
                    std::process::exit(1);
                }
            }
        }
    }
    // A client that has stopped reading does not keep the server.
    const LAST_REPLIES: Duration = Duration::from_secs(5);
    tokio::select! {
        () = finish(outlet, engine, LAST_REPLIES) => {}
        () = signals.next() => {}
    }
    drop(ready);
    Ok(ExitCode::SUCCESS)
}

/// Waits for what runs, and cancels it when the time is over.
async fn drain(pipe: &mut Pipe, patience: Duration) {
    const CANCELLED_ENDS: Duration = Duration::from_secs(2);
    if tokio::time::timeout(patience, pipe.ended()).await.is_err() {
        pipe.cancel_running();
        let _ = tokio::time::timeout(CANCELLED_ENDS, pipe.ended()).await;
    }
}

/// Waits until the last replies and records are written.
async fn finish(outlet: Outlet, engine: Arc<Engine>, patience: Duration) {
    let written = tokio::task::spawn_blocking(move || {
        outlet.finish(patience);
        engine.finish_log();
    });
    let _ = written.await;
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

fn open_log(serve: &Serve) -> Result<CallLog, String> {
    let level = match serve.log_level {
        LogLevel::Off => return Ok(CallLog::off()),
        LogLevel::Error => Level::Error,
        LogLevel::Warn => Level::Warn,
        LogLevel::Info | LogLevel::Debug => Level::Info,
    };
    let Some(path) = &serve.log_file else {
        return CallLog::lossy(std::io::stderr(), level).map_err(|error| format!("cannot log: {error}"));
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|file| CallLog::lossless(file, level))
        .map_err(|error| format!("cannot write the log file {}: {error}", path.display()))
}
