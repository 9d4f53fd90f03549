//! Probes. None of them runs SQL, so a slow database never gets a healthy host killed.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::standing::Gate;
use crate::event_store::SourceState;
use crate::leadership::Role;

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
    if let Some(Role::Follower(denied)) = standing.role() {
        detail["denied"] = json!({
            "reason": denied.reason,
            "since": denied.since.to_string(),
            "overdue": denied.overdue,
            "holder": denied.holder.map(|holder| holder.describe()),
        });
    }
    if let Some(leading) = standing.leading() {
        let mark = leading.feed.mark().borrow().clone();
        if let SourceState::Failing { error, .. } = &mark.source {
            detail["event_store"] = json!({ "failing": error });
        }
        detail["listener"] = json!(if mark.is_listening() {
            "listening"
        } else {
            "polling only"
        });
        let all = leading.roster.all();
        let projections = all.iter().map(|known| {
            json!({
                "name": known.name,
                "state": known.progress.state(&mark).as_str(),
                "position": known.progress.position().0,
                "last_error": known.progress.last_error().map(|(at, error)| {
                    json!({ "message": error, "seconds_ago": at.elapsed().as_secs() })
                }),
            })
        });
        detail["projections"] = Value::Array(projections.collect());
    }
    answer(ready, detail)
}

pub(super) async fn startup(State(view): State<View>) -> Answer {
    let done = view.standing.refused_plugins().is_some();
    answer(done, json!({ "plugins_compiled": done }))
}

pub(super) async fn leader(State(view): State<View>) -> Answer {
    let role = view.standing.role();
    let leading = role.as_ref().and_then(Role::leadership);
    let word = role.as_ref().map_or("starting", Role::as_str);
    answer(
        leading.is_some(),
        json!({ "role": word, "term": leading.map(|leadership| leadership.term.0) }),
    )
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
    let Some(leading) = view.standing.leading() else {
        return answer(false, json!({ "leading": false }));
    };
    let head = leading.feed.mark().borrow().head;
    let lags: Vec<(String, i64)> = leading
        .roster
        .all()
        .iter()
        .map(|known| {
            (
                known.name.clone(),
                (head.0 - known.progress.position().0).max(0),
            )
        })
        .collect();
    let fine = lags
        .iter()
        .all(|(_, lag)| bounds.events.is_none_or(|most| *lag <= most));
    let detail: serde_json::Map<String, Value> = lags
        .into_iter()
        .map(|(name, lag)| (name, json!(lag)))
        .collect();
    answer(fine, json!({ "leading": true, "lag_events": detail }))
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
