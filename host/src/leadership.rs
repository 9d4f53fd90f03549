//! Who may project: the lock, the term and the lease.
