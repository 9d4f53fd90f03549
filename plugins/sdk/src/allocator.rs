//! Memory for an instance that lives for one batch.
//!
//! Owns: the guest's heap. Small blocks come from lists of equal sizes, and what is freed goes back to its list; larger
//! ones are cut as they are asked for, and a freed one serves a smaller one. Nothing is joined or returned, since the
//! whole memory goes with the instance. That makes both directions a few instructions, where a general allocator took a
//! third of a batch's time. What stays until the end anyway is [kept](Arena::keep) without gaps. Promises: a block is
//! as large and as aligned as asked for. Must never: be used by two threads; a guest has one.
#![allow(
    unsafe_code,
    reason = "an allocator cannot be written without; it is this file, and a test fills and checks its blocks"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;

/// Small blocks differ by this many bytes, which is also the alignment of every block.
const STEP: usize = 16;
/// Up to here there is a list for each step; beyond, one for each power of two that a block reaches.
const SMALL_MAX: usize = 512;
const SMALL_CLASSES: usize = SMALL_MAX / STEP;
const CLASSES: usize = SMALL_CLASSES + usize::BITS as usize;

/// Gives at least so many bytes more, best of all behind those that it gave before: where they begin and how many
/// they are.
type Grow = fn(usize) -> Option<(usize, usize)>;

/// The heap.
pub struct Arena {
    state: UnsafeCell<State>,
    grow: Grow,
}

struct State {
    /// For each list the last block that was freed.
    free: [usize; CLASSES],
    /// What was never given out yet.
    next: usize,
    end: usize,
}

// SAFETY: a guest has one thread, and the tests keep each arena to theirs.
unsafe impl Sync for Arena {}

impl Arena {
    /// An empty heap.
    #[must_use]
    pub const fn new(grow: Grow) -> Self {
        Self {
            state: UnsafeCell::new(State {
                free: [0; CLASSES],
                next: 0,
                end: 0,
            }),
            grow,
        }
    }
}

impl Arena {
    /// Bytes that are never freed; null without memory. The alignment is a power of two, at most [`STEP`].
    #[inline]
    pub fn keep(&self, size: usize, align: usize) -> *mut u8 {
        // SAFETY: the only thread; no reference to the state outlives this call.
        let state = unsafe { &mut *self.state.get() };
        let block = (state.next + align - 1) & !(align - 1);
        if block <= state.end && state.end - block >= size {
            state.next = block + size;
            return block as *mut u8;
        }
        self.more(state, size)
    }

    /// The same, aligned to [`STEP`], where the room did not suffice.
    #[cold]
    fn more(&self, state: &mut State, size: usize) -> *mut u8 {
        let Some((start, more)) = (self.grow)(size + STEP) else {
            return null_mut();
        };
        if start != state.end {
            // Not behind what is left, which is given up.
            state.next = start;
        }
        state.end = start + more;
        let block = state.next.next_multiple_of(STEP);
        state.next = block + size;
        block as *mut u8
    }
}

/// Whether there is a list for just this size.
const fn is_small(size: usize) -> bool {
    size <= SMALL_MAX
}

/// The size that a block of this size really has.
const fn whole(size: usize) -> usize {
    if size <= STEP {
        STEP
    } else {
        size.next_multiple_of(STEP)
    }
}

/// The list into which a block of this size goes.
const fn list(size: usize) -> usize {
    if is_small(size) {
        whole(size) / STEP - 1
    } else {
        SMALL_CLASSES + (usize::BITS - 1 - size.leading_zeros()) as usize
    }
}

/// What stands in a block that was freed.
struct Free {
    /// The block of the same list that was freed before.
    next: usize,
    /// Its size, at least.
    size: usize,
}

impl State {
    /// A freed block of this list, if the last one is large enough.
    #[inline]
    fn take(&mut self, list: usize, size: usize) -> Option<*mut u8> {
        let head = self.free[list] as *mut Free;
        // SAFETY: what is in a list is free, and says so itself.
        if head.is_null() || unsafe { (*head).size } < size {
            return None;
        }
        // SAFETY: as above.
        self.free[list] = unsafe { (*head).next };
        Some(head.cast())
    }
}

