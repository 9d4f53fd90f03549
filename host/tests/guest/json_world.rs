//! The same contract as JSON text.

use projector_host::guest::{Category, Limits};

use crate::fixture::{events, guest, project};

#[test]
fn a_guest_of_the_json_world_means_the_same() {
    let typed = project(&guest("base"), events(2), &Limits::default()).expect("gets through");
    let json = project(&guest("json"), events(2), &Limits::default()).expect("gets through");
    assert!(guest("json").is_json() && !guest("base").is_json());
    assert_eq!(format!("{:?}", typed.writes), format!("{:?}", json.writes));
}

#[test]
fn a_malformed_text_says_where() {
    let error = project(&guest("json-malformed"), events(2), &Limits::default()).expect_err("malformed");
    assert_eq!(error.category, Category::Output);
    assert!(error.message.contains("no valid list of writes"), "{error}");
    assert!(error.message.contains("line 1 column"), "{error}");
}
