//! Steps 3 to 9 of a call: from its method to its outcome.

use std::{future::Future, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt;
use pintle_contract::{Element, ErrorCode, Fault, Fingerprint, Permission, Stage, fingerprint};
use pintle_schema::Mismatch;
use pintle_tool::{
    Answer, Authorizer, CallContext, CallParts, Caller, Cancel, LARGE, Prepared, Progress, block_in_place_if,
    result_too_large,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    admission::Admitted,
    audit::CallAuthorizer,
    budget::Reservation,
    catalogue::Entry,
    engine::Engine,
    idempotency::{Key, Known},
    incoming::{ArgumentReading, Call, Target, Turn},
    invoke,
    outcome::{Outcome, Reply, json_size},
    record::Record,
    repair::{Repairs, repair},
    workspace::{Recovery, Workspace},
};

/// How long the reply of a call that has ended early waits for work to clean up after itself.
const MAX_CLEANUP: Duration = Duration::from_secs(10);

/// The tool of a call, its arguments, and what is to be done before it runs.
struct Found {
    tool: Arc<Entry>,
    arguments: Value,
    recovery: Option<Arc<dyn Recovery>>,
}

/// Work that may run, with what it is given.
struct Run<'a> {
    recovery: Option<Arc<dyn Recovery>>,
    work: Prepared<'a>,
    caller: Arc<Caller>,
    authorizer: Arc<CallAuthorizer>,
    progress: Progress,
    reread: Vec<(String, String)>,
    reply_factor: usize,
    deadline: Deadline,
}

impl Engine {
    /// Step 3: the method, and the tool. Then the rest.
    pub(crate) async fn run_call(
        &self,
        mut call: Call,
        caller: Arc<Caller>,
        cancel: &Arc<Cancel>,
        record: &mut Record,
        turn: Option<Turn>,
    ) -> Reply {
        let params = std::mem::take(&mut call.params);
        let found = match &call.target {
            Target::Discover => {
                return match self.catalogue().discovery(&params) {
                    Ok(list) => self.reserved(Outcome::success(&list), call.reply_factor, cancel).await,
                    Err(fault) => Reply::fault(fault),
                };
            }
            target => {
                let find = async |workspace: &Workspace| {
                    let (tool, arguments) = self.find(workspace, target, params, record)?;
                    Ok(Found { tool, arguments, recovery: workspace.recovery() })
                };
                self.in_workspace_of(&caller, find).await
            }
        };
        match found {
            Ok(found) => {
                record.tool = Some(Arc::clone(&found.tool));
                self.call_tool(found, call, caller, cancel, (record, turn)).await
            }
            Err(fault) => Reply::fault(fault),
        }
    }

    /// The tool of a call, and its arguments.
    fn find(
        &self,
        workspace: &Workspace,
        target: &Target,
        params: Value,
        record: &mut Record,
    ) -> Result<(Arc<Entry>, Value), Fault> {
        match target {
            Target::Resource => Ok((Arc::clone(&workspace.read_resource), params)),
            Target::Tool(name) => workspace.catalogue().require(name).map(|tool| (Arc::clone(tool), params)),
            Target::Invoke | Target::Discover => self.read_invocation(workspace, params, record),
        }
    }

    /// The tool and the arguments that the params of `mcp.tool.invoke` name.
    fn read_invocation(
        &self,
        workspace: &Workspace,
        params: Value,
        record: &mut Record,
    ) -> Result<(Arc<Entry>, Value), Fault> {
        let invocation = invoke::read(params, &self.tool_io_schema, &workspace.catalogue())?;
        record.meta = invocation.meta.or(std::mem::take(&mut record.meta));
        record.input_bytes = json_size(&invocation.arguments);
        Ok((invocation.tool, invocation.arguments))
    }

