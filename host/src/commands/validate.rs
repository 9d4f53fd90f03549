//! `validate`: everything that can be known to be wrong before a replica starts.
//!
//! A list of checks, each of which adds findings. Promises: all checks run, whatever earlier ones found, as
//! long as they have what they need; nothing is changed anywhere: what has to be tried is rolled back.

use serde::Serialize;

mod databases;
mod plugins;
mod recorded;
mod rehearsed;

use super::output::{FormatArg, Output};
use crate::config::fault::Place;
use crate::config::{Config, Fault, Faults, Loaded, Severity};
use crate::error::{Code, Exit, Failure};

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Connect to nothing; secrets may be missing
    #[arg(long)]
    pub offline: bool,
    /// Treat warnings as faults
    #[arg(long)]
    pub deny_warnings: bool,
    /// The form of the answer.
    #[command(flatten)]
    pub output: FormatArg,
}

/// Something that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// How the process ends if this is the worst: [`Exit::Config`] or [`Exit::Unavailable`].
    pub exit: Exit,
    /// Its page.
    pub code: Option<Code>,
    /// Where: a stretch of a file, or the name of a thing such as `plugin order.wasm`.
    pub place: Place,
    /// What is wrong, a lower-case sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The JSON form of a finding.
#[derive(Debug, Serialize)]
struct Line<'a> {
    severity: &'static str,
    code: Option<String>,
    place: String,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
    hint: Option<&'a str>,
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        Self {
            severity: fault.severity,
            exit: Exit::Config,
            code: Some(fault.code),
            place: fault.place,
            message: fault.message,
            hint: fault.hint,
        }
    }
}

impl Finding {
    /// An error about a thing without lines.
    pub fn error(exit: Exit, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            exit,
            code: None,
            place: Place::Named(place.into()),
            message: message.into(),
            hint: None,
        }
    }

    /// A warning about a thing without lines.
    pub fn warning(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(Exit::Config, place, message)
        }
    }

    /// With a page.
    #[must_use]
    pub fn code(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn text(&self) -> String {
        let head = match self.code {
            Some(code) => format!("{}[{code}]", self.severity.as_str()),
            None => self.severity.as_str().to_owned(),
        };
        let fault = Fault {
            severity: self.severity,
            code: self.code.unwrap_or(Code(0)),
            place: self.place.clone(),
            message: self.message.clone(),
            hint: self.hint.clone(),
        };
        format!("{head}: {}", fault.body())
    }

    fn line(&self) -> Line<'_> {
        let at = match &self.place {
            Place::File(at) => Some(at),
            Place::Named(_) => None,
        };
        Line {
            severity: self.severity.as_str(),
            code: self.code.map(|code| code.to_string()),
            place: self.place.to_string(),
            file: at.map(|at| at.file.as_str()),
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            message: &self.message,
            hint: self.hint.as_deref(),
        }
    }
}

/// Runs every check and lists what they found.
///
/// # Errors
/// [`Exit::Config`] when something is invalid, else [`Exit::Unavailable`] when a database cannot be used.
pub async fn run(args: Args, loaded: Result<Loaded, Faults>, out: &Output) -> Result<(), Failure> {
    let mut findings = Vec::new();
    match loaded {
        Err(Faults(faults)) => findings.extend(faults.into_iter().map(Finding::from)),
        Ok(loaded) => {
            findings.extend(loaded.warnings.iter().cloned().map(Finding::from));
            check(&args, &loaded.config, &mut findings).await;
        }
    }
    report(&args, &findings, out)
}

async fn check(args: &Args, config: &Config, findings: &mut Vec<Finding>) {
    findings.extend(secrets(config, args.offline));
    let config_of_plugins = config.clone();
    let checked = tokio::task::spawn_blocking(move || plugins::check(&config_of_plugins)).await;
    let loaded = match checked {
        Ok((loaded, found)) => {
            findings.extend(found);
            loaded
        }
        Err(panic) => {
            let message = format!("the check failed: {panic}");
            findings.push(Finding::error(Exit::Bug, "plugins", message));
            None
        }
    };
    if !args.offline {
        findings.extend(databases::check(config).await);
        if let Some(loaded) = loaded {
            findings.extend(recorded::check(config, &loaded).await);
            findings.extend(rehearsed::check(config, &loaded).await);
        }
    }
}

/// Offline, a secret may be missing: the file is often checked where there are none.
fn secrets(config: &Config, offline: bool) -> impl Iterator<Item = Finding> {
    config.secret_faults().into_iter().map(move |mut fault| {
        if offline && fault.code == crate::config::fault::NO_SECRET {
            fault.severity = Severity::Warning;
        }
        Finding::from(fault)
    })
}

fn report(args: &Args, findings: &[Finding], out: &Output) -> Result<(), Failure> {
    let count = |severity| {
        let same = |finding: &&Finding| finding.severity == severity;
        findings.iter().filter(same).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let told = if args.output.is_json() {
        let lines: Vec<_> = findings.iter().map(Finding::line).collect();
        let valid = errors == 0 && !(args.deny_warnings && warnings > 0);
        out.json(&serde_json::json!({
            "valid": valid, "errors": errors, "warnings": warnings, "findings": lines,
        }))
    } else {
        let mut text: Vec<String> = findings.iter().map(Finding::text).collect();
        text.push(match (errors, warnings) {
            (0, 0) => "valid".to_owned(),
            (0, _) => format!("valid, with {}", counted(warnings, "warning")),
            (_, 0) => format!("invalid: {}", counted(errors, "fault")),
            _ => format!(
                "invalid: {}, {}",
                counted(errors, "fault"),
                counted(warnings, "warning")
            ),
        });
        out.text(&text.join("\n\n"))
    };
    match exit(args, findings) {
        Exit::Done => told,
        // Also when nobody reads why.
        exit => Err(Failure::new(exit, "")),
    }
}

/// What is invalid comes before what is unavailable: trying again would not help.
fn exit(args: &Args, findings: &[Finding]) -> Exit {
    let mut exit = Exit::Done;
    for finding in findings {
        match finding.severity {
            Severity::Warning if !args.deny_warnings => {}
            _ if exit == Exit::Config => {}
            _ => exit = finding.exit,
        }
    }
    exit
}

fn counted(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(deny_warnings: bool) -> Args {
        Args {
            offline: true,
            deny_warnings,
            output: FormatArg::default(),
        }
    }

    #[test]
    fn what_is_invalid_decides_the_exit_code_before_what_is_unavailable() {
        let invalid = || Finding::error(Exit::Config, "a", "b");
        let unavailable = || Finding::error(Exit::Unavailable, "a", "b");
        let warning = || Finding::warning("a", "b");
        let check = |findings: &[Finding], deny, expected| {
            assert_eq!(exit(&args(deny), findings), expected);
        };
        check(&[], true, Exit::Done);
        check(&[warning()], false, Exit::Done);
        check(&[warning()], true, Exit::Config);
        check(&[unavailable(), warning()], false, Exit::Unavailable);
        check(&[unavailable(), invalid()], false, Exit::Config);
        check(&[invalid(), unavailable()], false, Exit::Config);
    }
}
