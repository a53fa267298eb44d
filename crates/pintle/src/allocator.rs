//! Where memory comes from.
//!
//! Requests are parsed by one thread and dropped by another. The system's allocator locks an arena for each such value,
//! and the two threads wait for each other; mimalloc does not. But it has pages for each size of block, and a command
//! that is done after two milliseconds would spend a good part of them on touching each of those pages for the first
//! time. So the first small blocks of a process lie side by side in a room of their own, and most of them stay there.

#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use mimalloc::MiMalloc;

/// What a search of the index needs, and some more.
const ROOM: usize = 256 << 10;
/// Larger blocks have pages of their own in any case.
const LARGEST: usize = 64 << 10;
/// The room itself begins at a multiple of this.
const LARGEST_ALIGNMENT: usize = 64;

/// What is taken once something did not fit: from then on, to ask is to look at one number.
const CLOSED: usize = usize::MAX;

/// The first blocks from a room, all others from mimalloc.
pub struct Allocator {
    room: Room,
    /// How much of the room is taken, or [`CLOSED`]; blocks lie one after the other.
    taken: AtomicUsize,
}

#[repr(align(64))]
struct Room(UnsafeCell<[u8; ROOM]>);

// SAFETY: whoever takes a part of the room, by moving `taken` over it, is the only one to use that part.
unsafe impl Sync for Room {}

impl Allocator {
    pub const fn new() -> Self {
        Self { room: Room(UnsafeCell::new([0; ROOM])), taken: AtomicUsize::new(0) }
    }

    fn base(&self) -> *mut u8 {
        self.room.0.get().cast()
    }

    /// Where in the room a block begins, if it is there.
    fn place(&self, block: *mut u8) -> Option<usize> {
        let place = block.addr().wrapping_sub(self.base().addr());
        (place < ROOM).then_some(place)
    }

    /// A block of the room, if one is left.
    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        while taken != CLOSED && layout.size() <= LARGEST && layout.align() <= LARGEST_ALIGNMENT {
            // An alignment is a power of two.
            let start = (taken + layout.align() - 1) & !(layout.align() - 1);
            let end = start + layout.size();
            let next = if end <= ROOM { end } else { CLOSED };
            match self.move_end(taken, next) {
                // SAFETY: it is within the room.
                Ok(()) if next == end => return Some(unsafe { self.base().add(start) }),
                Ok(()) => break,
                Err(now) => taken = now,
            }
        }
        None
    }

    /// Moves the end of what is taken, unless it is elsewhere. Who takes a part sees all that was done to it before it
    /// was given back.
    fn move_end(&self, from: usize, to: usize) -> Result<(), usize> {
        self.taken.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).map(|_| ())
    }
}

// SAFETY: blocks of the room do not overlap, and fit their layouts; the others are mimalloc's.
unsafe impl GlobalAlloc for Allocator {
    // None is inlined: there are so many callers that the program would be a tenth larger.
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `alloc`.
        self.take(layout).unwrap_or_else(|| unsafe { MiMalloc.alloc(layout) })
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(block) => {
                // SAFETY: the block has this size, and is nobody else's. It may have been used before.
                unsafe { block.write_bytes(0, layout.size()) };
                block
            }
            // SAFETY: the caller keeps the promises of `alloc_zeroed`.
            None => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.place(block) {
            // The last one can be given back, the others stay.
            Some(start) => _ = self.move_end(start + layout.size(), start),
            // SAFETY: the caller keeps the promises of `dealloc`, and what is not in the room is mimalloc's.
            None => unsafe { MiMalloc.dealloc(block, layout) },
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(start) = self.place(block) else {
            // SAFETY: the caller keeps the promises of `realloc`, and what is not in the room is mimalloc's.
            return unsafe { MiMalloc.realloc(block, layout, new_size) };
        };
        let (old_end, new_end) = (start + layout.size(), start.saturating_add(new_size));
        let is_moved = new_end <= ROOM && self.move_end(old_end, new_end).is_ok();
        if is_moved || new_size <= layout.size() {
            return block;
        }
        // SAFETY: the caller has seen to it that the new size goes with the alignment; the new block is larger than
        // the old one, and another.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size());
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, thread};

    use proptest::prelude::*;

    use super::*;

    fn layout(size: usize, alignment: u32) -> Layout {
        Layout::from_size_align(size, 1 << alignment).expect("a layout")
    }

