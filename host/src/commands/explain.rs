//! `explain`: the page of an error code.
//!
//! The build script lists `docs/errors`, so that a new page is in the binary by standing in the folder.

use super::output::Output;
use crate::config::value::closest;
use crate::error::{Exit, Failure};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A code such as PH0101; all are listed without one
    pub code: Option<String>,
}

/// `(code, page)` in order of the codes.
pub(crate) const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/error_pages.rs"));

/// Prints the page of a code, or the list of all.
///
/// # Errors
/// [`Exit::Usage`] for a code that does not exist.
pub fn run(args: &Args, out: &Output) -> Result<(), Failure> {
    let Some(wanted) = &args.code else {
        let rows = PAGES
            .iter()
            .map(|(code, page)| vec![(*code).to_owned(), title(page).to_owned()]);
        return out.table(&["code", "meaning"], rows);
    };
    let code = normal(wanted);
    match PAGES.iter().find(|(known, _)| *known == code) {
        Some((_, page)) => out.text(page),
        None => {
            let hint = match closest(&code, PAGES.iter().map(|(known, _)| *known)) {
                Some(known) => format!("did you mean {known}?"),
                None => "codes look like PH0101".to_owned(),
            };
            Err(Failure::new(
                Exit::Usage,
                format!(
                    "no error has the code {wanted:?}: {hint} `projector-host explain` lists all"
                ),
            ))
        }
    }
}

/// `ph101`, `101` and `error[PH0101]` all mean PH0101.
fn normal(text: &str) -> String {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match digits.len() {
        1..=4 => format!("PH{digits:0>4}"),
        _ => text.to_uppercase(),
    }
}

/// What stands in the heading after the code.
fn title(page: &str) -> &str {
    let heading = page.lines().next().unwrap_or_default();
    heading.split_once(": ").map_or(heading, |(_, title)| title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_heading_with_its_code_and_says_what_to_do() {
        assert!(!PAGES.is_empty());
        for (code, page) in PAGES {
            assert!(page.starts_with(&format!("# {code}: ")), "{code}: heading");
            assert!(page.contains("\n**What to do.**"), "{code}: what to do");
        }
    }

    #[test]
    fn every_fault_of_the_configuration_has_a_page() {
        for code in crate::config::fault::CODES {
            let code = code.to_string();
            assert!(PAGES.iter().any(|(known, _)| *known == code), "{code}");
        }
    }

    #[test]
    fn a_code_is_found_however_it_is_written() {
        for text in ["PH0101", "ph0101", "101", "0101", "error[PH0101]"] {
            assert_eq!(normal(text), "PH0101", "{text}");
        }
    }
}
