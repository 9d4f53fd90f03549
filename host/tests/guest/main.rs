//! Guests that misbehave, real guests, and plugin files of every kind, against the engine itself.
#![allow(
    clippy::expect_used,
    reason = "a test that cannot go on says why and ends"
)]

mod fixture;

mod apart;
mod contained;
mod files;
mod flat;
mod folder;
mod hostile;
mod json_world;
mod lifting;
mod ready;
mod shipped;
mod wasi;
