//! `pintle call`: one tool, once, in this process, through the same engine as every other call.

use std::{io::Read, process::ExitCode, sync::Arc};

use pintle_contract::{Meta, Scopes};
use pintle_engine::{ArgumentReading, Call, CallLog, Options, Outcome, Target, Transport};
use pintle_process::Spawner;
use pintle_tool::{Caller, Cancel, CancelReason};
use serde_json::{Value, json};

use crate::{
    cli::CallArguments,
    compose::{self, Composition},
    error::StartError,
    notices, output,
    settings::{Given, PROGRAM_VERSION, Workspace},
    toolsets::Toolsets,
};

use super::serve::{drain::end_commands, signals::Signals};

/// Calls the tool. Exit code 0 for a success, 1 for a failure, 2 if there was nothing to call.
pub fn run(arguments: CallArguments) -> Result<ExitCode, StartError> {
    let params = read_arguments(&arguments.input)?;
    let workspace = Workspace::decide(&Given::read(arguments.flags)?)?;
    let options = Options {
        tooling_version: PROGRAM_VERSION.into(),
        timeouts: workspace.timeouts.clone(),
        ..Options::default()
    };
    let workspace = workspace.without_background();
    let Composition { engine, commands } =
        compose::build_engine(&workspace, &Toolsets::Auto, options, CallLog::off())?;
    let call = Call {
        target: Target::Tool(arguments.tool),
        params,
        argument_reading: ArgumentReading::Strict,
        left_out: Vec::new(),
        meta: Meta::default(),
        idempotency_key: None,
        progress: None,
        reply_factor: 1,
    };
    let caller = Caller::local().restricted_to(workspace.permissions(Scopes::everything()));
    let (engine, caller) = (Arc::new(engine), Arc::new(caller));
    let incoming = engine.unopened(&caller, &Transport::named("local"), None, 0);
    let cancel = Arc::clone(incoming.cancel());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::System)?;
    let call = incoming.call(call);
    let answered = match commands {
        Some(commands) => runtime.block_on(until_signal(call, &cancel, commands.spawner()))?,
        None => runtime.block_on(call),
    };
    match answered.outcome {
        Outcome::Success(json) => {
            output::json_text(json.get());
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Declined(json, failure) => {
            output::json_text(json.get());
            notices::error(&format!("{}: {}", failure.code.name(), failure.message));
            Ok(ExitCode::from(1))
        }
        Outcome::Fault(fault) => {
            if arguments.json {
                output::json(&json!(fault));
            }
            notices::error(&fault.to_string());
            Ok(ExitCode::from(1))
        }
    }
}

/// Waits for a call of a tool that may be a command. A signal cancels it, and what the command started is ended as in any
/// other cancelled call; another signal ends the process at once.
async fn until_signal<T>(
    call: impl Future<Output = T>,
    cancel: &Cancel,
    spawner: Spawner,
) -> Result<T, StartError> {
    let mut signals = Signals::listen().map_err(StartError::System)?;
    let mut call = std::pin::pin!(call);
    tokio::select! {
        answered = &mut call => return Ok(answered),
        () = signals.next() => {
            cancel.cancel(CancelReason::Asked);
        }
    }
    let answered = call.await;
    end_commands(spawner).await;
    Ok(answered)
}

fn read_arguments(input: &str) -> Result<Value, StartError> {
    let mut text = input.to_owned();
    if input == "-" {
        text.clear();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(StartError::ArgumentsNotRead)?;
    }
    serde_json::from_str(&text).map_err(StartError::ArgumentsNotJson)
}
