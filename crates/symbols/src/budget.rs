//! How long parsing may take.
//!
//! A parser that recovers from errors can take a hundred times longer than the length of a text suggests, and a
//! text can be made so on purpose. Work is counted first, so that the same text has the same outcome every time; but one
//! step can take far longer than another, so there is a limit to the time as well.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How many bytes the parser gets at a time: a parser that reads over and over again has to ask for them again.
const CHUNK: usize = 4096;
/// How many bytes a character of UTF-8 can have.
const LONGEST_CHARACTER: usize = 4;
/// What the parser gets when it is to stop.
static NOTHING: [u8; CHUNK] = [b'\n'; CHUNK];
/// How many chunks may be read for each chunk of the text.
const READS_PER_CHUNK: u64 = 64;
/// For how many bytes one step, as the parser reports them, is allowed. Usual texts need one for a hundred.
const BYTES_PER_STEP: u64 = 12;
/// What a text may cost however short it is.
const ALWAYS: u64 = 1000;
/// How long a byte may take: some five times what usual texts need in the slowest languages.
const TIME_PER_BYTE: Duration = Duration::from_micros(2);
/// How long a text may take however short it is.
const ALWAYS_TIME: Duration = Duration::from_secs(1);

/// Why parsing stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nobody waits for the result any more.
    Interrupted,
    /// The budget was used up.
    Spent,
}

/// What is left for one text.
pub(crate) struct Budget<'a> {
    text: &'a [u8],
    has_ended: &'a dyn Fn() -> bool,
    reads: Cell<u64>,
    steps: Cell<u64>,
    deadline: Instant,
    stop: Cell<Option<Stop>>,
}

impl<'a> Budget<'a> {
    /// A budget in proportion to the text.
    pub(crate) fn new(text: &'a [u8], has_ended: &'a dyn Fn() -> bool) -> Self {
        let length = text.len() as u64;
        Self {
            text,
            has_ended,
            reads: Cell::new(length / CHUNK as u64 * READS_PER_CHUNK + ALWAYS),
            steps: Cell::new(length / BYTES_PER_STEP + ALWAYS),
            deadline: Instant::now()
                + ALWAYS_TIME
                + TIME_PER_BYTE.saturating_mul(u32::try_from(length).unwrap_or(u32::MAX)),
            stop: Cell::new(None),
        }
    }

    /// The text from `offset` on, as much as the parser gets at once. Once it is to stop, what it gets means nothing:
    /// but it gets something up to the end of the text, because it takes an end before that for granted not to be.
    pub(crate) fn read(&self, offset: usize) -> &'a [u8] {
        self.spend(&self.reads);
        let rest = self.text.get(offset..).unwrap_or_default();
        if self.stop.get().is_some() {
            return &NOTHING[..rest.len().min(CHUNK)];
        }
        // Chunks end at fixed offsets, so that going back a little does not move all that follow. A character that
        // crosses such an offset is asked for again, and has to be whole then.
        let length = CHUNK - offset % CHUNK;
        let length = if length < LONGEST_CHARACTER { length + CHUNK } else { length };
        &rest[..rest.len().min(length)]
    }

    /// Notes that the parser has done some steps, and says whether it may go on.
    pub(crate) fn step(&self) -> bool {
        self.spend(&self.steps);
        self.stop.get().is_none()
    }

    /// Why it stopped, if it did.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop.get()
    }

    fn spend(&self, purse: &Cell<u64>) {
        if self.stop.get().is_some() {
            return;
        }
        match purse.get().checked_sub(1) {
            Some(left) if Instant::now() < self.deadline => purse.set(left),
            _ => self.stop.set(Some(Stop::Spent)),
        }
        // Each of the two happens often enough to notice soon, and seldom enough that asking costs nothing.
        if (self.has_ended)() {
            self.stop.set(Some(Stop::Interrupted));
        }
    }
}
