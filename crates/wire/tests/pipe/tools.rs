//! Tools that let a test decide when a call ends.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use pintle_contract::{Annotations, Fault, Permission};
use pintle_tool::{CallContext, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

/// Returns what it is given.
pub struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// A text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Output {
    /// The text.
    text: String,
}

impl ToolOutput for Output {}

impl Tool for Echo {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "echo";
    const TITLE: &'static str = "Echo";
    const DESCRIPTION: &'static str = "Returns the text.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, _: CallContext) -> Result<Output, Fault> {
        Ok(Output { text: input.text })
    }
}

/// Runs until the test releases it.
pub struct Hold {
    events: Mutex<mpsc::Sender<HoldEvent>>,
    released: Arc<Semaphore>,
}

/// What became of a call of `hold`, with its text.
#[derive(Debug, PartialEq, Eq)]
pub enum HoldEvent {
    Started(String),
    Ended(String),
    /// The call was dropped before it was released.
    Dropped(String),
}

/// The test's side of `hold`.
pub struct Holds {
    events: mpsc::Receiver<HoldEvent>,
    released: Arc<Semaphore>,
}

impl Hold {
    pub fn new() -> (Self, Holds) {
        let (sender, events) = mpsc::channel();
        let released = Arc::new(Semaphore::new(0));
        (Self { events: Mutex::new(sender), released: Arc::clone(&released) }, Holds { events, released })
    }
}

impl Holds {
    /// Waits for the next event.
    pub fn next(&self) -> HoldEvent {
        self.events.recv_timeout(Duration::from_secs(60)).expect("an event within a minute")
    }

    /// What has happened and was not looked at.
    pub fn rest(&self) -> Vec<HoldEvent> {
        self.events.try_iter().collect()
    }

    /// Lets one call end.
    pub fn release(&self) {
        self.released.add_permits(1);
    }
}

/// Reports the end of a call, however it ends.
struct Report {
    events: mpsc::Sender<HoldEvent>,
    text: String,
    is_released: bool,
}

impl Drop for Report {
    fn drop(&mut self) {
        let text = std::mem::take(&mut self.text);
        let event = if self.is_released { HoldEvent::Ended(text) } else { HoldEvent::Dropped(text) };
        // Whoever does not look at the events any more does not need this one.
        let _ = self.events.send(event);
    }
}

impl Tool for Hold {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "hold";
    const TITLE: &'static str = "Hold";
    const DESCRIPTION: &'static str = "Runs until it is released.";
    const ANNOTATIONS: Annotations = Annotations::READ_ONLY;
    const PERMISSIONS: &'static [Permission] = &[Permission::AnyCaller];

    async fn run(&self, input: Input, _: CallContext) -> Result<Output, Fault> {
        let events = self.events.lock().clone();
        let mut report = Report { events, text: input.text.clone(), is_released: false };
        let _ = report.events.send(HoldEvent::Started(input.text.clone()));
        if let Ok(permit) = self.released.acquire().await {
            permit.forget();
        }
        report.is_released = true;
        Ok(Output { text: input.text })
    }
}
