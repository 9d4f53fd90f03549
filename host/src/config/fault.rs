//! What is wrong with a configuration, where it stands, and what to do about it.
//!
//! Promises: every fault names its place and has a page under `docs/errors`; no rendering shows a secret.
//! Must never: stop at the first fault, since the list is made by the reader of the file.

use std::fmt;
use std::ops::Range;

use crate::error::{Code, Exit, Failure};

/// The file cannot be read: missing, a folder, not permitted, not UTF-8.
pub const UNREADABLE: Code = Code(101);
/// The file is not TOML.
pub const SYNTAX: Code = Code(102);
/// A key that does not exist.
pub const UNKNOWN_KEY: Code = Code(103);
/// A value of the wrong type or form.
pub const MALFORMED: Code = Code(104);
/// A value outside its bounds.
pub const OUT_OF_RANGE: Code = Code(105);
/// Values that do not fit each other.
pub const INCONSISTENT: Code = Code(106);
/// Something that the contract promises and this version does not do yet.
pub const NOT_YET: Code = Code(107);
/// A name that is not allowed.
pub const BAD_NAME: Code = Code(108);
/// The same thing is said twice.
pub const DUPLICATE: Code = Code(109);
/// A database URL or another secret is not there.
pub const NO_SECRET: Code = Code(110);

/// A parameter of a database URL that is not known, or cannot be kept.
pub const PARAMETER: Code = Code(111);

/// Every code of this module; each has a page.
pub const CODES: [Code; 11] = [
    UNREADABLE,
    SYNTAX,
    UNKNOWN_KEY,
    MALFORMED,
    OUT_OF_RANGE,
    INCONSISTENT,
    NOT_YET,
    BAD_NAME,
    DUPLICATE,
    NO_SECRET,
    PARAMETER,
];

/// How much a fault matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The host would not do what the file says, or not start.
    Error,
    /// It works, and is probably not what was meant.
    Warning,
}

impl Severity {
    /// The word in messages and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Where a fault stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A stretch of the file.
    File(Box<Excerpt>),
    /// Something without lines: a file as a whole, an environment variable, a flag.
    Named(String),
}

/// A stretch of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The path as the user wrote it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The line itself, secrets masked.
    pub text: String,
    /// How many characters are underlined.
    pub width: usize,
}

impl Excerpt {
    /// The place of a byte range of a text; a range over several lines ends with its first line.
    #[must_use]
    pub fn of(file: &str, text: &str, span: &Range<usize>) -> Self {
        let start = floor(text, span.start);
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let stop = floor(text, span.end).clamp(start, end);
        Self {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[begin..start].chars().count() + 1,
            text: masked(&text[begin..end].replace(['\t', '\r'], " ")),
            width: text[start..stop].chars().count().max(1),
        }
    }

    /// Shows only what stands before the end of the underlined part, since the rest may be a secret.
    #[must_use]
    pub fn cut(mut self) -> Self {
        let shown = self.column - 1 + self.width;
        if self.text.chars().count() > shown {
            self.text = self.text.chars().take(shown).collect::<String>() + " …";
        }
        self
    }
}

impl Place {
    /// The place of a byte range of a file's text.
    #[must_use]
    pub fn at(file: &str, text: &str, span: &Range<usize>) -> Self {
        Self::File(Box::new(Excerpt::of(file, text, span)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(at) => write!(f, "{}:{}:{}", at.file, at.line, at.column),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// How much it matters.
    pub severity: Severity,
    /// Its page.
    pub code: Code,
    /// Where.
    pub place: Place,
    /// What is wrong, a lower-case sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Fault {
    /// An error.
    #[must_use]
    pub fn new(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            place,
            message: message.into(),
            hint: None,
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Message, place, underlined line and hint: everything after `error[PH0103]: `.
    #[must_use]
    pub fn body(&self) -> String {
        let mut out = self.message.clone();
        let pad = match &self.place {
            Place::Named(name) => {
                out.push_str(&format!("\n --> {name}"));
                String::from(" ")
            }
            Place::File(at) => {
                let number = at.line.to_string();
                let pad = " ".repeat(number.len());
                out.push_str(&format!("\n{pad}--> {}", self.place));
                out.push_str(&format!("\n{pad} |\n{number} | {}", at.text));
                out.push_str(&format!(
                    "\n{pad} | {}{}",
                    " ".repeat(at.column - 1),
                    "^".repeat(at.width)
                ));
                pad
            }
        };
        if let Some(hint) = &self.hint {
            out.push_str(&format!("\n{pad} = help: {hint}"));
        }
        out
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}[{}]: {}",
            self.severity.as_str(),
            self.code,
            self.body()
        )
    }
}

/// All faults of a configuration; never empty when it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Self {
        let errors: Vec<&Fault> = faults
            .0
            .iter()
            .filter(|fault| fault.severity == Severity::Error)
            .collect();
        let Some(first) = errors.first() else {
            return Self::new(Exit::Config, "the configuration is invalid");
        };
        let mut message = first.body();
        for fault in &errors[1..] {
            message.push_str(&format!("\n\n{fault}"));
        }
        if errors.len() > 1 {
            message.push_str(&format!(
                "\n\nerror: the configuration has {} faults",
                errors.len()
            ));
        }
        Self::coded(Exit::Config, first.code, message)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Faults(vec![fault]).into()
    }
}

/// Replaces what stands between `://` and `@` by as many asterisks.
pub(super) fn masked(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c.is_whitespace() || c == '"' || c == '\'')
            .unwrap_or(after.len());
        let secret = after[..end].rfind('@').unwrap_or(0);
        out.push_str(&"*".repeat(after[..secret].chars().count()));
        rest = &after[secret..];
    }
    out.push_str(rest);
    out
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_shows_file_line_column_the_underlined_text_and_the_hint() {
        let text = "[host]\n\n  nöde = 1\n";
        let start = text.find("nöde").expect("it is there");
        let place = Place::at("a.toml", text, &(start..start + 5));
        let fault = Fault::new(UNKNOWN_KEY, place, "unknown key").hint("did you mean `node`?");
        assert_eq!(
            fault.to_string(),
            "error[PH0103]: unknown key\n --> a.toml:3:3\n  |\n3 |   nöde = 1\n  |   ^^^^\n  = help: did you mean `node`?"
        );
    }

    #[test]
    fn a_span_over_several_lines_or_past_the_end_stays_inside_its_first_line() {
        let at = Excerpt::of("a", "x = [\n1,\n2]", &(4..12));
        assert_eq!((at.line, at.column, at.width), (1, 5, 1));
        let at = Excerpt::of("a", "x =", &(9..12));
        assert_eq!((at.line, at.column, at.width), (1, 4, 1));
    }

    #[test]
    fn the_user_part_of_a_url_is_never_shown() {
        assert_eq!(
            masked(r#"a = "postgres://me:p@ss@host/db" # x"#),
            r#"a = "postgres://*******@host/db" # x"#
        );
        assert_eq!(
            masked("see https://host/x and b://u@h"),
            "see https://host/x and b://*@h"
        );
    }
}
