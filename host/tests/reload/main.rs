//! Plugins that change while replicas run: saved in every way, broken, refused, accepted, gone, different from replica
//! to replica.

mod configuration;
mod configured;
mod flat;
mod odd;
mod policies;
mod rolling;
mod saves;
mod support;
