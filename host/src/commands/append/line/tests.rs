//! Lines, good and bad.

use super::check;

#[test]
fn good_lines_pass() {
    for good in [
        r#"{"stream":"a","type":"T","data":{}}"#,
        r#"{"data":null,"type":"T","stream":"a"}"#,
        r#"{"stream":"a","type":"T","data":{"n":123456789012345678901234567890.10},"metadata":null,"id":null,"expected_version":null,"schema_version":null}"#,
        r#"{"stream":"é","type":"T","data":[1],"metadata":{"a":1},"id":"9AD91B6C-34b0-4fc3-8bbb-0d6d1d32e000","expected_version":0,"schema_version":2}"#,
        r#"{"\u0073tream":"a","type":"T","data":{"\\u0000":"\ud83d\ude00"}}"#,
    ] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
}

#[test]
fn bad_lines_are_told_with_the_field() {
    let long = format!(r#"{{"stream":"{}","type":"T","data":1}}"#, "x".repeat(1025));
    for (bad, expected) in [
        (
            "{",
            "is no valid JSON: EOF while parsing an object at column 1",
        ),
        ("[]", "is no JSON object"),
        ("nope", "is no valid JSON: expected ident at column 2"),
        (
            r#"{"stream":"a"} x"#,
            "is no valid JSON: trailing characters at column 16",
        ),
        (r#"{"type":"T","data":1}"#, r#""stream" is missing"#),
        (r#"{"stream":"a","data":1}"#, r#""type" is missing"#),
        (r#"{"stream":"a","type":"T"}"#, r#""data" is missing"#),
        (
            r#"{"stream":"","type":"T","data":1}"#,
            r#""stream" is empty"#,
        ),
        (long.as_str(), r#""stream" is longer than 1024 bytes"#),
        (
            r#"{"stream":7,"type":"T","data":1}"#,
            r#""stream" is a number, not a text"#,
        ),
        (
            r#"{"stream":"a","type":null,"data":1}"#,
            r#""type" is null, not a text"#,
        ),
        (
            r#"{"stream":"a","stream":"b"}"#,
            r#"has the key "stream" twice"#,
        ),
        (
            r#"{"stream":"a","typ":"T"}"#,
            r#"has the unknown key "typ"; did you mean "type"?"#,
        ),
        (
            r#"{"payload":1}"#,
            r#"has the unknown key "payload"; the keys are stream, type, data, metadata, id, expected_version, schema_version"#,
        ),
        (
            r#"{"id":"abc"}"#,
            r#""id" is "abc", no UUID such as "9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e000""#,
        ),
        (r#"{"id":5}"#, r#""id" is a number, not a UUID"#),
        (
            r#"{"metadata":[]}"#,
            r#""metadata" is an array, not an object"#,
        ),
        (
            r#"{"expected_version":-1}"#,
            r#""expected_version" is -1, not a whole number from 0 to 9223372036854775807"#,
        ),
        (
            r#"{"expected_version":"1"}"#,
            r#""expected_version" is "1", not a whole number from 0 to 9223372036854775807"#,
        ),
        (
            r#"{"schema_version":0}"#,
            r#""schema_version" is 0, not a whole number from 1 to 2147483647"#,
        ),
        (
            r#"{"schema_version":1.5}"#,
            r#""schema_version" is 1.5, not a whole number from 1 to 2147483647"#,
        ),
        (
            r#"{"data":{"a":["\u0000"]}}"#,
            r#""data" has the character U+0000 in a text, which PostgreSQL cannot hold"#,
        ),
        (
            r#"{"metadata":{"\u0000":1}}"#,
            r#""metadata" has the character U+0000 in a text, which PostgreSQL cannot hold"#,
        ),
        (
            r#"{"type":"\u0000"}"#,
            r#""type" has the character U+0000 in a text, which PostgreSQL cannot hold"#,
        ),
        (
            r#"{"stream":"\ud800"}"#,
            r#""stream" has half of a surrogate pair (\uD800 to \uDFFF) in a text"#,
        ),
        (
            r#"{"data":1e200000}"#,
            r#""data" has the number 1e200000, which PostgreSQL cannot hold"#,
        ),
    ] {
        assert_eq!(check(bad), Err(expected.to_owned()), "{bad}");
    }
}
