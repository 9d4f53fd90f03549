//! The one way in which table, column and schema names reach SQL.

use std::fmt;

use thiserror::Error;

/// Longest name that PostgreSQL keeps whole, in bytes.
pub const IDENTIFIER_BYTES_MAX: usize = 63;

/// A name that was checked once and is always quoted in SQL.
///
/// Names are lower-case: a letter or underscore, then letters, digits and underscores, at most 63 bytes.
/// So they need no quoting by those who read the tables, and no quoting can be broken by them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier(String);

/// Why a text is no identifier.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum IdentifierError {
    /// Nothing there.
    #[error("a name is empty")]
    Empty,
    /// PostgreSQL would cut it.
    #[error("the name `{0}` is longer than {IDENTIFIER_BYTES_MAX} bytes")]
    TooLong(String),
    /// A character that is not allowed.
    #[error(
        "the name {0:?} has the character {1:?}; use lower-case letters, digits and underscores"
    )]
    Character(String, char),
    /// A reserved beginning.
    #[error("the name `{0}` begins with `pg_`, which PostgreSQL keeps for itself")]
    Reserved(String),
}

impl Identifier {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, too long, begins with `pg_`, or has a character beside `a-z 0-9 _` (or a digit first).
    pub fn new(name: impl Into<String>) -> Result<Self, IdentifierError> {
        let name = name.into();
        if name.is_empty() {
            return Err(IdentifierError::Empty);
        }
        if name.len() > IDENTIFIER_BYTES_MAX {
            return Err(IdentifierError::TooLong(name));
        }
        let bad = name.char_indices().find(|&(at, c)| {
            !(c.is_ascii_lowercase() || c == '_' || (at > 0 && c.is_ascii_digit()))
        });
        if let Some((_, c)) = bad {
            return Err(IdentifierError::Character(name, c));
        }
        if name.starts_with("pg_") {
            return Err(IdentifierError::Reserved(name));
        }
        Ok(Self(name))
    }

    /// The bare name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in double quotes, ready for SQL.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_no_quoting_pass_and_others_are_refused_with_the_reason() {
        for good in ["orders", "_x", "a1_b2", &"x".repeat(63)] {
            assert_eq!(
                Identifier::new(good).map(|name| name.quoted()),
                Ok(format!("\"{good}\""))
            );
        }
        assert_eq!(Identifier::new(""), Err(IdentifierError::Empty));
        assert_eq!(
            Identifier::new("Orders"),
            Err(IdentifierError::Character("Orders".into(), 'O'))
        );
        assert_eq!(
            Identifier::new("a\"b"),
            Err(IdentifierError::Character("a\"b".into(), '"'))
        );
        assert_eq!(
            Identifier::new("1a"),
            Err(IdentifierError::Character("1a".into(), '1'))
        );
        assert_eq!(
            Identifier::new("a.b"),
            Err(IdentifierError::Character("a.b".into(), '.'))
        );
        assert_eq!(
            Identifier::new("pg_x"),
            Err(IdentifierError::Reserved("pg_x".into()))
        );
        assert!(matches!(
            Identifier::new("x".repeat(64)),
            Err(IdentifierError::TooLong(_))
        ));
    }
}
