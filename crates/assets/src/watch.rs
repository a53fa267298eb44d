//! What keeps a validation from running away. Its cost depends on schema times asset: a choice within a
//! choice may multiply at every level, and the validator itself can be neither stopped nor bounded. So
//! every look at a value is counted, and when there were too many, or nobody waits for the verdict any
//! more, the validation is left by unwinding.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// Steps between two questions whether to go on.
const STEPS_BETWEEN_QUESTIONS: u32 = 1 << 12;
/// What an error takes besides its path, with the way to it through the schema.
const ERROR_BYTES: usize = 1 << 10;
/// How often the path of an error is copied on its way out.
const PATH_COPIES: usize = 4;

/// What a validation may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// How many looks at values.
    pub(crate) steps: u64,
    /// About how much memory, for errors.
    pub(crate) error_bytes: usize,
}

impl Limits {
    /// For a verdict alone, which takes no memory and never multiplies: it is stopped when its call ends.
    pub(crate) const NONE: Self = Self { steps: u64::MAX, error_bytes: usize::MAX };
    /// For listing errors, of which a nested choice has a multiple at every level.
    pub(crate) const LISTING: Self = Self { steps: 50_000_000, error_bytes: 32 << 20 };
}

/// A validation was left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// Counts what one validation takes.
pub(crate) struct Watch<'s> {
    stop: &'s dyn Fn() -> bool,
    until_question: Cell<u32>,
    steps_left: Cell<u64>,
    error_bytes_left: Cell<usize>,
}

/// Runs a validation under a watch; `stop` is asked now and then whether to leave it.
pub(crate) fn watched<T>(
    limits: Limits,
    stop: &dyn Fn() -> bool,
    validation: impl FnOnce(&Watch<'_>) -> T,
) -> Result<T, Interrupted> {
    let watch = Watch {
        stop,
        until_question: Cell::new(0),
        steps_left: Cell::new(limits.steps),
        error_bytes_left: Cell::new(limits.error_bytes),
    };
    // A validation changes nothing but the counts of its watch, so none of it can be seen half done.
    catch_unwind(AssertUnwindSafe(|| validation(&watch))).map_err(|panic| {
        match panic.downcast::<Interrupted>() {
            Ok(interrupted) => *interrupted,
            Err(panic) => resume_unwind(panic),
        }
    })
}

impl Watch<'_> {
    /// Counts one look at a value.
    #[inline]
    pub(crate) fn step(&self) {
        match self.steps_left.get().checked_sub(1) {
            Some(left) => self.steps_left.set(left),
            None => interrupt(),
        }
        match self.until_question.get().checked_sub(1) {
            Some(left) => self.until_question.set(left),
            None => self.question(),
        }
    }

    /// Counts one error of a value whose path has this length.
    pub(crate) fn error(&self, path_bytes: usize) {
        let bytes = PATH_COPIES * path_bytes + ERROR_BYTES;
        match self.error_bytes_left.get().checked_sub(bytes) {
            Some(left) => self.error_bytes_left.set(left),
            None => interrupt(),
        }
    }

    #[cold]
    fn question(&self) {
        self.until_question.set(STEPS_BETWEEN_QUESTIONS);
        if (self.stop)() {
            interrupt();
        }
    }
}

/// Unwinds without the panic hook: nothing is wrong.
#[cold]
fn interrupt() -> ! {
    resume_unwind(Box::new(Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_ON: &dyn Fn() -> bool = &|| false;

    #[test]
    fn a_validation_within_its_limits_comes_to_its_end() {
        let limits = Limits { steps: 3, error_bytes: ERROR_BYTES + PATH_COPIES };
        let three = watched(limits, GO_ON, |watch| {
            (0..3).for_each(|_| watch.step());
            watch.error(1);
            3
        });
        assert_eq!(three, Ok(3));
    }

    #[test]
    fn steps_and_errors_are_bounded() {
        let limits = Limits { steps: 3, error_bytes: ERROR_BYTES + PATH_COPIES };
        assert_eq!(watched(limits, GO_ON, |watch| (0..4).for_each(|_| watch.step())), Err(Interrupted));
        assert_eq!(watched(limits, GO_ON, |watch| watch.error(2)), Err(Interrupted));
    }

    #[test]
    fn a_validation_that_nobody_waits_for_is_left() {
        let questions = Cell::new(0);
        let stop = || {
            questions.set(questions.get() + 1);
            questions.get() == 3
        };
        let endless = watched(Limits::NONE, &stop, |watch| -> () {
            loop {
                watch.step();
            }
        });
        assert_eq!((endless, questions.get()), (Err(Interrupted), 3));
    }

    #[test]
    fn any_other_panic_passes_through() {
        let panic = catch_unwind(|| watched(Limits::NONE, GO_ON, |_| resume_unwind(Box::new(7)) as ()));
        assert_eq!(panic.expect_err("a panic").downcast_ref(), Some(&7));
    }
}
