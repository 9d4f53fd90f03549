//! One guest's end is no other guest's business.

use std::time::Duration;

use projector_host::guest::thread::GuestThread;
use projector_host::guest::{Limits, NoLookups};

use crate::fixture::{engine, events, guest};

#[test]
fn guests_go_on_while_others_loop_trap_and_overflow() {
    let limits = Limits {
        fuel_max: 20_000_000_000,
        call_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    std::thread::scope(|scope| {
        for name in [
            "loop-in-project",
            "recursion",
            "grow-memory",
            "trap-in-project",
            "base",
            "base",
        ] {
            let (guest, limits) = (guest(name), limits.clone());
            scope.spawn(move || {
                let thread = GuestThread::spawn(name, engine()).expect("a thread");
                for _ in 0..20 {
                    let (guest, limits) = (guest.clone(), limits.clone());
                    let result = thread
                        .call_blocking(move || {
                            guest.project(None, "{}", &events(2), Box::new(NoLookups), &limits)
                        })
                        .expect("no panic");
                    assert_eq!(result.is_ok(), name == "base", "{name}: {result:?}");
                    if name == "loop-in-project" {
                        break;
                    }
                }
            });
        }
    });
}
