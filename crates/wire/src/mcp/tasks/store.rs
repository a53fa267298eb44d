//! The tasks of a server: who may ask for each, how far it is, and what came of it.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use pintle_contract::{ErrorCode, Fault, Stage};
use pintle_engine::Engine;
use pintle_tool::{Cancel, CancelReason};
use rmcp::{
    ErrorData,
    model::{CallToolResult, InputRequests, InputResponses, MetaObject, TaskStatus},
};
use serde_json::value::RawValue;
use tokio::{sync::Notify, time::Instant};

use crate::mcp::clients::ResultForm;

/// How long a task is kept from its creation on.
pub(crate) const LONGEST_LIFE: Duration = Duration::from_secs(60 * 60);
/// How many tasks a caller may have.
const MOST_PER_CALLER: usize = 64;
/// How many bytes of results are kept in all.
const MOST_BYTES: usize = 64 << 20;
/// How many requests of a caller may wait for results at the same time.
pub(crate) const MOST_WAITING: usize = 64;

/// The tasks of all callers of a server.
pub struct TaskStore {
    engine: Arc<Engine>,
    most_bytes: usize,
    state: Mutex<TaskTable>,
    changed: Notify,
}

#[derive(Default)]
struct TaskTable {
    last_number: u64,
    /// Callers that have closed their pipe: they can ask for no task any more.
    left: HashSet<Arc<str>>,
    /// The server is stopping: nobody can.
    is_stopping: bool,
    tasks: HashMap<Arc<str>, StoredTask>,
}

struct StoredTask {
    /// Rises with every task, so that they can be listed in order.
    number: u64,
    /// Rises with every task that ends, so that the one that ended first is known.
    ended_number: u64,
    /// How many requests wait for its result.
    waiting: usize,
    caller: Arc<str>,
    cancel: Arc<Cancel>,
    created: Instant,
    life: Duration,
    /// Whether its work has not ended, also if it was cancelled.
    is_running: bool,
    is_cancelled: bool,
    snapshot: TaskSnapshot,
    answers: InputResponses,
}

/// A task as it is at one moment.
#[derive(Clone)]
pub(crate) struct TaskSnapshot {
    pub(crate) id: Arc<str>,
    pub(crate) status: TaskStatus,
    pub(crate) message: Option<String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) life: Duration,
    /// What the client is asked.
    pub(crate) questions: InputRequests,
    /// How the work ended, once it has.
    pub(crate) end: Option<Arc<TaskEnd>>,
}

/// How the work of a task ended.
pub(crate) enum TaskEnd {
    /// With a result, and what is said about it.
    Result(TaskResult, Option<MetaObject>),
    /// With an error of the protocol.
    Error(ErrorData),
}

/// The result of a task.
pub(crate) enum TaskResult {
    /// A tool's JSON as the engine has serialized it, and how it is sent.
    Tool(Arc<RawValue>, ResultForm),
    /// Any other.
    Sdk(Box<CallToolResult>),
}

impl TaskEnd {
    /// How many bytes its JSON has, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Result(TaskResult::Tool(json, _), _) => json.get().len(),
            Self::Result(TaskResult::Sdk(result), _) => {
                let texts = result.content.iter().filter_map(|block| block.as_text());
                texts.map(|text| text.text.len()).sum()
            }
            Self::Error(error) => error.message.len(),
        }
    }
}

impl StoredTask {
    fn is_expired(&self) -> bool {
        self.created.elapsed() >= self.life
    }

    fn bytes(&self) -> usize {
        self.snapshot.end.as_ref().map_or(0, |end| end.bytes())
    }

    fn settle_status(&mut self, now: String) {
        self.snapshot.updated_at = now;
        self.snapshot.status = match &self.snapshot.end {
            _ if self.is_cancelled => TaskStatus::Cancelled,
            Some(end) if matches!(**end, TaskEnd::Error(_)) => TaskStatus::Failed,
            Some(_) => TaskStatus::Completed,
            None if self.snapshot.questions.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        };
    }
}

impl TaskStore {
    pub(crate) fn new(engine: Arc<Engine>) -> Arc<Self> {
        Self::with_budget(engine, MOST_BYTES)
    }

    fn with_budget(engine: Arc<Engine>, most_bytes: usize) -> Arc<Self> {
        Arc::new(Self { engine, most_bytes, state: Mutex::default(), changed: Notify::new() })
    }

