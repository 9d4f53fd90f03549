//! The real program with the real plugins on real databases: what replicas promise together, fault by fault.

mod admission;
mod commands;
mod deaths;
mod endings;
mod folding;
mod gates;
mod history;
mod poison;
mod restarts;
mod rolling;
mod sessions;
mod settings;
mod standby;
mod support;
mod takeover;
mod writers;
