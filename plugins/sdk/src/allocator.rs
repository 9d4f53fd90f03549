//! Memory for an instance that lives for one batch.
//!
//! Owns: the guest's heap. Blocks come from lists of equal sizes, and what is freed goes back to its list; nothing is
//! joined or returned, since the whole memory goes with the instance. That makes both directions a few instructions,
//! where a general allocator took a third of a batch's time. Promises: a block is as large and as aligned as asked
//! for. Must never: be used by two threads; a guest has one.
#![allow(
    unsafe_code,
    reason = "an allocator cannot be written without; it is this file, and a test fills and checks its blocks"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;

/// Small blocks differ by this many bytes, which is also the alignment of every block.
const STEP: usize = 16;
/// Up to here there is a list for each step; beyond, one for each power of two.
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
    /// For each class the last block that was freed; its first word is the one freed before.
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

/// The list that blocks of this size belong to, and how large they are.
const fn class(size: usize) -> (usize, usize) {
    if size <= SMALL_MAX {
        let steps = if size <= STEP { 1 } else { size.div_ceil(STEP) };
        (steps - 1, steps * STEP)
    } else {
        let bits = usize::BITS - (size - 1).leading_zeros();
        (SMALL_CLASSES + bits as usize, 1 << bits)
    }
}

// SAFETY: blocks are cut from memory that `grow` gave, one after the other, and a block is in a list or with the
// program, never both; its size is that of its class, which is not smaller than what was asked for, and everything is
// aligned to STEP. Layouts that want more alignment, which nothing here has, get no memory.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > STEP {
            return null_mut();
        }
        let (class, size) = class(layout.size());
        // SAFETY: the only thread; no reference to the state outlives this call.
        let state = unsafe { &mut *self.state.get() };
        let head = state.free[class];
        if head != 0 {
            // SAFETY: a free block holds the address of the next one.
            state.free[class] = unsafe { *(head as *const usize) };
            return head as *mut u8;
        }
        if state.end - state.next < size {
            let Some((start, more)) = (self.grow)(size + STEP) else {
                return null_mut();
            };
            if start != state.end {
                // Not behind what is left, which is given up.
                state.next = start.next_multiple_of(STEP);
            }
            state.end = start + more;
        }
        let block = state.next;
        state.next += size;
        block as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (class, _) = class(layout.size());
        // SAFETY: as above; the block is ours again and at least a word long.
        unsafe {
            let state = &mut *self.state.get();
            *block.cast::<usize>() = state.free[class];
            state.free[class] = block as usize;
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let ((old, old_size), (new, size)) = (class(layout.size()), class(new_size));
        if old == new {
            return block;
        }
        // SAFETY: as above.
        let state = unsafe { &mut *self.state.get() };
        if block as usize + old_size == state.next
            && block as usize + size <= state.end
            && size > old_size
        {
            // The last block grows where it is.
            state.next = block as usize + size;
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
static HEAP: Arena = Arena::new(more_memory);

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
        let arena = Arena::new(pieces);
        let layout = Layout::from_size_align(100, 8).expect("a layout");
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
    fn without_memory_there_is_no_block() {
        let arena = Arena::new(none);
        let layout = Layout::from_size_align(100, 8).expect("a layout");
        // SAFETY: nothing is given.
        assert!(unsafe { arena.alloc(layout) }.is_null());
    }
}
