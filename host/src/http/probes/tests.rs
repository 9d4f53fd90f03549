//! `/lagz` in every state.

use serde_json::json;

use super::{Position, Stand, judge_lag};
use crate::projection::progress::State;
use crate::projection::verdict::File;

#[test]
fn who_stands_still_is_behind_wherever_its_checkpoint_is() {
    for state in State::ALL {
        for position in [9, 10, 260] {
            let judged = |file, events| {
                let stand = Stand {
                    state: Some(state),
                    position: Position(position),
                    begun: true,
                    file,
                };
                judge_lag([("order", stand)].into_iter(), Position(10), events)
            };
            let (fine, detail) = judged(File::Good, Some(0));
            let still = matches!(state, State::Stopped | State::Paused);
            let runs = !still && state != State::NoPlugin;
            assert_eq!(fine, runs && position >= 10, "{state:?} at {position}");
            assert_eq!(detail["stands_still"] == json!(["order"]), still);
            assert_eq!(detail["lag_events"]["order"], (10 - position).max(0));
            let (fine, _) = judged(File::Good, Some(1));
            assert_eq!(fine, runs, "{state:?} at {position}, one event is allowed");
            assert!(judged(File::Good, None).0, "without a bound it only tells");
            let (fine, detail) = judged(File::None, Some(0));
            let off = state == State::NoPlugin;
            assert_eq!(detail["switched_off"] == json!(["order"]), off);
            assert!(fine || !off, "who is switched off does not count");
        }
    }
}
