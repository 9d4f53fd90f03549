//! Linear memories whose pages serve several instances, one after the other.
//!
//! Each batch gets a fresh instance and with it a fresh memory. Mapped anew, every page of a large one costs a fault and
//! a page from the system, which was a fifth of the host's time in catch-up; here a few of them are kept, wiped.
//! Promises: a memory is zero throughout when an instance gets it; beyond its present size every access traps, up to
//! the engine's reservation and guard, and as far before it. Must never: keep a byte of one instance for another, keep
//! more than [`IDLE_MAX`] times [`KEPT_MAX_BYTES`], or give one mapping to two memories.
#![allow(
    unsafe_code,
    reason = "mapping, protecting and wiping memory cannot be done without, nor can the engine's traits for it be \
              implemented; it is this file, and tests fill memories and look at the next one"
)]

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// A memory that stayed smaller is not kept: the system gives back so little faster than it is wiped.
const KEPT_MIN_BYTES: usize = 2 << 20;
/// A memory that grew larger is not kept either, so that one large batch does not hold its pages for ever.
const KEPT_MAX_BYTES: usize = 32 << 20;
/// How many are kept.
const IDLE_MAX: usize = 2;

thread_local! {
    /// Whether this thread's memories are made anew.
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Does work whose memories come from the system: those that were kept have pages, which whoever waits would hold.
pub(super) fn apart<R>(work: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            APART.set(self.0);
        }
    }
    let _back = Back(APART.replace(true));
    work()
}

/// Makes memories; a clone shares what is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Memories {
    idle: Arc<Mutex<Vec<Mapping>>>,
}

/// Address space of its own, nothing of which can be touched until it is opened.
#[derive(Debug)]
struct Mapping {
    start: NonNull<c_void>,
    /// Bytes before the memory, its room to grow, and bytes behind that, in pages.
    guard: usize,
    room: usize,
}

/// One instance's memory.
struct Memory {
    /// Taken out when it is dropped.
    mapping: Option<Mapping>,
    /// Bytes that are open, from the base on.
    size: usize,
    /// Whether nothing beyond the size is open.
    is_sound: bool,
    idle: Arc<Mutex<Vec<Mapping>>>,
}

// SAFETY: a mapping belongs to whoever holds the value; nothing about it is bound to a thread.
unsafe impl Send for Mapping {}
// SAFETY: nothing is done through a shared reference but computing addresses.
unsafe impl Sync for Mapping {}

// SAFETY: `new_memory` reserves what is asked for and leaves everything beyond the size closed; a mapping is new and so
// zero, or was wiped when the memory before it was dropped; it is in one place only, so no two memories share one.
unsafe impl MemoryCreator for Memories {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let room = reserved.or(maximum).unwrap_or(minimum).max(minimum);
        let kept = if APART.get() {
            None
        } else {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.pop_if(|mapping| mapping.room == room && mapping.guard == guard)
        };
        let mapping = match kept {
            Some(mapping) => mapping,
            None => Mapping::new(room, guard)
                .map_err(|error| format!("the system reserves no memory: {error}"))?,
        };
        let mut memory = Memory {
            mapping: Some(mapping),
            size: 0,
            is_sound: true,
            idle: Arc::clone(&self.idle),
        };
        memory
            .open(minimum)
            .map_err(|error| format!("the system gives no memory: {error}"))?;
        Ok(Box::new(memory))
    }
}

// SAFETY: the base never moves while the memory lives; its first `size` bytes are open for reading and writing, all
// others up to the end of room and guard are closed.
unsafe impl LinearMemory for Memory {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.mapping.as_ref().map_or(0, |mapping| mapping.room)
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        Ok(self.open(size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.mapping
            .as_ref()
            .map_or(ptr::null_mut(), |mapping| mapping.base().cast())
    }
}

impl Memory {
    /// Opens the bytes up to a size.
    fn open(&mut self, size: usize) -> io::Result<()> {
        let Some(mapping) = self.mapping.as_ref().filter(|mapping| size <= mapping.room) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        if size > self.size {
            let open = MprotectFlags::READ | MprotectFlags::WRITE;
            let opened = mapping.protect(self.size, size - self.size, open);
            if opened.is_err() {
                // Perhaps some of it is open: nobody else may get that.
                self.is_sound = false;
            }
            opened?;
            self.size = size;
        }
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(mapping) = self.mapping.take() else {
            return;
        };
        if !self.is_sound || !(KEPT_MIN_BYTES..=KEPT_MAX_BYTES).contains(&self.size) {
            return;
        }
        let room_for_it = || {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.len() < IDLE_MAX
        };
        if !room_for_it() {
            return;
        }
        // SAFETY: these bytes are open, and the instance that used them is gone.
        unsafe { ptr::write_bytes(mapping.base().cast::<u8>(), 0, self.size) };
        if mapping
            .protect(0, self.size, MprotectFlags::empty())
            .is_ok()
        {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(mapping);
            }
        }
    }
}

