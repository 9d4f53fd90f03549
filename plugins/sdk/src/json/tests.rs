//! Whatever is read here is what `serde_json` reads.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::object;
use crate::types::{Integer, Timestamp, Uuid};

crate::words! {
    enum Word {
        One = "one",
        Two = "two",
    }
}

#[derive(Debug, PartialEq, Deserialize)]
enum Kind {
    Plain,
    Holding(u8),
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(String);

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "compared by what it looks like")]
struct All {
    order: Option<Uuid>,
    at: Option<Timestamp>,
    cents: Option<Integer>,
    raw: Option<Box<RawValue>>,
    word: Option<Word>,
    kind: Option<Kind>,
    note: Option<String>,
    letter: Option<char>,
    small: Option<u8>,
    signed: Option<i64>,
    wide: Option<i128>,
    real: Option<f64>,
    flag: Option<bool>,
    nothing: Option<()>,
    pair: Option<(i32, Wrapped)>,
    list: Option<Vec<Option<u64>>>,
    names: Option<BTreeMap<String, i32>>,
    numbers: Option<BTreeMap<i32, String>>,
    inner: Option<Box<All>>,
}

fn check<T: DeserializeOwned + Debug>(text: &str) -> bool {
    let found = object::<T>(text);
    if let Some(found) = &found {
        let expected: T = serde_json::from_str(text)
            .unwrap_or_else(|error| panic!("{text} was read, but {error}"));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text}");
    }
    found.is_some()
}

const TEXTS: [&str; 6] = [
    r#"{"order": "0a1b2c3d-4e5f-6789-abcd-ef0123456789", "at": "2026-03-01T08:30:00.5Z", "cents": 1.5e3}"#,
    r#" { "raw" : {"a":[1, "x\"y"]} , "word":"two","kind": "Plain" ,"note":"\u00e9 \n","letter":"é" } "#,
    r#"{"small":255,"signed":-9223372036854775808,"wide":7,"real":-0,"flag":true,"nothing":null}"#,
    r#"{"pair":[1,"x"],"list":[1,null,18446744073709551615],"names":{"a":1},"numbers":{"1":"x"},"more":[[],{}]}"#,
    r#"{"inner":{"inner":{"note":null,"real":1.25,"list":[]},"small":0},"kind":{"Holding":3},"flag":false}"#,
    r#"{"note": "客户 😀, some text of a customer",
        "unknown": [1e5, -2.5E-3, "", {"x": {}}]}"#,
];

#[test]
fn usual_payloads_are_read_here() {
    for word in Word::ALL {
        let text = format!(r#"{{"word":"{}"}}"#, word.as_str());
        assert!(check::<All>(&text), "{text}");
    }
    for text in TEXTS {
        assert!(check::<Value>(text), "{text}");
    }
    for text in [TEXTS[0], TEXTS[1], TEXTS[5]] {
        assert!(check::<All>(text), "{text}");
    }
    assert!(
        !check::<All>(TEXTS[4]),
        "an enum that holds something is left to serde_json"
    );
}

#[test]
fn nothing_is_read_that_serde_json_refuses() {
    for text in [
        "",
        "{",
        "}",
        "[]",
        "null",
        "{}x",
        "{} {}",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":1-2}"#,
        r#"{"a":+1}"#,
        r#"{"a":nul}"#,
        r#"{"a":nulll}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[1}"#,
        r#"{"a":"x}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\t\"}",
        "{\"a\":\"\0\"}",
        r#"{'a':1}"#,
        r#"{"a":{"b":1]}"#,
        "{\"a\":1\u{a0}}",
        r#"{"a":1e999}"#,
        r#"{"a" "b"}"#,
        r#"{"a"::1}"#,
    ] {
        assert!(!check::<Value>(text), "{text}");
    }
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    assert!(!check::<Value>(&deep));
}

#[test]
fn payloads_with_bytes_changed_are_read_as_serde_json_reads_them() {
    let bytes = br#"{}[]":,\0159.-+eEntfu "#;
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut read = 0;
    for _ in 0..60_000 {
        let mut text = TEXTS[next(TEXTS.len())].as_bytes().to_vec();
        for _ in 0..=next(3) {
            let at = next(text.len());
            match next(3) {
                0 => text[at] = bytes[next(bytes.len())],
                1 => text.insert(at, bytes[next(bytes.len())]),
                _ => drop(text.remove(at)),
            }
        }
        let Ok(text) = String::from_utf8(text) else {
            continue;
        };
        read += usize::from(check::<Value>(&text)) + usize::from(check::<All>(&text));
    }
    assert!(read > 5_000, "{read}");
}
