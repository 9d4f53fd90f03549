//! Rows and checkpoints in the read-model database.