    /// Blocks with what was written to them.
    struct Blocks<'a> {
        allocator: &'a Allocator,
        live: BTreeMap<usize, (*mut u8, Layout, u8)>,
    }

    impl Blocks<'_> {
        fn add(&mut self, block: *mut u8, layout: Layout, mark: u8) {
            assert!(block.addr().is_multiple_of(layout.align()));
            // SAFETY: the block has this size.
            unsafe { block.write_bytes(mark, layout.size()) };
            let start = block.addr();
            let before = self.live.range(..=start).next_back();
            assert!(before.is_none_or(|(place, (_, layout, _))| place + layout.size() <= start));
            let after = self.live.range(start..).next();
            assert!(after.is_none_or(|(place, _)| start + layout.size() <= *place));
            self.live.insert(start, (block, layout, mark));
        }

        fn take(&mut self, choice: usize) -> Option<(*mut u8, Layout, u8)> {
            let place = *self.live.keys().nth(choice % self.live.len().max(1))?;
            let (block, layout, mark) = self.live.remove(&place)?;
            assert!(holds(block, layout.size(), mark));
            Some((block, layout, mark))
        }

        fn step(&mut self, what: u8, size: usize, alignment: u32, choice: usize) {
            let new = layout(size, alignment);
            // SAFETY: sizes are not zero, and each block is given back once, with its own layout.
            unsafe {
                match what {
                    0 => self.add(self.allocator.alloc(new), new, choice as u8),
                    1 => {
                        let block = self.allocator.alloc_zeroed(new);
                        assert!(holds(block, size, 0));
                        self.add(block, new, choice as u8);
                    }
                    2 => {
                        if let Some((block, layout, _)) = self.take(choice) {
                            self.allocator.dealloc(block, layout);
                        }
                    }
                    _ => {
                        if let Some((block, layout, mark)) = self.take(choice) {
                            let moved = self.allocator.realloc(block, layout, size);
                            assert!(holds(moved, size.min(layout.size()), mark));
                            let layout = Layout::from_size_align(size, layout.align()).expect("a layout");
                            self.add(moved, layout, mark);
                        }
                    }
                }
            }
        }
    }

    fn holds(block: *mut u8, size: usize, mark: u8) -> bool {
        // SAFETY: the block has this size at least, and all of that was written.
        unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|byte| *byte == mark)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn blocks_keep_what_is_written_to_them(
            steps in prop::collection::vec((0_u8..4, 1_usize..40_000, 0_u32..9, any::<usize>()), 1..200),
        ) {
            let allocator = Box::new(Allocator::new());
            let mut blocks = Blocks { allocator: &allocator, live: BTreeMap::new() };
            for (what, size, alignment, choice) in steps {
                // Most are small.
                let size = if choice.is_multiple_of(8) { size } else { size % 500 + 1 };
                blocks.step(what, size, alignment, choice);
            }
            while let Some((block, layout, _)) = blocks.take(0) {
                // SAFETY: each block is given back once, with its own layout.
                unsafe { allocator.dealloc(block, layout) };
            }
        }
    }

    #[test]
    fn threads_never_share_a_block() {
        let allocator = Box::new(Allocator::new());
        thread::scope(|scope| {
            for thread in 0..4_usize {
                let allocator = &allocator;
                scope.spawn(move || {
                    let mut blocks = Blocks { allocator, live: BTreeMap::new() };
                    for step in 0..3000_usize {
                        let choice = step.wrapping_mul(2_654_435_761) ^ thread;
                        blocks.step(
                            (choice % 4) as u8,
                            choice / 4 % 300 + 1,
                            (choice % 7) as u32,
                            step * 4 + thread,
                        );
                    }
                    while let Some((block, layout, _)) = blocks.take(0) {
                        // SAFETY: each block is given back once, with its own layout.
                        unsafe { allocator.dealloc(block, layout) };
                    }
                });
            }
        });
    }

    #[test]
    fn the_last_block_is_given_back_and_grows_where_it_is() {
        let allocator = Box::new(Allocator::new());
        let small = layout(100, 3);
        // SAFETY: each block is given back once, with its own layout.
        unsafe {
            let first = allocator.alloc(small);
            let second = allocator.alloc(small);
            assert_eq!(allocator.realloc(second, small, 5000), second);
            allocator.dealloc(second, layout(5000, 3));
            assert_eq!(allocator.alloc(small), second);
            assert_ne!(allocator.realloc(first, small, 200), first);
        }
    }
}
