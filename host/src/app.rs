//! Builds every component, wires handles, runs, drains.
