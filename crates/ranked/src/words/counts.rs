//! How often each term, or each compound word, is in one file.

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u64,
    count: u32,
    /// The round in which the slot was filled; of another round, it is empty.
    round: u32,
}

/// A table of hashes with their counts, quick to empty. Of each it remembers something, from when it first came.
pub(crate) struct Counts<T> {
    slots: Vec<Slot>,
    filled: Vec<(u32, T)>,
    round: u32,
    /// How many slots are in use, less one: a small table for a small file stays in the cache.
    mask: usize,
}

/// The smallest table.
const FEWEST_SLOTS: usize = 256;
/// A table that is larger is given back when it is empty.
const MOST_SLOTS: usize = 64 << 10;

impl<T> Counts<T> {
    /// An empty table.
    pub(crate) fn new() -> Self {
        let slots = vec![Slot::default(); FEWEST_SLOTS];
        Self { slots, filled: Vec::new(), round: 1, mask: FEWEST_SLOTS - 1 }
    }

    /// Prepares the empty table for about so many hashes.
    pub(crate) fn expect(&mut self, count: usize) {
        debug_assert!(self.filled.is_empty());
        let slots = count.saturating_mul(2).clamp(FEWEST_SLOTS, MOST_SLOTS).next_power_of_two();
        if slots > self.slots.len() {
            self.slots.resize(slots, Slot::default());
        }
        self.mask = slots - 1;
    }

    /// Counts a hash some times more.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, times: u32, memory: T) {
        let mask = self.mask;
        // The high bits are the best.
        let mut index = (hash >> 32) as usize & mask;
        loop {
            let slot = &mut self.slots[index & mask];
            if slot.round != self.round {
                *slot = Slot { hash, count: times, round: self.round };
                self.filled.push(((index & mask) as u32, memory));
                if self.filled.len() * 2 > mask {
                    self.grow();
                }
                return;
            }
            if slot.hash == hash {
                slot.count = slot.count.saturating_add(times);
                return;
            }
            index += 1;
        }
    }

    /// How many different hashes there are.
    pub(crate) fn len(&self) -> usize {
        self.filled.len()
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.mask * 2 + 1;
        let mut larger = vec![Slot::default(); mask + 1];
        for (filled, _) in &mut self.filled {
            let slot = self.slots[*filled as usize];
            let mut index = (slot.hash >> 32) as usize & mask;
            while larger[index].round == self.round {
                index = (index + 1) & mask;
            }
            larger[index] = slot;
            *filled = index as u32;
        }
        (self.slots, self.mask) = (larger, mask);
    }

    /// Calls `take` with every hash, its count and its memory in the order in which they came, and forgets them.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(u64, u32, T)) {
        for (index, memory) in self.filled.drain(..) {
            let slot = self.slots[index as usize];
            take(slot.hash, slot.count, memory);
        }
        if self.slots.len() > MOST_SLOTS || self.round == u32::MAX {
            *self = Self::new();
        } else {
            self.round += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn counts_are_those_of_a_map_in_every_round() {
        let mut counts = Counts::new();
        for round in 0..5u64 {
            let mut expected = HashMap::new();
            counts.expect([0, 10_000, 100][round as usize % 3]);
            for number in 0..40_000u64 {
                // Neighbours and equal low bits, so that slots collide.
                let hash = ((number * 7 + round) % 9_001) << 44;
                counts.add(hash, 1, number);
                *expected.entry(hash).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), expected.len());
            let mut found = HashMap::new();
            counts.drain(|hash, count, first| {
                assert_eq!(((first * 7 + round) % 9_001) << 44, hash);
                assert!(found.insert(hash, count).is_none());
            });
            assert_eq!(found, expected);
        }
    }
}
