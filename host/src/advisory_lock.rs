//! The advisory-lock toolkit.
