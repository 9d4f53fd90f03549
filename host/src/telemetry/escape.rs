//! Text that somebody else wrote, made harmless for a log and a terminal.
//!
//! Names of files and functions, what plugins log and why they fail, values of events: none of it may begin a line of
//! its own, move the cursor, colour, or turn around what stands beside it.

use std::borrow::Cow;

/// The text with every such character written as its escape, as in `\n` and `\u{1b}`.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match steers(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character does something else than stand in its place: control characters, line ends of other scripts,
/// and marks of direction.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str) {
        assert_eq!(escaped(text), shown);
    }

    #[test]
    fn nothing_begins_a_line_or_steers_a_terminal() {
        check("plain Ünïcode 中文", "plain Ünïcode 中文");
        check("a\nb\r\tc", "a\\nb\\r\\tc");
        check(
            "\u{1b}[31mred\0\u{7f}\u{9b}",
            "\\u{1b}[31mred\\u{0}\\u{7f}\\u{9b}",
        );
        check("a\u{202e}b\u{2028}c", "a\\u{202e}b\\u{2028}c");
    }
}