// SAFETY: blocks are cut from memory that `grow` gave, one after the other, and a block is in a list or with the
// program, never both; one that is taken from a list is as large as it says, and everything is aligned to STEP. Layouts
// that want more alignment, which nothing here has, get no memory.
unsafe impl GlobalAlloc for Arena {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > STEP {
            return null_mut();
        }
        // SAFETY: the only thread; no reference to the state outlives this call.
        let state = unsafe { &mut *self.state.get() };
        let (list, size) = (list(layout.size()), layout.size());
        if let Some(block) = state.take(list, size) {
            return block;
        }
        if !is_small(size)
            && let Some(block) = state.take(list + 1, size)
        {
            return block;
        }
        self.keep(whole(size), STEP)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        debug_assert!((block as usize).is_multiple_of(STEP), "kept, not allocated");
        let list = list(layout.size());
        // SAFETY: as above; the block is ours again and has room for this.
        unsafe {
            let state = &mut *self.state.get();
            block.cast::<Free>().write(Free {
                next: state.free[list],
                size: whole(layout.size()),
            });
            state.free[list] = block as usize;
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (old, new) = (whole(layout.size()), whole(new_size));
        if old == new || old > new && !is_small(new_size) {
            return block;
        }
        // SAFETY: as above.
        let state = unsafe { &mut *self.state.get() };
        if block as usize + old == state.next && new > old && block as usize + new <= state.end {
            // The last block grows where it is.
            state.next = block as usize + new;
            return block;
        }
        // SAFETY: the caller promises that the new size is none that overflows, and the alignment is the old one.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// The heap of every component that is built with this crate.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
pub(crate) static HEAP: Arena = Arena::new(more_memory);

/// Memory grows by pages, a few at a time so that the host is asked rarely.
#[cfg(target_arch = "wasm32")]
fn more_memory(bytes: usize) -> Option<(usize, usize)> {
    const PAGE: usize = 65_536;
    const PAGES_MIN: usize = 4;
    let wanted = bytes.div_ceil(PAGE);
    let pages = wanted.max(PAGES_MIN);
    let before = std::arch::wasm32::memory_grow::<0>(pages);
    (before != usize::MAX).then(|| (before * PAGE, pages * PAGE))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static GIVEN: Cell<usize> = const { Cell::new(0) };
    }

    /// Memory in pieces that do not follow each other.
    fn pieces(bytes: usize) -> Option<(usize, usize)> {
        GIVEN.set(GIVEN.get() + bytes);
        let piece = Box::leak(vec![0_u8; bytes.max(4_096)].into_boxed_slice());
        Some((piece.as_mut_ptr() as usize, piece.len()))
    }

    fn none(_: usize) -> Option<(usize, usize)> {
        None
    }

    /// A block that is filled with a byte of its own.
    struct Block(*mut u8, Layout, u8);

    impl Block {
        fn check(&self) {
            // SAFETY: the block is ours and was filled.
            let bytes = unsafe { std::slice::from_raw_parts(self.0, self.1.size()) };
            assert!(bytes.iter().all(|byte| *byte == self.2), "{:?}", self.1);
        }
    }

    #[test]
    fn blocks_hold_what_was_written_until_they_are_freed() {
        let arena = Arena::new(pieces);
        let mut blocks: Vec<Block> = Vec::new();
        let mut seed = 7_usize;
        for round in 0..20_000_usize {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let size = 1 + (seed >> 33) % if round % 50 == 0 { 9_000 } else { 300 };
            let byte = (round % 251) as u8;
            let layout = Layout::from_size_align(size, 8).expect("a layout");
            // SAFETY: sizes are not zero; each block is freed once, with the layout that it has.
            unsafe {
                match (seed >> 20) % 3 {
                    0 if blocks.len() > 100 => {
                        let block = blocks.swap_remove(seed % blocks.len());
                        block.check();
                        arena.dealloc(block.0, block.1);
                    }
                    1 if !blocks.is_empty() => {
                        let at = seed % blocks.len();
                        let block = &mut blocks[at];
                        block.check();
                        let moved = arena.realloc(block.0, block.1, size);
                        let kept = block.1.size().min(size);
                        let bytes = std::slice::from_raw_parts(moved, kept);
                        assert!(bytes.iter().all(|byte| *byte == block.2));
                        moved.write_bytes(byte, size);
                        *block = Block(moved, layout, byte);
                    }
                    _ => {
                        let place = arena.alloc(layout);
                        assert_eq!(place as usize % 8, 0);
                        place.write_bytes(byte, size);
                        blocks.push(Block(place, layout, byte));
                    }
                }
            }
        }
        blocks.iter().for_each(Block::check);
    }

    #[test]
    fn what_was_freed_is_given_again() {
        [1, 100, 512, 513, 1_280, 3_000]
            .into_iter()
            .for_each(check_freed);
    }

    fn check_freed(size: usize) {
        let arena = Arena::new(pieces);
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: freed once.
        unsafe {
            let first = arena.alloc(layout);
            let given = GIVEN.get();
            arena.dealloc(first, layout);
            for _ in 0..1_000 {
                let again = arena.alloc(layout);
                assert_eq!(again, first);
                arena.dealloc(again, layout);
            }
            assert_eq!(GIVEN.get(), given);
        }
    }

    #[test]
    fn what_is_kept_has_no_gaps_and_is_aligned_where_it_must() {
        let arena = Arena::new(pieces);
        let first = arena.keep(3, 1) as usize;
        assert_eq!(arena.keep(5, 1) as usize, first + 3);
        let aligned = arena.keep(8, 8) as usize;
        assert!(aligned.is_multiple_of(8) && (first + 8..first + 16).contains(&aligned));
        for _ in 0..10_000 {
            let kept = arena.keep(7, 1);
            // SAFETY: just given.
            unsafe { kept.write_bytes(1, 7) };
        }
        assert!((arena.keep(16, STEP) as usize).is_multiple_of(STEP));
    }

    #[test]
    fn without_memory_there_is_no_block() {
        let arena = Arena::new(none);
        let layout = Layout::from_size_align(100, 8).expect("a layout");
        // SAFETY: nothing is given.
        assert!(unsafe { arena.alloc(layout) }.is_null());
    }
}