    /// Makes a call a task that did not ask for it. `None` if it has to stay a call: its caller has too many tasks that
    /// run, or could not ask for the result any more.
    pub(crate) fn promote(&self, caller: &str, cancel: Arc<Cancel>) -> Option<TaskSnapshot> {
        let state = self.lock_and_purge();
        if state.is_stopping || state.left.contains(caller) {
            return None;
        }
        drop(state);
        let task = self.create(caller, cancel, LONGEST_LIFE)?;
        self.evict_excess(caller);
        Some(task)
    }

    /// A caller can ask for no task any more.
    pub(crate) fn leave(&self, caller: &str) {
        self.lock_and_purge().left.insert(caller.into());
    }

    /// No caller can ask for a task any more: the server is stopping.
    pub(crate) fn stop(&self) {
        self.lock_and_purge().is_stopping = true;
    }

    /// Makes a task for a caller. `None` if it has too many, and all of them run. The one to be evicted for it stays
    /// until [`TaskStore::evict_excess`]: the call of the new one may still be refused.
    pub(crate) fn create(&self, caller: &str, cancel: Arc<Cancel>, life: Duration) -> Option<TaskSnapshot> {
        let mut state = self.lock_and_purge();
        if state.count_of(caller) >= MOST_PER_CALLER {
            state.first_ended(|task| *task.caller == *caller)?;
        }
        state.last_number += 1;
        let now = self.engine.clock().now();
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let snapshot = TaskSnapshot {
            id: Arc::clone(&id),
            status: TaskStatus::Working,
            message: None,
            created_at: now.clone(),
            updated_at: now,
            life,
            questions: InputRequests::new(),
            end: None,
        };
        let task = StoredTask {
            number: state.last_number,
            ended_number: 0,
            waiting: 0,
            caller: caller.into(),
            cancel,
            created: Instant::now(),
            life,
            is_running: true,
            is_cancelled: false,
            snapshot: snapshot.clone(),
            answers: InputResponses::new(),
        };
        state.tasks.insert(id, task);
        Some(snapshot)
    }

    /// Evicts the tasks of a caller that ended first, if it has too many.
    pub(crate) fn evict_excess(&self, caller: &str) {
        let mut state = self.lock_and_purge();
        while state.count_of(caller) > MOST_PER_CALLER
            && let Some(first) = state.first_ended(|task| *task.caller == *caller)
        {
            state.tasks.remove(&first);
        }
    }

    /// Does the work of a task, whoever leaves. A task that outlives its time is cancelled.
    pub(crate) fn run(
        self: &Arc<Self>,
        task: &TaskSnapshot,
        cancel: Arc<Cancel>,
        work: impl Future<Output = TaskEnd> + Send + 'static,
    ) {
        let (store, id) = (Arc::clone(self), Arc::clone(&task.id));
        let expires = Instant::now() + task.life;
        tokio::spawn(async move {
            let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
            let end = tokio::select! {
                end = &mut work => end,
                () = tokio::time::sleep_until(expires) => {
                    cancel.cancel(CancelReason::Silent);
                    work.await
                }
            };
            let panicked =
                |_| TaskEnd::Error(ErrorData::internal_error("the task failed unexpectedly", None));
            store.finish(&id, end.unwrap_or_else(panicked));
            // What has expired is dropped also if nobody asks for tasks any more.
            tokio::time::sleep_until(expires).await;
            drop(store.lock_and_purge());
        });
    }

    /// Notes how the work of a task has ended.
    pub(crate) fn finish(&self, id: &str, end: TaskEnd) -> Option<TaskSnapshot> {
        let now = self.engine.clock().now();
        let mut state = self.lock_and_purge();
        state.last_number += 1;
        let number = state.last_number;
        let snapshot = state.tasks.get_mut(id).map(|task| {
            task.is_running = false;
            task.ended_number = number;
            task.is_cancelled |= task.cancel.reason().is_some();
            task.snapshot.questions.clear();
            task.snapshot.end = Some(Arc::new(end));
            task.settle_status(now);
            task.snapshot.clone()
        });
        let mut kept: usize = state.tasks.values().map(StoredTask::bytes).sum();
        while kept > self.most_bytes
            && let Some(first) = state.first_ended(|task| task.bytes() > 0)
            && let Some(evicted) = state.tasks.remove(&first)
        {
            kept -= evicted.bytes();
        }
        drop(state);
        self.changed.notify_waiters();
        snapshot
    }

    /// Forgets a task whose call was refused before it began.
    pub(crate) fn discard(&self, id: &str) {
        self.lock_and_purge().tasks.remove(id);
        self.changed.notify_waiters();
    }

