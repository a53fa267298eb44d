//! Resolves line numbers and ranges of lines, which callers may count from the end.

use std::ops::Range;

/// Why a range or a line number means nothing in a file of `total` lines.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RangeError {
    #[error("line {start} is before the first: {}", length(*total))]
    BeforeFirst { start: i64, total: u64 },
    #[error("line {start} is past the last: {}", length(*total))]
    PastLast { start: i64, total: u64 },
    #[error(
        "the range [{start}, {end}] contains no line: {}, `end` is exclusive and 0 means to the end of the file",
        length(*total)
    )]
    Empty { start: i64, end: i64, total: u64 },
    #[error("there is no line 0; count lines from 1, or from -1 at the end")]
    LineZero,
}

/// The lines that `[start, end)` means in a file of `total` lines, counted from 1.
pub(crate) fn resolve_range(lines: [i64; 2], total: u64) -> Result<Range<u64>, RangeError> {
    let [start, end] = lines;
    let count = i64::try_from(total).unwrap_or(i64::MAX);
    let first = match start {
        0 => 1,
        1.. => start,
        _ => count + 1 + start,
    };
    let past = match end {
        0 => count + 1,
        1.. => end.min(count + 1),
        _ => count + 1 + end,
    };
    if first < 1 {
        return Err(RangeError::BeforeFirst { start, total });
    }
    if first > count {
        return Err(RangeError::PastLast { start, total });
    }
    if past <= first {
        return Err(RangeError::Empty { start, end, total });
    }
    Ok(first.unsigned_abs()..past.unsigned_abs())
}

/// The line that a number means in a file of `total` lines, counted from 1.
pub(crate) fn resolve_line(line: i64, total: u64) -> Result<u64, RangeError> {
    match line {
        0 => Err(RangeError::LineZero),
        line => resolve_range([line, 0], total).map(|range| range.start),
    }
}

/// A range that needs no line count: both numbers are counted from the start.
pub(crate) fn known_range(lines: [i64; 2]) -> Option<Range<u64>> {
    let start = u64::try_from(lines[0]).ok()?.max(1);
    let end = u64::try_from(lines[1]).ok()?;
    Some(start..if end == 0 { u64::MAX } else { end })
}

fn length(total: u64) -> String {
    match total {
        0 => "the file is empty".into(),
        1 => "the file has 1 line".into(),
        total => format!("the file has {total} lines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_from_both_ends_and_may_be_open() {
        for (lines, total, expected) in [
            ([1, 2], 3, Some(1..2)),
            ([1, 0], 3, Some(1..4)),
            ([0, 0], 3, Some(1..4)),
            ([0, 2], 3, Some(1..2)),
            ([-2, 0], 3, Some(2..4)),
            ([-1, 0], 3, Some(3..4)),
            ([1, -1], 3, Some(1..3)),
            ([-3, -1], 3, Some(1..3)),
            ([2, 99], 3, Some(2..4)),
            ([3, 4], 3, Some(3..4)),
            ([4, 5], 3, None),
            ([4, 0], 3, None),
            ([-4, 0], 3, None),
            ([2, 2], 3, None),
            ([3, 2], 3, None),
            ([-1, -1], 3, None),
            ([1, -9], 3, None),
            ([1, 0], 0, None),
            ([0, 0], 0, None),
            ([i64::MAX, i64::MIN], 3, None),
            ([i64::MIN, i64::MAX], 3, None),
        ] {
            assert_eq!(resolve_range(lines, total).ok(), expected, "{lines:?} of {total}");
        }
        assert_eq!(resolve_line(-1, 3), Ok(3));
        assert!(resolve_line(0, 3).is_err() && resolve_line(4, 3).is_err());
    }

    #[test]
    fn an_error_says_how_many_lines_there_are() {
        assert!(resolve_range([9, 0], 3).expect_err("past the end").to_string().contains("3 lines"));
        assert!(resolve_range([1, 0], 0).expect_err("empty").to_string().contains("empty"));
    }
}
