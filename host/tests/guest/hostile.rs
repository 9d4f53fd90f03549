//! Each way to misbehave ends that call only, with the right category, class and text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use projector_host::error::Class;
use projector_host::guest::lookups::Answers;
use projector_host::guest::writes::Keys;
use projector_host::guest::{CallError, Category, Limits, LookupFailure, Lookups};

use crate::fixture::{events, guest, on_thread, project, project_with};

/// Small enough that an endless loop ends in milliseconds.
fn limits() -> Limits {
    Limits {
        fuel_max: 50_000_000,
        ..Limits::default()
    }
}

fn fails(name: &str, limits: &Limits) -> CallError {
    match project(&guest(name), events(3), limits) {
        Ok(output) => panic!("{name} got through: {output:?}"),
        Err(error) => error,
    }
}

fn check(name: &str, category: Category, part: &str) {
    let error = fails(name, &limits());
    assert_eq!(error.category, category, "{name}: {error}");
    assert!(error.message.contains(part), "{name}: {error}");
}

#[test]
fn a_well_behaved_guest_gets_through() {
    let output = project(&guest("base"), events(3), &limits()).expect("nothing is wrong");
    assert_eq!(output.writes.len(), 1);
    assert_eq!(output.writes.to_list()[0].target.table, "events");
    assert!(output.fuel > 0 && output.fuel < 100_000, "{}", output.fuel);
    assert_eq!(output.memory_peak, 64 << 10);
    assert_eq!(output.log_lines_dropped, 0);
}

#[test]
fn an_endless_loop_ends_by_fuel_in_every_stage() {
    check(
        "loop-in-project",
        Category::Fuel,
        "while projecting: it used up its budget",
    );
    check(
        "loop-in-describe",
        Category::Fuel,
        "while describing itself",
    );
    check("loop-in-start", Category::Fuel, "while starting");
    check("loop-in-realloc", Category::Fuel, "while describing itself");
    assert_eq!(Category::Fuel.class(), Class::Poison);
}

