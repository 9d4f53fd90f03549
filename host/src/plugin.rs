//! Plugin files: folder, digest, encoding, compiled cache.