    /// Notes how far a task is.
    pub(crate) fn report(&self, id: &str, message: &str) {
        let now = self.engine.clock().now();
        if let Some(task) = self.lock_and_purge().tasks.get_mut(id)
            && task.snapshot.end.is_none()
        {
            task.snapshot.message = Some(message.to_owned());
            task.snapshot.updated_at = now;
        }
    }

    /// A caller's task.
    pub(crate) fn get(&self, caller: &str, id: &str) -> Result<TaskSnapshot, Fault> {
        self.with(caller, id, |task| task.snapshot.clone())
    }

    /// All tasks of a caller, from the oldest on.
    pub(crate) fn list(&self, caller: &str) -> Vec<TaskSnapshot> {
        let state = self.lock_and_purge();
        let mut tasks: Vec<_> =
            state.tasks.values().filter(|task| *task.caller == *caller && !task.is_expired()).collect();
        tasks.sort_by_key(|task| task.number);
        tasks.into_iter().map(|task| task.snapshot.clone()).collect()
    }

    /// Cancels a task as its call would be cancelled. Returns it, and whether it was cancelled just now: not if it has
    /// ended, or can no longer be kept from that.
    pub(crate) fn cancel(&self, caller: &str, id: &str) -> Result<(TaskSnapshot, bool), Fault> {
        let now = self.engine.clock().now();
        let cancelled = self.with(caller, id, |task| {
            let is_new = task.is_running && task.cancel.cancel(CancelReason::Asked);
            if is_new {
                task.is_cancelled = true;
                task.snapshot.questions.clear();
                task.settle_status(now);
            }
            (task.snapshot.clone(), is_new)
        });
        self.changed.notify_waiters();
        cancelled
    }

    /// Takes a client's answers. Those to questions that are not asked are passed over.
    pub(crate) fn update(&self, caller: &str, id: &str, answers: InputResponses) -> Result<(), Fault> {
        let now = self.engine.clock().now();
        let updated = self.with(caller, id, |task| {
            for (key, answer) in answers {
                if task.snapshot.questions.remove(&key).is_some() {
                    task.answers.insert(key, answer);
                }
            }
            task.settle_status(now);
        });
        self.changed.notify_waiters();
        updated
    }

    /// A caller's task once its work has ended.
    pub(crate) async fn ended(&self, caller: &str, id: &str) -> Result<TaskSnapshot, Fault> {
        let _waiting = self.begin_waiting(caller, id)?;
        self.until(|| match self.get(caller, id) {
            Ok(task) if task.end.is_none() => None,
            found => Some(found),
        })
        .await
    }

    /// Counts a request that waits for a result. They occupy no slot, so there is a limit of their own.
    fn begin_waiting<'a>(&'a self, caller: &str, id: &'a str) -> Result<WaitingRequest<'a>, Fault> {
        let waiting = {
            let state = self.lock_and_purge();
            let own = state.tasks.values().filter(|task| *task.caller == *caller);
            own.map(|task| task.waiting).sum::<usize>()
        };
        if waiting >= MOST_WAITING {
            let fault = Fault::new(
                ErrorCode::QueueOverloaded,
                format!("{waiting} requests of this caller wait for results; no more can wait"),
            );
            return Err(fault.at(Stage::Admission).hint("ask with tasks/get, which does not wait"));
        }
        self.with(caller, id, |task| task.waiting += 1)?;
        Ok(WaitingRequest { store: self, id })
    }

    /// Cancels every task that runs.
    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        self.cancel_those(reason, |_| true);
    }

    /// Cancels every task of a caller that runs.
    pub(crate) fn cancel_all_of(&self, caller: &str, reason: CancelReason) {
        self.cancel_those(reason, |task| *task.caller == *caller);
    }

    fn cancel_those(&self, reason: CancelReason, are_meant: impl Fn(&StoredTask) -> bool) {
        for task in self.lock_and_purge().tasks.values().filter(|task| task.is_running && are_meant(task)) {
            task.cancel.cancel(reason);
        }
    }

    /// Resolves when no task runs.
    pub(crate) async fn all_ended(&self) {
        self.none_runs(|_| true).await;
    }

    /// Resolves when no task of a caller runs.
    pub(crate) async fn all_ended_of(&self, caller: &str) {
        self.none_runs(|task| *task.caller == *caller).await;
    }

    async fn none_runs(&self, is_meant: impl Fn(&StoredTask) -> bool) {
        self.until(|| {
            let state = self.lock_and_purge();
            let runs = state.tasks.values().any(|task| task.is_running && is_meant(task));
            (!runs).then_some(())
        })
        .await;
    }

    /// Checks after every change until `check` returns something.
    async fn until<T>(&self, check: impl Fn() -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(seen) = check() {
                return seen;
            }
            changed.await;
        }
    }

    /// Acts on a caller's task. Another caller's is as unknown as one that never was.
    fn with<T>(&self, caller: &str, id: &str, act: impl FnOnce(&mut StoredTask) -> T) -> Result<T, Fault> {
        let mut state = self.lock_and_purge();
        let task = state.tasks.get_mut(id).filter(|task| *task.caller == *caller && !task.is_expired());
        task.map(act).ok_or_else(unknown)
    }

    /// The tasks, without those that have expired.
    fn lock_and_purge(&self) -> MutexGuard<'_, TaskTable> {
        let mut state = self.state.lock();
        state.tasks.retain(|_, task| task.is_running || !task.is_expired());
        state
    }
}

