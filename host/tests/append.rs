//! The event store on a real PostgreSQL: its migrations, its functions, and the append command.

#[path = "append/command.rs"]
mod command;
#[path = "append/function.rs"]
mod function;
#[path = "append/migrations.rs"]
mod migrations;
#[path = "append/races.rs"]
mod races;
#[path = "append/support.rs"]
mod support;
#[path = "append/wake.rs"]
mod wake;