impl Mapping {
    fn new(room: usize, guard: usize) -> io::Result<Self> {
        let bytes = room
            .checked_add(guard)
            .and_then(|bytes| bytes.checked_add(guard))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new place of the system's choice, so nothing that exists is touched.
        let start =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), flags)? };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, guard, room })
    }

    fn base(&self) -> *mut c_void {
        self.start.as_ptr().wrapping_byte_add(self.guard)
    }

    /// Opens or closes bytes of the room.
    fn protect(&self, at: usize, bytes: usize, flags: MprotectFlags) -> io::Result<()> {
        let place = self.base().wrapping_byte_add(at);
        // SAFETY: within this mapping, which nobody else uses.
        let done = unsafe { mm::mprotect(place, bytes, flags) };
        Ok(done?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = self.guard + self.room + self.guard;
        // SAFETY: the whole mapping, which nobody uses any more. An error cannot be answered; the place is lost then.
        let _ = unsafe { mm::munmap(self.start.as_ptr(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64 << 20;
    const GUARD: usize = 1 << 20;

    fn memory(memories: &Memories, minimum: usize) -> Box<dyn LinearMemory> {
        let memory_type = MemoryType::new(1, None);
        memories
            .new_memory(memory_type, minimum, None, Some(ROOM), GUARD)
            .expect("memory")
    }

    fn bytes(memory: &mut dyn LinearMemory) -> &mut [u8] {
        // SAFETY: the test is alone with it.
        unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), memory.byte_size()) }
    }

    fn idle(memories: &Memories) -> usize {
        memories.idle.lock().expect("nobody panicked").len()
    }

    #[test]
    fn a_memory_is_zero_whoever_had_its_pages_before() {
        let memories = Memories::default();
        let mut places = Vec::new();
        for size in [4 << 20, 3 << 20, 8 << 20, 4 << 20] {
            let mut memory = memory(&memories, 1 << 16);
            memory.grow_to(size).expect("it fits");
            assert!(bytes(&mut *memory).iter().all(|byte| *byte == 0), "{size}");
            bytes(&mut *memory).fill(0xaa);
            places.push(memory.as_ptr());
        }
        assert!(
            places.iter().all(|place| *place == places[0]),
            "the same pages"
        );
        assert_eq!(idle(&memories), 1);
    }

    #[test]
    fn few_are_kept_and_none_that_is_small_or_large() {
        let memories = Memories::default();
        for (size, kept) in [
            (1 << 16, 0),
            (KEPT_MAX_BYTES + (1 << 16), 0),
            (KEPT_MAX_BYTES, 1),
        ] {
            drop(memory(&memories, size));
            assert_eq!(idle(&memories), kept, "{size}");
        }
        let many: Vec<_> = (0..IDLE_MAX + 3)
            .map(|_| memory(&memories, KEPT_MIN_BYTES))
            .collect();
        let mut places: Vec<_> = many.iter().map(|memory| memory.as_ptr()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), many.len(), "each has its own");
        drop(many);
        assert_eq!(idle(&memories), IDLE_MAX);
    }

    #[test]
    fn who_waits_holds_no_memory_that_was_kept() {
        let memories = Memories::default();
        drop(memory(&memories, KEPT_MIN_BYTES));
        let waits = apart(|| memory(&memories, 1 << 16));
        assert_eq!(idle(&memories), 1);
        let works = memory(&memories, 1 << 16);
        assert_eq!(idle(&memories), 0, "only while it is asked for");
        assert_ne!(waits.as_ptr(), works.as_ptr());
    }

    #[test]
    fn a_memory_cannot_grow_beyond_its_room() {
        let memories = Memories::default();
        let mut memory = memory(&memories, 1 << 16);
        assert!(memory.grow_to(ROOM + 1).is_err());
        memory.grow_to(ROOM).expect("all of it");
        assert_eq!((memory.byte_size(), memory.byte_capacity()), (ROOM, ROOM));
    }
}