impl TaskTable {
    fn count_of(&self, caller: &str) -> usize {
        self.tasks.values().filter(|task| *task.caller == *caller).count()
    }

    /// The task that ended first. What has just ended is the last to be evicted: somebody may be waiting for it.
    fn first_ended(&self, is_meant: impl Fn(&StoredTask) -> bool) -> Option<Arc<str>> {
        let ended = self.tasks.iter().filter(|(_, task)| !task.is_running && is_meant(task));
        ended.min_by_key(|(_, task)| task.ended_number).map(|(id, _)| Arc::clone(id))
    }
}

/// A request that waits for the result of a task, until this is dropped.
struct WaitingRequest<'a> {
    store: &'a TaskStore,
    id: &'a str,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.store.lock_and_purge().tasks.get_mut(self.id) {
            task.waiting -= 1;
        }
    }
}

/// The fault of an id that no task of the caller has.
fn unknown() -> Fault {
    Fault::invalid(Stage::Arguments, "`taskId` names no task of this caller; it may have expired")
        .hint("call the tool again")
}

/// How the work of a task asks the client for something.
pub struct TaskInput {
    store: Arc<TaskStore>,
    id: Arc<str>,
}

impl TaskInput {
    pub(crate) fn new(store: Arc<TaskStore>, id: Arc<str>) -> Self {
        Self { store, id }
    }

    /// Asks these questions, and waits until all of them are answered.
    pub async fn ask(&self, questions: InputRequests) -> InputResponses {
        let now = self.store.engine.clock().now();
        if let Some(task) = self.store.lock_and_purge().tasks.get_mut(&self.id) {
            task.snapshot.questions = questions;
            task.settle_status(now);
        }
        self.store.changed.notify_waiters();
        let answers = || {
            let mut state = self.store.lock_and_purge();
            let task = state.tasks.get_mut(&self.id)?;
            let is_answered = task.snapshot.questions.is_empty() && !task.is_cancelled;
            is_answered.then(|| std::mem::take(&mut task.answers))
        };
        self.store.until(answers).await
    }
}

#[cfg(test)]
mod tests {
    use pintle_engine::{CallLog, Options};
    use rmcp::model::ContentBlock;

    use super::*;

    const CALLER: &str = "someone";

    fn store(most_bytes: usize) -> Arc<TaskStore> {
        let engine =
            Engine::new(Vec::new(), Vec::new(), Options::default(), CallLog::off()).expect("an engine");
        TaskStore::with_budget(Arc::new(engine), most_bytes)
    }

    fn created(store: &TaskStore) -> Option<Arc<str>> {
        let task = store.create(CALLER, Arc::default(), LONGEST_LIFE)?;
        store.evict_excess(CALLER);
        Some(task.id)
    }

