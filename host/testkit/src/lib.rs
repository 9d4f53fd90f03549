//! Private PostgreSQL servers for tests and the demo.
