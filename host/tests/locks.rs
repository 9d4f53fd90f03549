//! The advisory-lock toolkit on a real PostgreSQL: as a library and as commands.

#[path = "locks/command.rs"]
mod command;
#[path = "locks/cron.rs"]
mod cron;
#[path = "locks/inspect.rs"]
mod inspect;
#[path = "locks/leader.rs"]
mod leader;
#[path = "locks/library.rs"]
mod library;
#[path = "locks/run.rs"]
mod run;
#[path = "locks/support.rs"]
mod support;
#[path = "locks/traps.rs"]
mod traps;
