//! The configuration file: load, layers, validation, schema.
