//! Events that cannot pass: found, blamed alone, and kept for a person, while everything else goes on.

mod beside;
mod commands;
mod constraints;
mod crash;
mod model;
mod policies;
mod retries;
mod support;
