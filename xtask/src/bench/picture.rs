//! The results as a picture: a bar for each contestant, on a logarithmic scale.

use std::fmt::Write as _;

use super::measure::Results;

const WIDTH: f64 = 860.0;
const LABELS: f64 = 250.0;
const BAR: f64 = 26.0;
const GAP: f64 = 14.0;
const TOP: f64 = 56.0;

/// A picture of the median rates; a thin line shows lowest and highest.
pub fn svg(results: &Results) -> String {
    let rates: Vec<_> = results
        .names()
        .into_iter()
        .filter_map(|name| Some((name, results.spread(name, |sample| sample.rate())?)))
        .collect();
    let highest = rates.iter().map(|(_, rate)| rate.max).fold(10.0, f64::max);
    let decades = highest.log10().ceil().max(1.0);
    let plot = WIDTH - LABELS - 90.0;
    let x = |rate: f64| LABELS + plot * (rate.max(1.0).log10() / decades);
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let height = TOP + rates.len() as f64 * (BAR + GAP) + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"16\" fill=\"#222\">Events a second, {} events in the store ({})</text>\n",
        results.events, results.postgres
    );
    let mut decade = 0.0;
    while decade <= decades {
        let at = x(10_f64.powf(decade));
        let _ = write!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{}\" x2=\"{at:.1}\" y2=\"{}\" stroke=\"#ddd\"/>\n\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#666\">{}</text>\n",
            TOP - 10.0,
            height - 24.0,
            height - 8.0,
            10_f64.powf(decade),
        );
        decade += 1.0;
    }
    let mut y = TOP;
    for (name, rate) in rates {
        let (left, right) = (x(1.0), x(rate.median));
        let fill = if name.starts_with("host") {
            "#2563a8"
        } else {
            "#9aa5b1"
        };
        let middle = y + BAR / 2.0;
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222\">{name}</text>\n\
             <rect x=\"{left:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{fill}\"/>\n\
             <line x1=\"{:.1}\" y1=\"{middle}\" x2=\"{:.1}\" y2=\"{middle}\" stroke=\"#222\"/>\n\
             <text x=\"{:.1}\" y=\"{}\" fill=\"#222\">{:.0}</text>\n",
            LABELS - 10.0,
            middle + 5.0,
            (right - left).max(1.0),
            x(rate.min),
            x(rate.max),
            x(rate.max) + 8.0,
            middle + 5.0,
            rate.median,
        );
        y += BAR + GAP;
    }
    out.push_str("</svg>\n");
    out
}
