//! The times as a table, or as JSON.

use std::time::Duration;

use serde_json::json;

use super::{Case, Times};

/// How it is shown.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Form {
    /// For people
    Table,
    /// For programs
    Json,
}

/// All rounds of a case.
pub struct Row<'a> {
    case: &'a Case,
    free: Vec<Duration>,
    claimed: Vec<Duration>,
}

impl<'a> Row<'a> {
    pub fn new(case: &'a Case, times: Vec<Times>) -> Self {
        let sorted = |pick: fn(&Times) -> Duration| {
            let mut picked: Vec<Duration> = times.iter().map(pick).collect();
            picked.sort_unstable();
            picked
        };
        Self {
            case,
            free: sorted(|times| times.free),
            claimed: sorted(|times| times.claimed),
        }
    }

    pub const fn name(&self) -> &'static str {
        self.case.name
    }

    /// Every round is within the bound.
    pub fn holds(&self) -> bool {
        self.claimed.iter().all(|time| *time <= self.case.bound)
    }
}

impl Form {
    pub fn show(self, rows: &[Row<'_>]) -> String {
        match self {
            Self::Table => table(rows),
            Self::Json => json(rows),
        }
    }
}

fn table(rows: &[Row<'_>]) -> String {
    let mut lines = vec![format!(
        "{:<32} {:>6} {:>10}   {:<14} {:>8} {:>8} {:>8} {:>8}",
        "what happens to the leader",
        "rounds",
        "lock free",
        "next claim",
        "min",
        "median",
        "max",
        "bound"
    )];
    for row in rows {
        if row.claimed.is_empty() {
            lines.push(format!("{:<32} skipped", row.case.name));
            continue;
        }
        lines.push(format!(
            "{:<32} {:>6} {:>10}   {:<14} {:>8} {:>8} {:>8} {:>8}  {}",
            row.case.name,
            row.claimed.len(),
            text(middle(&row.free)),
            format!("from {}", row.case.from.as_str()),
            text(row.claimed.first().copied().unwrap_or_default()),
            text(middle(&row.claimed)),
            text(row.claimed.last().copied().unwrap_or_default()),
            text(row.case.bound),
            if row.holds() { "ok" } else { "OVER" },
        ));
    }
    lines.join("\n")
}

fn json(rows: &[Row<'_>]) -> String {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            json!({
                "fault": row.case.name,
                "lock_free_seconds": seconds(&row.free),
                "claim_counts_from": row.case.from.as_str(),
                "claimed_seconds": seconds(&row.claimed),
                "bound_seconds": row.case.bound.as_secs_f64(),
                "holds": row.holds(),
            })
        })
        .collect();
    serde_json::Value::Array(rows).to_string()
}

fn seconds(times: &[Duration]) -> Vec<f64> {
    times.iter().map(Duration::as_secs_f64).collect()
}

fn middle(times: &[Duration]) -> Duration {
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn text(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_over_the_bound_is_shown_and_counts() {
        let case = &super::super::case::ALL[0];
        let times = |millis: &[u64]| -> Vec<Times> {
            let time = |ms: &u64| Times {
                free: Duration::from_millis(7),
                claimed: Duration::from_millis(*ms),
            };
            millis.iter().map(time).collect()
        };
        let good = Row::new(case, times(&[30, 10, 20]));
        let bad = Row::new(case, times(&[10, 101]));
        assert!(good.holds() && !bad.holds());
        let shown = Form::Table.show(&[good, bad]);
        assert!(
            shown.contains("0.010 s  0.020 s  0.030 s  0.100 s  ok"),
            "{shown}"
        );
        assert!(shown.ends_with("OVER"), "{shown}");
        let json = Form::Json.show(&[Row::new(case, times(&[10]))]);
        assert!(json.contains(r#""claimed_seconds":[0.01]"#), "{json}");
    }
}
