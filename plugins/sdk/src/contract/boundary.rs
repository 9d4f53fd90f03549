//! The one function that the host calls for a batch, and the one it answers look-ups with.
//!
//! Owns: the names and signatures of both in the canonical ABI. Promises: nothing is converted on the way, and what
//! was returned stays, since the instance ends with the batch; so there is nothing to do after a return. Must never:
//! free what the host wrote, or keep it in a form that could be changed.
#![allow(
    unsafe_code,
    reason = "addresses come from the host; the canonical ABI says what stands there"
)]

use std::mem::MaybeUninit;

use super::{Answer, Failure, Found, List, LookupError, RowKey, Write};
use crate::allocator::HEAP;
use crate::event::Event;

/// What stands where the host looks for the result of `project`.
pub type Projected = Answer<List<Write>, Failure>;

/// Runs a batch on the events that the host wrote, and gives the address of the result.
///
/// # Safety
///
/// The host wrote that many events there, in memory that it got from this instance.
pub unsafe fn project(
    events: *const Event,
    count: usize,
    run: impl FnOnce(&'static [Event]) -> Result<List<Write>, Failure>,
) -> *const Projected {
    // SAFETY: the caller's promise; the memory is never freed, and the host does not come back to it.
    let events = unsafe { std::slice::from_raw_parts(events, count) };
    Box::leak(Box::new(run(events).into()))
}

/// Asks the host for rows.
pub(crate) fn get(keys: &[RowKey]) -> Result<Found, LookupError> {
    #[link(wasm_import_module = "projector:projection/read-model@0.1.0")]
    unsafe extern "C" {
        #[link_name = "get"]
        fn host_get(
            keys: *const RowKey,
            count: usize,
            answer: *mut MaybeUninit<Answer<Found, LookupError>>,
        );
    }

    let mut answer = MaybeUninit::uninit();
    // SAFETY: the host reads the keys and writes the answer, whose lists it puts into memory that it asks this
    // instance for.
    let answer = unsafe {
        host_get(keys.as_ptr(), keys.len(), &raw mut answer);
        answer.assume_init()
    };
    match answer {
        Answer::Ok(found) => Ok(found),
        Answer::Err(error) => Err(error),
    }
}

/// Gives the host room for what it hands over, without gaps and for good: nothing of it may be freed.
///
/// # Safety
///
/// As the canonical ABI says: the alignment is a power of two, and what is to grow was given here.
///
/// Where there is a C library for WASI it brings its own, and frees what that gave.
#[cfg(not(target_os = "wasi"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(
    old: *mut u8,
    old_size: usize,
    align: usize,
    size: usize,
) -> *mut u8 {
    if size == 0 {
        return std::ptr::without_provenance_mut(align);
    }
    let room = HEAP.keep(size, align);
    if room.is_null() {
        std::process::abort();
    }
    if old_size > 0 {
        // SAFETY: the old block is that large, and the new one is another.
        unsafe { std::ptr::copy_nonoverlapping(old, room, old_size.min(size)) };
    }
    room
}