#[test]
fn an_endless_loop_ends_by_the_clock_in_every_stage_when_fuel_is_plenty() {
    // Enough for some seconds, so that this test ends even when the clock does not.
    let limits = Limits {
        fuel_max: 20_000_000_000,
        call_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    for name in [
        "loop-in-project",
        "loop-in-describe",
        "loop-in-start",
        "loop-in-realloc",
    ] {
        let began = std::time::Instant::now();
        let error = fails(name, &limits);
        assert_eq!(error.category, Category::Timeout, "{name}: {error}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{name}: {:?}",
            began.elapsed()
        );
        assert_eq!(error.class(), Class::Transient);
        assert!(error.is_counted());
    }
}

#[test]
fn fuel_ends_a_loop_at_the_same_place_every_time_and_before_the_clock() {
    // A loop of so much fuel takes some 2 s of a processor; here other tests and compilers want theirs, too.
    let limits = Limits {
        call_timeout: Duration::from_secs(60),
        ..Limits::default()
    };
    let error = fails("loop-in-project", &limits);
    assert_eq!(error.category, Category::Fuel, "{error}");
    assert_eq!(fails("loop-in-project", &limits), error);
}

#[test]
fn a_trap_is_named_in_every_stage() {
    check(
        "trap-in-project",
        Category::Trap,
        "while projecting: it reached an `unreachable`",
    );
    check(
        "trap-in-describe",
        Category::Trap,
        "while describing itself",
    );
    check("trap-in-start", Category::Trap, "while starting");
    check("trap-in-realloc", Category::Trap, "while describing itself");
    check("divide-by-zero", Category::Trap, "integer divide by zero");
    check(
        "out-of-bounds",
        Category::Trap,
        "out of bounds memory access",
    );
    check("recursion", Category::Stack, "call stack");
    check("trap-in-post-return", Category::Trap, "while projecting");
    check("loop-in-post-return", Category::Fuel, "while projecting");
}

#[test]
fn memory_is_bounded_as_a_sum_and_the_text_says_how_much_was_asked_for() {
    check(
        "grow-memory",
        Category::Memory,
        "memory_max allows 67108864",
    );
    check(
        "many-memories",
        Category::Memory,
        "asked for 78708736 bytes",
    );
    check("large-table", Category::Memory, "300002 table elements");
    check("grow-table", Category::Memory, "table elements");
    check(
        "grow-in-describe",
        Category::Memory,
        "while describing itself",
    );
    let roomy = Limits {
        memory_max: 128 << 20,
        ..limits()
    };
    let output = project(&guest("many-memories"), events(1), &roomy).expect("fits");
    assert_eq!(output.memory_peak, (1 + 4 * 300) * (64 << 10));
}

/// Large memories are used again by other instances.
#[test]
fn an_instance_finds_nothing_of_another_and_reaches_no_page_of_it() {
    let (fills, reaches) = (guest("leftovers"), guest("behind-memory"));
    for _ in 0..20 {
        // Twice: the other one is too small for its pages to be kept.
        for _ in 0..2 {
            let output = project(&fills, events(1), &limits()).expect("its memory is empty");
            assert_eq!(output.memory_peak, 4 << 20);
        }
        let error = project(&reaches, events(1), &limits()).expect_err("there is nothing behind");
        assert_eq!(error.category, Category::Trap, "{error}");
        assert!(error.message.contains("out of bounds"), "{error}");
    }
}

#[test]
fn what_comes_back_is_bounded_and_checked() {
    check("huge-list", Category::Output, "");
    check("huge-text", Category::Output, "");
    check("bad-text", Category::Output, "malformed");
    check("bad-text-in-describe", Category::Output, "malformed");
    check("bad-text-in-log", Category::Output, "malformed");
    check("json-nested", Category::Output, "no valid list of writes");
    check("huge-lookup", Category::Output, "");
    check("bad-variant", Category::Output, "malformed");
    check("bad-pointer", Category::Output, "malformed");
    check("bad-realloc", Category::Output, "malformed");
    check(
        "wrong-event",
        Category::Output,
        "write 0 of the plugin names event 7 of a batch that has 3",
    );
}

#[test]
fn ten_million_writes_are_refused_before_they_take_memory() {
    let many = |count: i64, limits: &Limits| {
        let mut batch = events(1);
        batch[0].position.0 = count;
        project(&guest("many-writes"), batch, limits)
    };
    let limits = Limits {
        memory_max: 512 << 20,
        ..Limits::default()
    };
    let before = crate::flat::resident_peak_bytes();
    let error = many(10_000_000, &limits).expect_err("too much");
    assert_eq!(error.category, Category::Output, "{error}");
    assert!(
        error.message.contains("output_bytes_max (67108864)"),
        "{error}"
    );
    // The guest's own 320 MB, read by nobody, are the kernel's zero page; the host's copy would be 1.3 GB.
    let grown = crate::flat::resident_peak_bytes().saturating_sub(before);
    assert!(grown < 400 << 20, "{grown}");

    let error = many(100_001, &limits).expect_err("one too many");
    assert!(error.message.contains("100001 writes"), "{error}");
    assert_eq!(
        many(100_000, &limits).expect("just fits").writes.len(),
        100_000
    );
}

#[test]
fn what_the_guest_says_itself_is_passed_on() {
    for (name, category, class) in [
        ("fails-retry", Category::Retry, Class::Transient),
        ("fails-rejected", Category::Rejected, Class::Poison),
        ("fails-fatal", Category::Fatal, Class::Fatal),
    ] {
        let error = fails(name, &limits());
        assert_eq!((error.category, error.class()), (category, class));
        assert_eq!(
            (error.event, error.message.as_str()),
            (Some(2), "events (id)")
        );
    }
    let error = project(&guest("fails-rejected"), events(2), &limits()).expect_err("fails");
    assert_eq!(error.event, None, "event 2 of a batch of two");
    let error = fails("refuses-config", &limits());
    assert_eq!(error.category, Category::Fatal);
    assert!(
        error.message.contains("refuses its configuration"),
        "{error}"
    );
}

#[test]
fn lookups_in_a_loop_end_after_a_bounded_number() {
    struct Counting(Arc<AtomicUsize>);
    impl Lookups for Counting {
        fn get(&mut self, _: &Keys) -> Result<Answers, LookupFailure> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let lookups = Box::new(Counting(Arc::clone(&calls)));
    let error = project_with(&guest("lookups"), events(1), lookups, &limits()).expect_err("ends");
    assert_eq!(error.category, Category::LookupLimit, "{error}");
    assert_eq!(error.class(), Class::Poison);
    assert_eq!(calls.load(Ordering::Relaxed), limits().lookup_calls_max);
}

#[test]
fn a_database_that_cannot_answer_is_nobodys_fault() {
    struct Down;
    impl Lookups for Down {
        fn get(&mut self, _: &Keys) -> Result<Answers, LookupFailure> {
            Err(LookupFailure::Transient("the connection is gone".into()))
        }
    }
    let error = project_with(&guest("lookup-once"), events(1), Box::new(Down), &limits())
        .expect_err("ends");
    assert_eq!(
        (error.category, error.class()),
        (Category::Lookup, Class::Transient)
    );
    assert!(!error.is_counted());
    assert!(error.message.contains("the connection is gone"), "{error}");
}

#[test]
fn a_slow_database_does_not_use_up_the_guests_time() {
    struct Slow;
    impl Lookups for Slow {
        fn get(&mut self, keys: &Keys) -> Result<Answers, LookupFailure> {
            let table = keys.rows().iter().next().expect("a key").table();
            assert_eq!(keys.rows().name(table), "events");
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                std::thread::yield_now();
            }
            Ok(vec![None])
        }
    }
    let limits = Limits {
        call_timeout: Duration::from_millis(100),
        ..limits()
    };
    project_with(&guest("lookup-once"), events(1), Box::new(Slow), &limits)
        .expect("the guest itself ran for microseconds");
}

#[test]
fn a_log_flood_is_cut_and_counted_exactly() {
    let output = project(&guest("log-flood"), events(1), &limits()).expect("logging is no fault");
    assert_eq!(output.log_lines_dropped, 100_000 - 100);
}

#[test]
fn every_call_gets_a_fresh_instance() {
    let guest = guest("counts-calls");
    for _ in 0..3 {
        project(&guest, events(1), &limits()).expect("a second call in one instance would trap");
    }
}

#[test]
fn describe_has_the_same_bounds() {
    for (name, category) in [
        ("loop-in-describe", Category::Fuel),
        ("trap-in-describe", Category::Trap),
        ("loop-in-start", Category::Fuel),
        ("refuses-config", Category::Fatal),
    ] {
        let guest = guest(name);
        let error = on_thread(move || guest.describe("{}", &limits())).expect_err(name);
        assert_eq!(error.category, category, "{name}: {error}");
    }
    let guest = guest("base");
    let described = on_thread(move || guest.describe("{}", &limits())).expect("describes itself");
    assert_eq!(
        (described.name.as_str(), described.tables.len()),
        ("hostile", 1)
    );
}
