//! Steps with their times, told to people as they happen, and a summary at the end.

use std::time::{Duration, Instant};

use anyhow::Result;

/// What has been done so far.
pub struct Steps {
    begin: Instant,
    done: Vec<Step>,
}

struct Step {
    name: String,
    took: Duration,
    failure: Option<String>,
}

impl Steps {
    /// Starts the clock.
    pub fn begin() -> Self {
        Self {
            begin: Instant::now(),
            done: Vec::new(),
        }
    }

    /// Does one step; a failure is noted and given back.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("==> {name}");
        let begin = Instant::now();
        let result = work();
        let took = begin.elapsed();
        let failure = result.as_ref().err().map(|error| format!("{error:#}"));
        match &failure {
            None => eprintln!("    {name}: {}", seconds(took)),
            Some(failure) => eprintln!("    {name}: FAILED after {}: {failure}", seconds(took)),
        }
        self.done.push(Step {
            name: name.into(),
            took,
            failure,
        });
        result.map_err(|error| error.context(format!("step `{name}` failed")))
    }

    /// Since the first step.
    pub fn elapsed(&self) -> String {
        seconds(self.begin.elapsed())
    }

    /// How many steps failed.
    pub fn failures(&self) -> usize {
        self.done
            .iter()
            .filter(|step| step.failure.is_some())
            .count()
    }

    /// All steps, one a line, and the total.
    pub fn summary(&self) -> String {
        let width = self
            .done
            .iter()
            .map(|step| step.name.len())
            .max()
            .unwrap_or(0)
            .max("total".len());
        let mut text = String::new();
        for step in &self.done {
            let word = if step.failure.is_none() {
                "ok"
            } else {
                "FAILED"
            };
            text.push_str(&format!(
                "{:width$}  {:>9}  {word}\n",
                step.name,
                seconds(step.took)
            ));
        }
        text.push_str(&format!("{:width$}  {:>9}", "total", self.elapsed()));
        for step in &self.done {
            if let Some(failure) = &step.failure {
                text.push_str(&format!("\n{}: {failure}", step.name));
            }
        }
        text
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_every_step_and_repeats_the_failures() {
        let mut steps = Steps::begin();
        assert_eq!(steps.run("good", || Ok(7)).expect("it succeeds"), 7);
        let error = steps
            .run::<()>("bad", || Err(anyhow::anyhow!("why")))
            .expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `bad` failed: why");
        assert_eq!(steps.failures(), 1);
        let summary = steps.summary();
        assert!(
            summary.contains("good") && summary.contains("FAILED") && summary.ends_with("bad: why"),
            "{summary}"
        );
    }
}