    /// Steps 4 to 9.
    async fn call_tool(
        &self,
        Found { tool, mut arguments, recovery }: Found,
        call: Call,
        caller: Arc<Caller>,
        cancel: &Arc<Cancel>,
        (record, turn): (&mut Record, Option<Turn>),
    ) -> Reply {
        let tool = &tool;
        let is_large = record.input_bytes > LARGE;
        let checked =
            block_in_place_if(is_large, || check_arguments(tool, &mut arguments, call.argument_reading));
        let repairs = match checked {
            Ok(repairs) => repairs,
            Err((repairs, fault)) => {
                record.repaired.extend(repairs.names);
                return Reply::fault(fault);
            }
        };
        record.repaired.extend(repairs.names);
        // The arguments are gone once the work is prepared.
        let key = call.idempotency_key.map(|key| {
            // With other scopes it is another caller: a stored outcome may show what they do not.
            let key = Key { caller: caller.identity_and_scopes().into(), key: key.as_str().into() };
            (key, fingerprint(&json!([tool.id, arguments])))
        });
        let authorizer = Arc::new(CallAuthorizer::new(self, &caller, tool));
        let work = match prepare(tool, arguments, &authorizer) {
            Ok(work) => work,
            Err(fault) => return Reply::fault(fault),
        };
        drop(turn);
        let _counted = match self.caller_limits.count(caller.identity()) {
            Ok(counted) => counted,
            Err(fault) => return Reply::fault(fault),
        };
        if let Some(progress) = &call.progress {
            progress.authorized();
        }
        let deadline = Deadline::after(self.options.timeouts.of(&*tool.tool));
        let ticket = match self.look_up(key, cancel, deadline).await {
            Ok(None) => None,
            Ok(Some(Known::Nothing(ticket))) => Some(ticket),
            Ok(Some(Known::Outcome { outcome, attempt })) => {
                record.attempt = attempt;
                record.cache_hit = true;
                return self.reserved(outcome, call.reply_factor, cancel).await;
            }
            Err(fault) => return Reply::fault(fault),
        };
        let name = &tool.tool.definition().name;
        let progress = Progress::new(call.progress, record.meta.progress_token.as_ref(), name);
        let (reread, reply_factor) = (repairs.reread, call.reply_factor);
        let run = Run {
            recovery,
            work,
            caller,
            authorizer: Arc::clone(&authorizer),
            progress,
            reread,
            reply_factor,
            deadline,
        };
        let reply = self.run(tool, run, cancel).await;
        if let Outcome::Fault(fault) = &reply.outcome {
            authorizer.note_refusal(fault);
        }
        // What really happened is kept for the key, also when a late cancel hides it from this reply.
        if let Some(ticket) = ticket {
            ticket.finish(&reply.outcome);
        }
        reply
    }

    /// The reply of an outcome that is there already.
    async fn reserved(&self, outcome: Outcome, reply_factor: usize, cancel: &Cancel) -> Reply {
        match self.budget.reserve(reply_factor * outcome.bytes(), cancel).await {
            Ok(reservation) => Reply::new(outcome, reservation),
            Err(fault) => Reply::fault(fault),
        }
    }

