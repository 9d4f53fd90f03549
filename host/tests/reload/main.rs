//! Plugins that change while replicas run: saved in every way, broken, refused, accepted, gone, different from replica
//! to replica.

mod configuration;
#[expect(dead_code, reason = "fixtures of another test program")]
#[path = "../guest/fixture.rs"]
mod fixture;
mod flat;
mod odd;
mod policies;
mod rolling;
mod saves;
mod support;
