//! Probes. None of them runs SQL, so a slow database never gets a healthy host killed.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::standing::{Gate, Seat};
use crate::event_store::SourceState;
use crate::event_store::event::Position;
use crate::leadership::{Denied, Role};
use crate::projection::progress;
use crate::projection::roster::Known;
use crate::projection::verdict::{Stand, Verdict, lag as lag_of};

use super::View;

type Answer = (StatusCode, Json<Value>);

pub(super) async fn live(State(view): State<View>) -> Answer {
    answer(
        view.standing.is_alive(),
        json!({ "alive": view.standing.is_alive() }),
    )
}

pub(super) async fn ready(State(view): State<View>) -> Answer {
    let standing = &view.standing;
    let gate = standing.gate();
    let refused = standing.refused_plugins();
    let ready = gate == Gate::Open && refused.is_some();
    let mut detail = json!({
        "ready": ready,
        "role": standing.role().map_or("starting", |role| role.as_str()),
        "refused_plugins": refused.unwrap_or_default(),
    });
    if let Gate::Closed(why) = gate {
        detail["waiting_for"] = json!(why);
    }
    if let Some(why) = standing.idle() {
        detail["role"] = json!("idle");
        detail["leads_nothing"] = json!(why);
    }
    if let Some(Role::Follower(denied)) = standing.role() {
        detail["denied"] = told(denied);
    }
    for (projection, seat) in by_projection(&standing.seats()) {
        detail["leaderships"][projection] = match seat.role() {
            Role::Follower(denied) => json!({ "role": "follower", "denied": told(denied) }),
            role => json!({ "role": role.as_str() }),
        };
    }
    if let Some((feed, all)) = standing.leading() {
        let mark = feed.mark().borrow().clone();
        if let SourceState::Failing { error, .. } = &mark.source {
            detail["event_store"] = json!({ "failing": error });
        }
        detail["listener"] = json!(if mark.is_listening() {
            "listening"
        } else {
            "polling only"
        });
        let projections = all.iter().map(|known| {
            json!({
                "name": known.name,
                "state": known.progress.state(&mark).as_str(),
                "caught_up": Stand::of(known, known.progress.state(&mark)).verdict(mark.head) == Verdict::Done,
                "position": known.progress.position().0,
                "dead_letters": known.progress.letters().open,
                "parked_streams": known.progress.letters().parked_streams,
                "last_error": known.progress.last_error().map(|(at, error)| {
                    json!({ "message": error, "seconds_ago": at.elapsed().as_secs() })
                }),
            })
        });
        detail["projections"] = Value::Array(projections.collect());
        let runs = |known: &Known| known.progress.state(&mark) != progress::State::NoPlugin;
        if !all.iter().any(runs) {
            detail["leads_nothing"] = json!("no projection that it leads has a plugin to run");
        }
    }
    answer(ready, detail)
}

pub(super) async fn startup(State(view): State<View>) -> Answer {
    let done = view.standing.refused_plugins().is_some();
    answer(done, json!({ "plugins_compiled": done }))
}

/// With a leader for each projection: whether this replica leads any, and which.
pub(super) async fn leader(State(view): State<View>) -> Answer {
    let (leads, mut detail) = led(view.standing.role().as_ref());
    for (projection, seat) in by_projection(&view.standing.seats()) {
        detail["projections"][projection] = led(Some(&seat.role())).1;
    }
    answer(leads, detail)
}

/// Whether this replica leads one projection, alone or with all others.
pub(super) async fn leader_of(State(view): State<View>, Path(projection): Path<String>) -> Answer {
    let seats = view.standing.seats();
    let seat = seats.iter().find(|seat| match &seat.projection {
        Some(own) => *own == projection,
        None => view.standing.knows(&projection),
    });
    if seat.is_none() && view.standing.refused_plugins().is_some() && !seats.is_empty() {
        let error = format!("this replica has no projection {projection}");
        return (StatusCode::NOT_FOUND, Json(json!({ "error": error })));
    }
    let (leads, detail) = led(seat.map(Seat::role).as_ref());
    answer(leads, detail)
}

fn led(role: Option<&Role>) -> (bool, Value) {
    let leading = role.and_then(Role::leadership);
    let word = role.map_or("starting", Role::as_str);
    let term = leading.map(|leadership| leadership.term.0);
    (leading.is_some(), json!({ "role": word, "term": term }))
}

fn by_projection(seats: &[Seat]) -> impl Iterator<Item = (&str, &Seat)> {
    let named = seats.iter();
    named.filter_map(|seat| Some((seat.projection.as_deref()?, seat)))
}

fn told(denied: Denied) -> Value {
    json!({
        "reason": denied.reason,
        "since": denied.since.to_string(),
        "overdue": denied.overdue,
        "holder": denied.holder.map(|holder| holder.describe()),
    })
}

/// Bounds that a projection may be behind.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Bounds {
    events: Option<i64>,
    seconds: Option<f64>,
}

pub(super) async fn lag(State(view): State<View>, Query(bounds): Query<Bounds>) -> Answer {
    if bounds.seconds.is_some() {
        let error = "a bound in seconds is not available yet; ask for events";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error })));
    }
    let Some((feed, all)) = view.standing.leading() else {
        return answer(false, json!({ "leading": false }));
    };
    let mark = feed.mark().borrow().clone();
    if let SourceState::Failing { error, .. } = &mark.source {
        // How far behind it is cannot be known.
        return answer(
            false,
            json!({ "leading": true, "event_store": { "failing": error } }),
        );
    }
    let stands = all.iter().map(|known| {
        let stand = Stand::of(known, known.progress.state(&mark));
        (known.name.as_str(), stand)
    });
    let (fine, detail) = judge_lag(stands, mark.head, bounds.events);
    answer(fine, detail)
}

/// Whether nobody is farther behind than that. Who stands still is, wherever its checkpoint is; who is switched off
/// does not count.
fn judge_lag<'a>(
    stands: impl Iterator<Item = (&'a str, Stand)>,
    head: Position,
    events: Option<i64>,
) -> (bool, Value) {
    let mut fine = true;
    let mut lags = serde_json::Map::new();
    let (mut still, mut off) = (Vec::new(), Vec::new());
    for (name, stand) in stands {
        let bound = head.0.saturating_sub(events.unwrap_or(i64::MAX));
        match stand.verdict(Position(bound)) {
            Verdict::Off => {
                off.push(name);
                continue;
            }
            Verdict::Done => {}
            Verdict::Behind => fine &= events.is_none(),
            Verdict::StandsStill => {
                fine &= events.is_none();
                still.push(name);
            }
        }
        lags.insert(name.to_owned(), json!(lag_of(stand.position, head)));
    }
    let detail = json!({
        "leading": true, "lag_events": lags, "stands_still": still, "switched_off": off,
    });
    (fine, detail)
}

fn answer(fine: bool, detail: Value) -> Answer {
    (
        if fine {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        Json(detail),
    )
}

#[cfg(test)]
mod tests;