    /// Step 6: what an idempotency key knows. Waiting for another call with the same key occupies no slot, but counts
    /// as waiting: only as many may as may wait for a slot.
    async fn look_up(
        &self,
        key: Option<(Key, Fingerprint)>,
        cancel: &Cancel,
        deadline: Deadline,
    ) -> Result<Option<Known<'_>>, Fault> {
        let Some((key, fingerprint)) = key else { return Ok(None) };
        let known = self.idempotency.look_up(key, fingerprint, self.options.waiting);
        until_ended(known, cancel, deadline).await.1.map(Some)
    }

    /// Steps 7 to 9: waits for a slot, runs the tool and checks what it gives. The deadline is for all of
    /// it: a caller is not kept waiting by those before it either.
    async fn run(&self, tool: &Entry, run: Run<'_>, cancel: &Arc<Cancel>) -> Reply {
        let Run { recovery, work, caller, authorizer, progress, reread, reply_factor, deadline } = run;
        let ended = cancel.token().child_token();
        let ends_with_this_call = ended.clone().drop_guard();
        let work = async {
            let admission = if tool.tool.runs_process() { &self.processes } else { &self.admission };
            let Admitted { slot, result } =
                admission.admit(caller.identity(), cancel, tool.tool.turn()).await?;
            if let Some(recovery) = recovery.filter(|recovery| recovery.is_needed()) {
                // A failure of it is logged, and is none of this call.
                let _ = tokio::task::spawn_blocking(move || recovery.recover()).await;
            }
            let context = CallContext::new(CallParts {
                caller,
                authorizer: Some(authorizer),
                ended,
                progress: progress.clone(),
                cancel: Arc::clone(cancel),
                slot: Some(Box::new(slot)),
                largest_result: self.options.max_result_bytes,
                reread,
            });
            let work = AssertUnwindSafe(async { (work.run)(context).await }).catch_unwind();
            let answer = work.await.unwrap_or_else(|_| Err(panicked()))?;
            Ok((answer, result))
        };
        let (came_to_its_end, result) = until_ended(work, cancel, deadline).await;
        progress.close(came_to_its_end);
        if !came_to_its_end {
            drop(ends_with_this_call);
            let _ = tokio::time::timeout(MAX_CLEANUP, cancel.cleaned_up()).await;
        }
        let (answer, result_permit) = match result {
            Ok(finished) => finished,
            Err(fault) => return Reply::fault(fault),
        };
        let size = match block_in_place_if(answer.is_large, || self.check_output(tool, &answer)) {
            Ok(size) => size,
            Err(fault) if cancel.is_committed() => return Reply::fault(done_but(fault)),
            Err(fault) => return Reply::fault(fault),
        };
        let bytes = reply_factor * size;
        let reserved = match result_permit {
            Some(_) => self.budget.reserve(bytes, cancel).await,
            None => self.budget.reserve_at_once(bytes, cancel).await,
        };
        let reservation = match reserved {
            Ok(reservation) => reservation,
            // What has been done is reported, whatever memory that takes.
            Err(_) if cancel.is_committed() || answer.took_effect() => Reservation::default(),
            Err(fault) => return Reply::fault(fault),
        };
        drop(result_permit);
        let outcome = block_in_place_if(answer.is_large, || Outcome::serialize(answer));
        Reply::new(outcome, reservation)
    }

    /// Step 9: checks a result, and gives the size of its JSON.
    fn check_output(&self, tool: &Entry, answer: &Answer) -> Result<usize, Fault> {
        if !tool.output.accepts(&answer.value) {
            let wrong = tool.output.mismatches(&answer.value, "field");
            let shown: Vec<_> = wrong.iter().take(3).map(|m| m.message.as_str()).collect();
            return Err(Fault::new(
                ErrorCode::InvalidOutput,
                format!("the tool broke its own output schema: {}", shown.join("; ")),
            ));
        }
        let (size, limit) = (json_size(&answer.value), self.options.max_result_bytes);
        if size > limit {
            return Err(result_too_large(size, limit));
        }
        Ok(size)
    }
}

/// The fault for a result that cannot be returned although the call has changed something.
fn done_but(fault: Fault) -> Fault {
    let message = format!("the call was made, but its result cannot be shown: {}", fault.message);
    fault.with_message(message).hint("do not repeat the call: read what it has changed").after_effect()
}

/// Steps 4 and 5: checks that the caller has the permissions that the tool declares, and reads the arguments.
fn prepare<'a>(
    tool: &'a Entry,
    arguments: Value,
    authorizer: &CallAuthorizer,
) -> Result<Prepared<'a>, Fault> {
    let accesses = tool.tool.accesses(&arguments).map_err(|fault| fault.at(Stage::Arguments))?;
    authorizer
        .authorize(&accesses)
        .map_err(|fault| name_elements(fault, tool.tool.permissions(), &arguments, authorizer.caller()))?;
    tool.tool.prepare(arguments)
}