    fn finish(store: &TaskStore, id: &str, bytes: usize) {
        let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(bytes))]);
        store.finish(id, TaskEnd::Result(TaskResult::Sdk(Box::new(result)), None));
    }

    #[test]
    fn another_caller_s_task_is_answered_like_an_unknown_one() {
        let store = store(MOST_BYTES);
        let id = created(&store).expect("a task");
        let unknown = store.get(CALLER, "unknown").map(|_| ()).expect_err("unknown");
        assert_eq!(unknown.json_rpc_code(), -32602);
        let refusals = [
            store.get("stranger", &id).map(|_| ()),
            store.cancel("stranger", &id).map(|_| ()),
            store.update("stranger", &id, InputResponses::new()),
        ];
        for refusal in refusals {
            let fault = refusal.expect_err("unknown");
            assert_eq!(serde_json::json!(fault), serde_json::json!(unknown));
        }
        assert!(store.list("stranger").is_empty());
        assert_eq!(store.get(CALLER, &id).expect("known").status, TaskStatus::Working);
    }

    #[test]
    fn the_task_that_ended_first_makes_way_and_none_is_made_while_all_run() {
        let store = store(MOST_BYTES);
        let ids: Vec<_> = (0..MOST_PER_CALLER).map(|_| created(&store).expect("a task")).collect();
        assert!(created(&store).is_none());
        assert!(store.create("stranger", Arc::default(), LONGEST_LIFE).is_some());
        for number in [7, 3] {
            finish(&store, &ids[number], 1);
        }
        let asked = store.create(CALLER, Arc::default(), LONGEST_LIFE).expect("a task");
        store.discard(&asked.id);
        assert!(store.get(CALLER, &ids[7]).is_ok(), "a call that was refused evicts nothing");
        assert!(created(&store).is_some());
        assert!(store.get(CALLER, &ids[7]).is_err());
        assert!(store.get(CALLER, &ids[3]).is_ok());
    }

    #[test]
    fn nothing_is_promoted_for_a_caller_that_has_left_or_while_the_server_stops() {
        let store = store(MOST_BYTES);
        assert!(store.promote(CALLER, Arc::default()).is_some());
        store.leave(CALLER);
        assert!(store.promote(CALLER, Arc::default()).is_none());
        assert!(store.promote("stranger", Arc::default()).is_some());
        store.stop();
        assert!(store.promote("stranger", Arc::default()).is_none());
    }

    #[tokio::test]
    async fn only_so_many_requests_wait_for_results() {
        let store = store(MOST_BYTES);
        let id = created(&store).expect("a task");
        let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| Box::pin(store.ended(CALLER, &id))).collect();
        assert!(waiting.iter_mut().all(|request| request.now_or_never().is_none()));
        let refused = store.ended(CALLER, &id).await.err().expect("refused");
        assert_eq!(refused.code, ErrorCode::QueueOverloaded);
        drop(waiting);
        assert!(store.ended(CALLER, &id).now_or_never().is_none());
    }

    #[test]
    fn the_result_that_has_just_come_is_the_last_to_go() {
        let store = store(100);
        let ids: Vec<_> = (0..3).map(|_| created(&store).expect("a task")).collect();
        for number in [1, 2, 0] {
            finish(&store, &ids[number], 40);
        }
        let known: Vec<_> = ids.iter().map(|id| store.get(CALLER, id).is_ok()).collect();
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn the_oldest_results_go_when_all_of_them_take_too_much_memory() {
        let store = store(100);
        let ids: Vec<_> = (0..4).map(|_| created(&store).expect("a task")).collect();
        for id in &ids[..3] {
            finish(&store, id, 40);
        }
        let known: Vec<_> = ids.iter().map(|id| store.get(CALLER, id).is_ok()).collect();
        assert_eq!(known, [false, true, true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_kept_for_its_time_and_no_longer() {
        let store = store(MOST_BYTES);
        let id = created(&store).expect("a task");
        finish(&store, &id, 1);
        tokio::time::advance(LONGEST_LIFE - Duration::from_millis(1)).await;
        assert!(store.get(CALLER, &id).is_ok());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(store.get(CALLER, &id).is_err());
        assert!(store.lock_and_purge().tasks.is_empty());
    }

    #[tokio::test]
    async fn questions_are_asked_until_each_is_answered() {
        let store = store(MOST_BYTES);
        let id = created(&store).expect("a task");
        let question = || rmcp::model::InputRequest::ListRoots(Default::default());
        let questions = InputRequests::from([("a".to_owned(), question()), ("b".to_owned(), question())]);
        let input = TaskInput::new(Arc::clone(&store), Arc::clone(&id));
        let asking = tokio::spawn(async move { input.ask(questions).await });
        store
            .until(|| (store.get(CALLER, &id).ok()?.status == TaskStatus::InputRequired).then_some(()))
            .await;
        let answer = |key: &str| InputResponses::from([(key.to_owned(), serde_json::json!({}))]);
        store.update(CALLER, &id, answer("a")).expect("known");
        let task = store.get(CALLER, &id).expect("known");
        assert_eq!(task.status, TaskStatus::InputRequired);
        assert_eq!(task.questions.keys().collect::<Vec<_>>(), ["b"]);
        store.update(CALLER, &id, answer("b")).expect("known");
        assert_eq!(store.get(CALLER, &id).expect("known").status, TaskStatus::Working);
        assert_eq!(asking.await.expect("answered").len(), 2);
    }
}
