//! A step budget for JSON Schema validation, with cancellation. The cost of a validation is schema times asset:
//! nested `anyOf` and `oneOf` can multiply it at every level, and the validator has neither a limit nor a way to
//! cancel it. So every access to a value costs one step (see `counted_json`), and when the budget is used up, or the
//! caller has gone, the validation is ended by unwinding the stack.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// How many steps pass between two checks for cancellation.
const STEPS_BETWEEN_CHECKS: u32 = 1 << 12;
/// About how much memory one error takes besides its instance path, its schema path included.
const ERROR_BYTES: usize = 1 << 10;
/// How many copies of its instance path an error makes until it is reported.
const PATH_COPIES: usize = 4;

/// How much work and memory one validation may use.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// How many times values may be accessed.
    pub(crate) steps: u64,
    /// About how many bytes its errors may take.
    pub(crate) error_bytes: usize,
}

impl Limits {
    /// No limit, for a yes-or-no verdict: it collects no errors, and it is cancelled when its call ends.
    pub(crate) const NONE: Self = Self { steps: u64::MAX, error_bytes: usize::MAX };
    /// For listing errors, whose number nested choices multiply at every level.
    pub(crate) const LISTING: Self = Self { steps: 50_000_000, error_bytes: 32 << 20 };
}

/// The validation ended before it had a verdict: its budget was used up, or its call was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// What is left of one validation's budget.
pub(crate) struct StepBudget<'s> {
    stop: &'s dyn Fn() -> bool,
    until_check: Cell<u32>,
    steps_left: Cell<u64>,
    error_bytes_left: Cell<usize>,
}

/// Runs a validation with a budget. `stop` is the cancellation check: it is called every few thousand steps.
pub(crate) fn within_budget<T>(
    limits: Limits,
    stop: &dyn Fn() -> bool,
    validation: impl FnOnce(&StepBudget<'_>) -> T,
) -> Result<T, Interrupted> {
    let budget = StepBudget {
        stop,
        until_check: Cell::new(0),
        steps_left: Cell::new(limits.steps),
        error_bytes_left: Cell::new(limits.error_bytes),
    };
    // Unwind safe: a validation changes nothing but its own budget, so it leaves no half-changed state behind.
    catch_unwind(AssertUnwindSafe(|| validation(&budget))).map_err(|panic| {
        match panic.downcast::<Interrupted>() {
            Ok(interrupted) => *interrupted,
            Err(panic) => resume_unwind(panic),
        }
    })
}

impl StepBudget<'_> {
    /// Spends one step, for one access to a value.
    #[inline]
    pub(crate) fn step(&self) {
        match self.steps_left.get().checked_sub(1) {
            Some(left) => self.steps_left.set(left),
            None => interrupt(),
        }
        match self.until_check.get().checked_sub(1) {
            Some(left) => self.until_check.set(left),
            None => self.check_cancelled(),
        }
    }

    /// Spends the memory of one error of a value whose path has this length.
    pub(crate) fn error(&self, path_bytes: usize) {
        let bytes = PATH_COPIES * path_bytes + ERROR_BYTES;
        match self.error_bytes_left.get().checked_sub(bytes) {
            Some(left) => self.error_bytes_left.set(left),
            None => interrupt(),
        }
    }

    #[cold]
    fn check_cancelled(&self) {
        self.until_check.set(STEPS_BETWEEN_CHECKS);
        if (self.stop)() {
            interrupt();
        }
    }
}

/// Unwinds without calling the panic hook, because this is not a bug and must not be logged as one.
#[cold]
fn interrupt() -> ! {
    resume_unwind(Box::new(Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_ON: &dyn Fn() -> bool = &|| false;

    #[test]
    fn a_validation_within_its_limits_finishes() {
        let limits = Limits { steps: 3, error_bytes: ERROR_BYTES + PATH_COPIES };
        let three = within_budget(limits, GO_ON, |budget| {
            (0..3).for_each(|_| budget.step());
            budget.error(1);
            3
        });
        assert_eq!(three, Ok(3));
    }

    #[test]
    fn steps_and_errors_are_bounded() {
        let limits = Limits { steps: 3, error_bytes: ERROR_BYTES + PATH_COPIES };
        assert_eq!(
            within_budget(limits, GO_ON, |budget| (0..4).for_each(|_| budget.step())),
            Err(Interrupted)
        );
        assert_eq!(within_budget(limits, GO_ON, |budget| budget.error(2)), Err(Interrupted));
    }

    #[test]
    fn a_cancelled_validation_is_interrupted() {
        let checks = Cell::new(0);
        let stop = || {
            checks.set(checks.get() + 1);
            checks.get() == 3
        };
        let endless = within_budget(Limits::NONE, &stop, |budget| -> () {
            loop {
                budget.step();
            }
        });
        assert_eq!((endless, checks.get()), (Err(Interrupted), 3));
    }

    #[test]
    fn any_other_panic_passes_through() {
        let panic = catch_unwind(|| within_budget(Limits::NONE, GO_ON, |_| resume_unwind(Box::new(7)) as ()));
        assert_eq!(panic.expect_err("a panic").downcast_ref(), Some(&7));
    }
}
