//! Values and their columns, as tables of cases.

use super::*;

fn check(value: Value, column_type: ColumnType, expected: Result<Value, &str>) {
    let found =
        Datum::from_value(ValueRef::from(&value), column_type, 7).map(|datum| datum.to_value());
    match (&found, &expected) {
        (Ok(found), Ok(expected)) => {
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "{value:?} in {column_type:?}"
            );
        }
        (Err(found), Err(expected)) => {
            assert!(found.contains(*expected), "{found} should say {expected}")
        }
        _ => panic!("{value:?} in {column_type:?}: found {found:?}, expected {expected:?}"),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn texts_become_the_canonical_form_of_their_column() {
    use ColumnType as T;
    check(text("1.99e4"), T::BigInt, Ok(Value::Int(19_900)));
    check(text("19900.0"), T::BigInt, Ok(Value::Int(19_900)));
    check(
        text("9223372036854775807"),
        T::BigInt,
        Ok(Value::Int(i64::MAX)),
    );
    check(
        text("9223372036854775808"),
        T::BigInt,
        Err("does not fit a bigint"),
    );
    check(text("1.5"), T::BigInt, Err("does not fit a bigint"));
    check(text("twelve"), T::BigInt, Err("\"twelve\" is not a bigint"));
    check(
        text("2024-01-02T03:04:05.123456789Z"),
        T::Timestamptz,
        Ok(text("2024-01-02T03:04:05.123456Z")),
    );
    check(
        text("2024-01-02T03:04:05.000Z"),
        T::Timestamptz,
        Ok(text("2024-01-02T03:04:05Z")),
    );
    check(
        text("1969-12-31T23:59:59.1234567Z"),
        T::Timestamptz,
        Ok(text("1969-12-31T23:59:59.123456Z")),
    );
    check(
        text("2024-01-02T05:04:05+02:00"),
        T::Timestamptz,
        Ok(text("2024-01-02T03:04:05Z")),
    );
    for last in ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"] {
        check(text(last), T::Timestamptz, Ok(text(last)));
    }
    check(
        text("2024-02-30T00:00:00Z"),
        T::Timestamptz,
        Err("is not a timestamptz"),
    );
    check(
        text("infinity"),
        T::Timestamptz,
        Err("is not a timestamptz"),
    );
    check(text("2024-02-29"), T::Date, Ok(text("2024-02-29")));
    check(text("1969-12-31"), T::Date, Ok(text("1969-12-31")));
    check(text("2024-02-30"), T::Date, Err("is not a date"));
    check(
        text("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
        T::Uuid,
        Ok(text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    );
    check(text("1.50"), T::Numeric, Ok(text("1.50")));
    check(text("1e3"), T::Numeric, Ok(text("1000")));
    check(text("1e1000000000"), T::Numeric, Err("more digits than"));
    check(text("NaN"), T::Numeric, Err("is not a numeric"));
    check(text("{\"a\":[1,2]}"), T::Jsonb, Ok(text("{\"a\":[1,2]}")));
    check(text("{\"a\":"), T::Jsonb, Err("is not JSON"));
    check(text("\"\\u0000\""), T::Jsonb, Err("U+0000"));
    check(text("\"\\\\u0000\""), T::Jsonb, Ok(text("\"\\\\u0000\"")));
    check(text("\"\\ud83d\""), T::Jsonb, Err("surrogate"));
    check(
        text("\"\\ud83d\\ude00\""),
        T::Jsonb,
        Ok(text("\"\\ud83d\\ude00\"")),
    );
    check(text("[1e999999]"), T::Jsonb, Err("the number 1e999999"));
    check(text("a\0b"), T::Text, Err("NUL character at byte 1"));
    check(text("\\x0aFF"), T::Bytea, Ok(Value::Bytes(vec![10, 255])));
    check(text("0aFF"), T::Bytea, Err("is not a bytea"));
    check(text("true"), T::Boolean, Ok(Value::Boolean(true)));
    check(text("t"), T::Boolean, Ok(Value::Boolean(true)));
    check(text("f"), T::Boolean, Ok(Value::Boolean(false)));
    check(text("yes"), T::Boolean, Err("is not a boolean"));
}

#[test]
fn other_values_fit_only_where_nothing_is_lost() {
    use ColumnType as T;
    check(Value::Position, T::BigInt, Ok(Value::Int(7)));
    check(Value::Position, T::Text, Err("does not fit a text column"));
    check(
        Value::Int(1 << 53),
        T::Double,
        Ok(Value::Float(9_007_199_254_740_992.0)),
    );
    check(Value::Int((1 << 53) + 1), T::Double, Err("not exact"));
    check(Value::Float(2.0), T::BigInt, Ok(Value::Int(2)));
    check(Value::Float(9.3e18), T::BigInt, Err("does not fit"));
    check(
        Value::Float(f64::NAN),
        T::Double,
        Err("not a finite number"),
    );
    check(
        Value::Boolean(true),
        T::BigInt,
        Err("a boolean does not fit a bigint column"),
    );
    check(
        Value::Texts(vec!["a".into(), "\0".into()]),
        T::TextArray,
        Err("NUL"),
    );
    check(text("{a}"), T::TextArray, Err("does not fit a text[]"));
    check(
        Value::Other(("numeric".into(), "12".into())),
        T::BigInt,
        Ok(Value::Int(12)),
    );
    check(
        Value::Other(("point".into(), "(1,2)".into())),
        T::Text,
        Err("a value of type \"point\""),
    );
}

#[test]
fn running_sums_that_leave_the_range_are_found_although_the_end_fits() {
    let amount = |text: &str| {
        Amount::from_value(ValueRef::Text(text), ColumnType::BigInt, 1).expect("a whole number")
    };
    let mut sums = Sums::of(&amount("9223372036854775807"));
    assert!(sums.then(&amount("-9223372036854775807")));
    assert_eq!(sums.add_to(&Datum::Null), Ok(Datum::BigInt(0)));
    assert!(sums.add_to(&Datum::BigInt(1)).is_err());
    let decimal = |text: &str| {
        Amount::from_value(ValueRef::Text(text), ColumnType::Numeric, 1).expect("a number")
    };
    let number = |text: &str| Datum::from_text(text, ColumnType::Numeric).expect("a number");
    let mut sums = Sums::of(&decimal("9e131071"));
    assert!(sums.must_wait(&decimal("9e131071")), "it cannot be sent");
    assert!(sums.then(&decimal("-9e131071")));
    assert!(!sums.is_monotone());
    assert_eq!(sums.add_to(&number("1.50")), Ok(number("1.50")));
    assert!(sums.add_to(&number("9e131071")).is_err());
    let mut sums = Sums::of(&decimal("1"));
    assert!(sums.then(&decimal("0.25")) && sums.is_monotone());
    let zeros = decimal("0.00")
        .add_to(&number("5"))
        .map(|sum| sum.to_value());
    assert!(
        matches!(&zeros, Ok(Value::Text(text)) if text == "5.00"),
        "the server keeps the longer fraction: {zeros:?}"
    );
    assert_eq!(
        amount("18446744073709551615").add_to(&Datum::BigInt(i64::MIN)),
        Ok(Datum::BigInt(i64::MAX))
    );
}
