//! Deltas: objects in a pack that are stored as the difference to another object.

/// What a delta makes of `base`; `None` if it is no delta of it, or makes more than `limit` bytes.
pub(crate) fn apply(base: &[u8], delta: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut rest = delta;
    let base_size = size(&mut rest)?;
    let result_size = size(&mut rest)?;
    if base_size != base.len() || result_size > limit {
        return None;
    }
    let mut result = Vec::new();
    while let Some(step) = next(&mut rest) {
        let piece = if step & 0x80 == 0 {
            let (piece, more) = rest.split_at_checked(usize::from(step)).filter(|_| step > 0)?;
            rest = more;
            piece
        } else {
            let mut field = |first: u8, bytes: u8| {
                (0..bytes).try_fold(0, |value: usize, byte| {
                    let is_there = step & (1 << (first + byte)) != 0;
                    let part = if is_there { next(&mut rest)? } else { 0 };
                    Some(value | usize::from(part) << (8 * byte))
                })
            };
            let (start, length) = (field(0, 4)?, field(4, 3)?);
            let length = if length == 0 { 0x10000 } else { length };
            base.get(start..start.checked_add(length)?)?
        };
        if result.len() + piece.len() > result_size {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() == result_size).then_some(result)
}

fn next(rest: &mut &[u8]) -> Option<u8> {
    let (first, more) = rest.split_first()?;
    *rest = more;
    Some(*first)
}

fn size(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..usize::BITS - 7).step_by(7) {
        let byte = next(rest)?;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_copied_and_inserted() {
        let delta = [&[6, 7, 0x91, 2, 3][..], &[4], b"abcd"].concat();
        assert_eq!(apply(b"012345", &delta, 100).as_deref(), Some(&b"234abcd"[..]));
        assert_eq!(apply(b"012345", &delta, 6), None);
        assert_eq!(apply(b"01234", &delta, 100), None);
        for length in 0..delta.len() {
            assert_eq!(apply(b"012345", &delta[..length], 100), None);
        }
    }

    #[test]
    fn a_piece_without_a_length_is_64_kibibytes() {
        let base = vec![b'x'; 0x10001];
        assert_eq!(
            apply(&base, &[0x81, 0x80, 0x04, 0x80, 0x80, 0x04, 0x80], 1 << 20),
            Some(vec![b'x'; 0x10000])
        );
    }

    #[test]
    fn what_lies_outside_of_the_base_is_not_copied() {
        assert_eq!(apply(b"012345", &[6, 3, 0x91, 4, 3], 100), None);
        assert_eq!(apply(b"012345", &[6, 3, 0x8f, 255, 255, 255, 255], 100), None);
        assert_eq!(apply(b"012345", &[6, 1, 0], 100), None);
    }
}
