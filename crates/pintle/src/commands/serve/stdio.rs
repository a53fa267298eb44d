//! Serving one client on standard input and output.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_engine::Engine;
use pintle_tool::Caller;
use pintle_wire::{McpService, Outlet, Pipe, PipeOptions};

use super::{
    drain::{WatchedLog, drain, end_at_once, finish},
    panel::Panel,
    parent,
    signals::Signals,
};
use crate::{error::StartError, notices, ready::ReadyFile, settings::Serve};

pub(super) async fn serve(
    engine: Arc<Engine>,
    service: Arc<dyn McpService>,
    serve: Serve,
    log: Option<Outlet>,
    panel: Option<Panel>,
) -> Result<ExitCode, StartError> {
    // What a client does not read may gather up to here before replies wait.
    const REPLIES_HELD: usize = 1 << 20;
    let problem = StartError::Stdio;
    let mut signals = Signals::listen().map_err(problem)?;
    let output = pintle_wire::standard_output().map_err(problem)?;
    let name = "pintle-writer";
    let outlet = match pintle_wire::standard_output_at_once().map_err(problem)? {
        Some(shortcut) => Outlet::with_shortcut(name, output, REPLIES_HELD, shortcut),
        None => Outlet::new(name, output, REPLIES_HELD, Duration::ZERO),
    };
    let outlet = outlet.map_err(problem)?;
    let closing = outlet.clone();
    pintle_wire::on_output_hangup(move || closing.close()).map_err(problem)?;
    if !serve.keep_running {
        let closing = outlet.clone();
        parent::on_end(move || closing.close()).map_err(problem)?;
    }
    let options = PipeOptions {
        max_request_bytes: serve.max_request_bytes,
        progress_always: serve.progress_always,
        write_timeout: serve.write_timeout,
    };
    let input = pintle_wire::standard_input().map_err(problem)?;
    let caller = Caller::local().restricted_to(serve.permissions.clone());
    let log = log.map(WatchedLog::new);
    let ready = ReadyFile::write(serve.ready_file.clone());
    let mut pipe = Pipe::start(engine, caller, service, input, outlet.clone(), options).map_err(problem)?;
    if let Some(panel) = panel {
        panel.show_for_stdio();
    }
    notices::plain("mcp:ready mode=stdio");
    let mut deadline = None;
    tokio::select! {
        () = pipe.ended() => {}
        () = signals.next() => {
            deadline = Some(Instant::now() + serve.drain);
            pipe.stop_taking();
            tokio::select! {
                () = drain(&mut pipe, serve.drain) => {}
                () = signals.next() => return Ok(end_at_once(ready)),
            }
        }
    }
    let written = loop {
        tokio::select! {
            written = finish(&outlet, deadline) => break written,
            () = signals.next() => match deadline {
                None => deadline = Some(Instant::now() + serve.drain),
                Some(_) => return Ok(end_at_once(ready)),
            },
        }
    };
    if let Some(log) = log {
        log.finish().await;
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
