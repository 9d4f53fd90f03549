//! Text of others (events, plugins, sessions, servers) as it may stand on somebody's terminal.
//!
//! Promises: it forges no line, colours nothing, moves no cursor, and turns no text around.

/// One line: whatever steers a terminal is written out.
#[must_use]
pub fn line(text: &str) -> String {
    escaped(text, steers)
}

/// Several lines stay several, each after the first set in by this many columns, so that none looks like ours.
#[must_use]
pub fn block(text: &str, columns: usize) -> String {
    let indent = format!("\n{:columns$}", "");
    escaped(text.trim_end_matches('\n'), |c| c != '\n' && steers(c)).replace('\n', &indent)
}

/// Lines of our own with text of others in them: they stay lines.
#[must_use]
pub fn lines(text: &str) -> String {
    escaped(text, |c| c != '\n' && steers(c))
}

/// Control characters, and those that change the direction or the end of a line.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_and_other_text_stays_as_it_is() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected);
        check("order-42 \"ä€😀\" \\n", "order-42 \"ä€😀\" \\n");
        check("a\u{1b}[31mb\nc\td\r", r"a\u{1b}[31mb\nc\td\r");
        check("\u{9b}2J\u{7f}\u{202e}x", r"\u{9b}2J\u{7f}\u{202e}x");
        assert_eq!(block("a\nb\u{7}\n", 4), "a\n    b\\u{7}");
        assert_eq!(lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }
}
