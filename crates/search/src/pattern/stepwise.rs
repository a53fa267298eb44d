//! Interruptible matching within one very long line.
//!
//! An expression such as `a[^z]{900}b` takes seconds for each MiB, and ripgrep's matcher cannot be interrupted: a
//! call that was cancelled would go on for minutes. Here the lazy DFA is stepped byte by byte, with checks for
//! cancellation in between. It finds the same first match, without the optimizations that make the matcher fast on
//! most texts.

use regex_automata::{
    Anchored, Input,
    hybrid::{
        LazyStateID,
        dfa::{self, Cache, DFA},
        regex::Regex,
    },
    nfa::thompson,
    util::syntax,
};

/// An expression that is matched byte by byte.
pub(super) struct Stepwise(Regex);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StepwiseError {
    /// The call was cancelled.
    Cancelled,
    /// The DFA cannot decide: it does not support Unicode word boundaries next to non-ASCII letters.
    Unsupported,
}

/// How many bytes are matched between two checks for cancellation.
const STEP: usize = 1 << 14;

impl Stepwise {
    /// Returns `None` if the expression has no DFA.
    pub(super) fn new(
        expression: &str,
        is_insensitive: bool,
        size_limit: usize,
        memory: usize,
    ) -> Option<Self> {
        let syntax = syntax::Config::new().utf8(false).multi_line(true).case_insensitive(is_insensitive);
        let automaton = dfa::Config::new()
            .unicode_word_boundary(true)
            .cache_capacity(memory)
            .skip_cache_capacity_check(true);
        Regex::builder()
            .syntax(syntax)
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(size_limit)))
            .dfa(automaton)
            .build(expression)
            .ok()
            .map(Self)
    }

    /// The offset of the first match in a line, if there is one.
    pub(super) fn find(
        &self,
        line: &[u8],
        has_ended: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, StepwiseError> {
        let Some(end) = self.end(line, has_ended)? else { return Ok(None) };
        self.start(line, end, has_ended).map(Some)
    }

    /// The end of the first match.
    fn end(&self, line: &[u8], has_ended: &dyn Fn() -> bool) -> Result<Option<usize>, StepwiseError> {
        let automaton = self.0.forward();
        let mut cache = automaton.create_cache();
        let start = automaton.start_state_forward(&mut cache, &Input::new(line));
        let mut run =
            Attempt { automaton, state: start.map_err(|_| StepwiseError::Unsupported)?, cache: &mut cache };
        let mut end = None;
        for (offset, byte) in line.iter().enumerate() {
            if offset % STEP == 0 && has_ended() {
                return Err(StepwiseError::Cancelled);
            }
            match run.step(*byte)? {
                Step::On => {}
                // The DFA reports a match one byte late.
                Step::Match => end = Some(offset),
                Step::Dead => return Ok(end),
            }
        }
        Ok(if run.finish()? { Some(line.len()) } else { end })
    }

    /// The start of the match that ends at `end`, found by the reverse DFA.
    fn start(&self, line: &[u8], end: usize, has_ended: &dyn Fn() -> bool) -> Result<usize, StepwiseError> {
        let automaton = self.0.reverse();
        let mut cache = automaton.create_cache();
        let input = Input::new(line).range(..end).anchored(Anchored::Yes);
        let state = automaton.start_state_reverse(&mut cache, &input);
        let mut run =
            Attempt { automaton, state: state.map_err(|_| StepwiseError::Unsupported)?, cache: &mut cache };
        let mut start = None;
        for (offset, byte) in line[..end].iter().enumerate().rev() {
            if offset % STEP == 0 && has_ended() {
                return Err(StepwiseError::Cancelled);
            }
            match run.step(*byte)? {
                Step::On => {}
                Step::Match => start = Some(offset + 1),
                Step::Dead => return start.ok_or(StepwiseError::Unsupported),
            }
        }
        if run.finish()? { Ok(0) } else { start.ok_or(StepwiseError::Unsupported) }
    }
}

