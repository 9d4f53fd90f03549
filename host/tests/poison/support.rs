//! Sites with a policy, bad events, and a guest that does what an event's type says.

use projector_testkit::guests;
use projector_testkit::site::{Databases, Programs, QUICK, Replica, Site};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The projection of the guest that goes by types.
pub const BY_TYPE: &str = "by-type";

const MERCHANT: &str = "dddddddd-0000-4000-8000-00000000000a";

/// A site with the shipped plugins and this text in its configuration.
pub fn site(databases: Databases, config: &str) -> Site {
    configured(Site::shared(programs(), databases, QUICK), config)
}

/// The same with the guest that goes by types, as the projection [`BY_TYPE`].
pub fn site_by_type(config: &str) -> (Site, TempDir) {
    let mut programs = programs();
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["order", "scheduling", "service-request"] {
        let file = format!("{name}.wasm");
        std::fs::copy(programs.plugins.join(&file), folder.path().join(&file)).expect("a copy");
    }
    let text = guests::text("by-type");
    let text = guests::renamed(&text, BY_TYPE, "events", false);
    std::fs::write(folder.path().join("by-type.wasm"), guests::from_text(&text)).expect("room");
    programs.plugins = folder.path().to_owned();
    let site = Site::shared(programs, Databases::One, QUICK);
    (configured(site, config), folder)
}

fn configured(site: Site, config: &str) -> Site {
    site.configure(|text| format!("{text}\n{config}\n"));
    site
}

fn programs() -> Programs {
    Programs::built(
        env!("CARGO_BIN_EXE_projector-host"),
        env!("CARGO_TARGET_TMPDIR"),
    )
}

/// An order is created; a status that the plugin does not know makes it bad.
pub fn order(number: usize, status: &str) -> String {
    let uuid = format!("eeeeeeee-0000-4000-8000-{number:012}");
    line(
        &format!("order-{uuid}"),
        "OrderCreated",
        &json!({
            "merchant_id": MERCHANT, "order_uuid": uuid, "status": status, "settlement_status": "unsettled",
            "amount_cents": 100, "inserted_at": "2026-03-01T08:30:00Z", "updated_at": "2026-03-01T08:30:00Z",
        }),
    )
}

/// Many of them, of which those at the places are bad.
pub fn orders(count: usize, bad: impl Fn(usize) -> bool) -> String {
    let status = |at| if bad(at) { "vanished" } else { "pending" };
    (0..count).map(|at| order(at, status(at))).collect()
}

/// Any event.
pub fn line(stream: &str, event_type: &str, data: &Value) -> String {
    format!(
        "{}\n",
        json!({ "stream": stream, "type": event_type, "data": data })
    )
}

/// Events for [`BY_TYPE`].
pub fn typed(stream: &str, types: &[&str]) -> String {
    types
        .iter()
        .map(|event_type| line(stream, event_type, &json!({})))
        .collect()
}

/// Calls of a projection's plugin since the replica began.
pub fn calls(replica: &Replica<'_>, projection: &str) -> u64 {
    let (_, page) = replica.get("/metrics").expect("it answers");
    let own = format!("projector_guest_calls_total{{projection=\"{projection}\"");
    let lines = page.lines().filter(|line| line.starts_with(&own));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// The open dead letters of a projection, as the command tells them.
pub fn letters(site: &Site, projection: &str) -> Vec<Value> {
    let answer = site.runs(&[
        "dead-letter",
        "list",
        projection,
        "--limit",
        "0",
        "-o",
        "json",
    ]);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["dead_letters"].as_array().expect("a list").clone()
}

/// Numbers of one field.
pub fn numbers(letters: &[Value], field: &str) -> Vec<i64> {
    letters
        .iter()
        .map(|letter| letter[field].as_i64().expect("a number"))
        .collect()
}

/// Waits until a projection has reached the head.
pub fn caught_up(site: &Site, projection: &str) {
    site.runs(&["wait", projection, "--until-caught-up", "--timeout", "60s"]);
}