/// Step 4: checks the arguments, after converting those that are not as the schema wants them where that may be done.
fn check_arguments(
    tool: &Entry,
    arguments: &mut Value,
    reading: ArgumentReading,
) -> Result<Repairs, (Repairs, Fault)> {
    let mut is_accepted = tool.input.accepts(arguments);
    let mut repairs = Repairs::default();
    if reading == ArgumentReading::Lenient {
        repairs = repair(arguments, tool.tool.as_ref(), &tool.input, is_accepted);
        is_accepted = is_accepted && repairs.names.is_empty() || tool.input.accepts(arguments);
    }
    let problems = tool.tool.check(arguments);
    if is_accepted && problems.is_empty() {
        return Ok(repairs);
    }
    let definition = tool.tool.definition();
    let subject = format!("the arguments of `{}` do not match", definition.name);
    let others = problems.into_iter().map(|problem| Mismatch::new(&problem.path, problem.message)).collect();
    let fault = tool.input.fault_with(others, arguments, Stage::Arguments, &subject, "argument");
    Err((repairs, fault))
}

/// Adds to a refusal which elements of a list it is about, if the tool takes a list of paths.
fn name_elements(fault: Fault, permissions: &[Permission], arguments: &Value, caller: &Caller) -> Fault {
    if fault.code != ErrorCode::Forbidden {
        return fault;
    }
    let elements = permissions.iter().flat_map(|permission| permission.elements(arguments));
    let refused = elements.filter_map(|Element { number, path, access }| {
        let refused = caller.require(&access).err()?;
        Some(json!({"entry": number, "path": path, "code": refused.code, "message": refused.message}))
    });
    let refused: Vec<Value> = refused.collect();
    // The one that the message is about; a deny rule comes before missing scopes.
    let is_named =
        |one: &&Value| one["message"].as_str().is_some_and(|message| fault.message.starts_with(message));
    let Some(first) = refused.iter().find(is_named).or(refused.first()) else { return fault };
    let more = if refused.len() == 1 { String::new() } else { format!(" and {} more", refused.len() - 1) };
    let message = format!("{} (entry {}{more})", fault.message, first["entry"]);
    let mut details = fault.details.clone().unwrap_or_else(|| json!({}));
    details["errors"] = json!(refused);
    fault.with_message(message).details(details)
}

/// The deadline of a call, for all that it waits for and does.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    begun: Instant,
    timeout: Duration,
}

impl Deadline {
    /// The deadline of a call that begins now. A timeout of zero is no deadline.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self { begun: Instant::now(), timeout }
    }

    /// Resolves when the time is over, with the fault that says so.
    async fn missed(self) -> Fault {
        if self.timeout.is_zero() {
            return std::future::pending().await;
        }
        tokio::time::sleep_until(self.begun + self.timeout).await;
        let millis = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        Fault::new(ErrorCode::ToolTimeout, format!("the call ran for more than {millis} ms"))
            .timeout_ms(millis)
            .hint("ask for less, or raise the tool's timeout in the configuration")
    }
}

/// Runs work until it ends by itself, its call is cancelled, or its time is over. Also returns whether it ended by itself.
pub(crate) async fn until_ended<T>(
    work: impl Future<Output = Result<T, Fault>>,
    cancel: &Cancel,
    deadline: Deadline,
) -> (bool, Result<T, Fault>) {
    let mut work = pin!(work);
    let mut deadline = pin!(deadline.missed().fuse());
    loop {
        tokio::select! {
            biased;
            () = cancel.token().cancelled() => return (false, Err(cancel.cancelled_fault())),
            result = &mut work => return (true, result),
            // What cannot be undone any more is reported, however late.
            fault = &mut deadline => if cancel.expire() { return (false, Err(fault)) },
        }
    }
}

pub(crate) fn panicked() -> Fault {
    Fault::internal("the tool failed unexpectedly; the server's error output has the trace")
}
