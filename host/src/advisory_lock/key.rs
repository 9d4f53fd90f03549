//! Lock keys: both forms that PostgreSQL knows, and the derivation from names that never changes.
//!
//! Promises: the same name gives the same key in every release, language and process. The rule is public:
//! SHA-256 over `projector-lock-v1`, then the byte length of the namespace (u32 big-endian), the namespace,
//! the byte length of the name (u32 big-endian), the name; the first 8 bytes as a big-endian signed integer.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// First bytes of every derivation; a new rule would get a new one.
const DERIVATION: &[u8] = b"projector-lock-v1";

/// A key of an advisory lock. The two forms never meet: `(1 << 32) | 2` and `(1, 2)` are different locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// One 64-bit number.
    Single(i64),
    /// Two 32-bit numbers: a namespace, and a number in it.
    Pair(i32, i32),
}

/// How a key stands in `pg_locks`: the columns `classid`, `objid` and `objsubid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Upper half of a single key, or the namespace.
    pub classid: i64,
    /// Lower half of a single key, or the number in the namespace.
    pub objid: i64,
    /// 1 for a single key, 2 for a pair.
    pub objsubid: i16,
}

impl Key {
    /// The key of a name. An empty namespace is a namespace too.
    #[must_use]
    pub fn derive(namespace: &str, name: &str) -> Self {
        let digest = digest(namespace, name);
        let mut first = [0_u8; 8];
        first.copy_from_slice(&digest[..8]);
        Self::Single(i64::from_be_bytes(first))
    }

    /// The key of a slot of a name: the class is the first 4 bytes of the same digest.
    #[must_use]
    pub fn slot(namespace: &str, name: &str, slot: i32) -> Self {
        let digest = digest(namespace, name);
        let mut first = [0_u8; 4];
        first.copy_from_slice(&digest[..4]);
        Self::Pair(i32::from_be_bytes(first), slot)
    }

    /// A short fixed key: up to 8 printable ASCII characters, big-endian, padded on the left with zeros.
    #[must_use]
    pub fn from_ascii(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > 8 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let number = text
            .bytes()
            .fold(0_u64, |number, byte| (number << 8) | u64::from(byte));
        Some(Self::Single(number.cast_signed()))
    }

    /// How the key stands in `pg_locks`.
    #[must_use]
    pub const fn tag(self) -> Tag {
        match self {
            Self::Single(key) => Tag {
                classid: (key.cast_unsigned() >> 32).cast_signed(),
                objid: key & 0xFFFF_FFFF,
                objsubid: 1,
            },
            Self::Pair(a, b) => Tag {
                classid: (a.cast_unsigned() as u64).cast_signed(),
                objid: (b.cast_unsigned() as u64).cast_signed(),
                objsubid: 2,
            },
        }
    }

    /// The key behind a row of `pg_locks`, if the row is one of an advisory lock.
    #[must_use]
    pub fn from_tag(tag: Tag) -> Option<Self> {
        let classid = u32::try_from(tag.classid).ok()?;
        let objid = u32::try_from(tag.objid).ok()?;
        match tag.objsubid {
            1 => Some(Self::Single(
                ((u64::from(classid) << 32) | u64::from(objid)).cast_signed(),
            )),
            2 => Some(Self::Pair(classid.cast_signed(), objid.cast_signed())),
            _ => None,
        }
    }

    /// The key as arguments of `pg_try_advisory_lock` and its relatives. Numbers only, so safe in SQL.
    #[must_use]
    pub fn arguments(self) -> String {
        match self {
            Self::Single(key) => format!("'{key}'::bigint"),
            Self::Pair(a, b) => format!("'{a}'::integer, '{b}'::integer"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(key) => write!(f, "{key}"),
            Self::Pair(a, b) => write!(f, "({a}, {b})"),
        }
    }
}

fn digest(namespace: &str, name: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(DERIVATION);
    for part in [namespace, name] {
        // A name of 4 GiB does not exist; saturating keeps the function total.
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
