//! Figures and their spread.

/// One run of one contestant.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Which contestant.
    pub name: &'static str,
    /// Events of its kind that it worked through.
    pub events: usize,
    /// How long that took.
    pub seconds: f64,
    /// Processor time of its own process, if it has one.
    pub cpu_seconds: Option<f64>,
    /// Processor time of all processes of the server.
    pub server_cpu_seconds: f64,
    /// Most memory of its own process, if it has one.
    pub memory_peak: Option<u64>,
}

/// All rounds.
#[derive(Debug, Clone)]
pub struct Results {
    /// What it ran on.
    pub machine: String,
    /// Which PostgreSQL.
    pub postgres: String,
    /// Events in the store.
    pub events: usize,
    /// Start and end of a host that has one event to do; taken off its times, as of every contestant that was run idle.
    pub idle_seconds: f64,
    /// The contestants of each round, in one order.
    pub rounds: Vec<Vec<Sample>>,
}

/// Lowest, middle and highest of some figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub min: f64,
    /// The middle one, or between the two in the middle.
    pub median: f64,
    /// The highest.
    pub max: f64,
}

impl Sample {
    /// Processor time of its own process for each event, in microseconds.
    pub fn own_micros(&self) -> Option<f64> {
        Some(self.cpu_seconds? * 1e6 / self.count())
    }

    /// Processor time of the server for each event, in microseconds.
    pub fn server_micros(&self) -> f64 {
        self.server_cpu_seconds * 1e6 / self.count()
    }

    /// Events a second.
    pub fn rate(&self) -> f64 {
        self.count() / self.seconds.max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn count(&self) -> f64 {
        self.events.max(1) as f64
    }
}

impl Results {
    /// The contestants, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let first = self.rounds.first().into_iter().flatten();
        first.map(|sample| sample.name).collect()
    }

    /// The runs of one contestant.
    pub fn of(&self, name: &str) -> impl Iterator<Item = &Sample> {
        let all = self.rounds.iter().flatten();
        all.filter(move |sample| sample.name == name)
    }

    /// Spread of a figure over the rounds.
    pub fn spread(&self, name: &str, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.of(name).map(figure).collect())
    }

    /// How much faster one is than another, in the same rounds.
    pub fn ratio(&self, name: &str, than: &str) -> Option<Spread> {
        let pairs = self.of(name).zip(self.of(than));
        Spread::of(pairs.map(|(a, b)| a.rate() / b.rate()).collect())
    }

    /// How much more processor time one needs than another for an event, its own and the server's, in the same rounds.
    pub fn processor_ratio(&self, name: &str, than: &str) -> Option<Spread> {
        let total = |sample: &Sample| sample.own_micros().unwrap_or(0.0) + sample.server_micros();
        let pairs = self.of(name).zip(self.of(than));
        // Below the kernel's hundredth of a second there is nothing to compare.
        Spread::of(pairs.map(|(a, b)| total(a) / total(b).max(0.01)).collect())
    }

    /// The most memory that one held in any round.
    pub fn memory_peak(&self, name: &str) -> Option<u64> {
        self.of(name).filter_map(|sample| sample.memory_peak).max()
    }
}

impl Spread {
    /// None of no figures.
    pub fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        Some(Self {
            min: *figures.first()?,
            median: (figures.get((figures.len() - 1) / 2)? + figures.get(figures.len() / 2)?) / 2.0,
            max: *figures.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let sample = |name, seconds| Sample {
            name,
            events: 100,
            seconds,
            cpu_seconds: None,
            server_cpu_seconds: 0.0,
            memory_peak: None,
        };
        let results = Results {
            machine: String::new(),
            postgres: String::new(),
            events: 100,
            idle_seconds: 0.0,
            // The machine was half as fast in the second round.
            rounds: vec![
                vec![sample("a", 1.0), sample("b", 3.0)],
                vec![sample("a", 2.0), sample("b", 6.0)],
            ],
        };
        let spread = results.ratio("a", "b").expect("two rounds");
        assert!(
            (spread.min - 3.0).abs() < 1e-9 && (spread.max - 3.0).abs() < 1e-9,
            "{spread:?}"
        );
        assert_eq!(results.ratio("a", "nobody"), None);
        assert_eq!(results.names(), ["a", "b"]);
    }

    #[test]
    fn the_middle_of_three_is_the_second() {
        assert_eq!(Spread::of(vec![1.0, 3.0]).map(|two| two.median), Some(2.0));
        assert_eq!(Spread::of(Vec::new()), None);
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).expect("three figures");
        assert_eq!(
            spread,
            Spread {
                min: 1.0,
                median: 2.0,
                max: 3.0
            }
        );
    }
}