/// A DFA in a state.
struct Attempt<'a> {
    automaton: &'a DFA,
    cache: &'a mut Cache,
    state: LazyStateID,
}

enum Step {
    On,
    Match,
    Dead,
}

impl Attempt<'_> {
    fn step(&mut self, byte: u8) -> Result<Step, StepwiseError> {
        let state = self.automaton.next_state(self.cache, self.state, byte);
        self.state = state.map_err(|_| StepwiseError::Unsupported)?;
        if !self.state.is_tagged() {
            return Ok(Step::On);
        }
        if self.state.is_quit() {
            return Err(StepwiseError::Unsupported);
        }
        Ok(match (self.state.is_match(), self.state.is_dead()) {
            (true, _) => Step::Match,
            (_, true) => Step::Dead,
            _ => Step::On,
        })
    }

    /// Whether the text ends with a match.
    fn finish(&mut self) -> Result<bool, StepwiseError> {
        let state = self.automaton.next_eoi_state(self.cache, self.state);
        let state = state.map_err(|_| StepwiseError::Unsupported)?;
        if state.is_quit() { Err(StepwiseError::Unsupported) } else { Ok(state.is_match()) }
    }
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::{Case, Meaning, Pattern, Syntax};

    fn stepwise(expression: &str, is_insensitive: bool) -> Option<Stepwise> {
        Stepwise::new(expression, is_insensitive, 1 << 20, 1 << 16)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, max_global_rejects: 100_000, ..ProptestConfig::default() })]
        #[test]
        fn the_first_match_is_the_matchers(
            expression in "(\\^|\\\\b)?(([abK]|ab|k|[a-c]|é|s|\\.){1,3}([+*?]|\\{2,3\\}|\\*\\?)?|\\(?(abc|a|bc)\\)?|\\((a|bcd)\\|(b|[kx]y)\\)){1,4}(\\$|\\\\b|\\\\B)?",
            line in "[abckKsxyé \u{212a}\u{17f}]{0,40}",
            is_insensitive in any::<bool>(),
            is_word in any::<bool>(),
        ) {
            let case = if is_insensitive { Case::Insensitive } else { Case::Sensitive };
            let meaning = Meaning { syntax: Syntax::Regex, case, is_word };
            let pattern = Pattern::new(&expression, meaning);
            prop_assume!(pattern.is_ok());
            let pattern = pattern.expect("it was made");
            let found = pattern.matcher().find(line.as_bytes()).expect("it cannot fail");
            // The checks before the DFA must not change the answer either.
            if let Ok(answer) = pattern.find(line.as_bytes(), &|| false) {
                prop_assert_eq!(answer, found.map(|found| found.start()), "{} {}", expression, line);
            }
            if is_word {
                return Ok(());
            }
            let stepwise = stepwise(&expression, is_insensitive);
            // The matcher puts a group around an expression, so it accepts `a)(b`.
            prop_assume!(stepwise.is_some() || regex_syntax::parse(&expression).is_ok());
            match stepwise.expect("an automaton").find(line.as_bytes(), &|| false) {
                Err(StepwiseError::Unsupported) => prop_assert!(!line.is_ascii(), "{}", expression),
                answer => prop_assert_eq!(answer, Ok(found.map(|found| found.start())), "{} {}", expression, line),
            }
        }
    }

    #[test]
    fn an_expression_that_takes_very_long_is_interrupted() {
        let line = (0_u32..1 << 20).map(|offset| b"ab"[(offset.wrapping_mul(2_654_435_761) >> 31) as usize]);
        let line = line.collect::<Vec<u8>>();
        let questions = std::cell::Cell::new(0);
        let has_ended = || questions.replace(questions.get() + 1) == 2;
        let found = stepwise("a[^z]{900}[^ab]", false).expect("an automaton").find(&line, &has_ended);
        assert_eq!((found, questions.get()), (Err(StepwiseError::Cancelled), 3));
    }
}
