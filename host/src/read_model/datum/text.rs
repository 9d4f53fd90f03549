//! Text forms of values, both ways.

use std::str::FromStr as _;

use bigdecimal::BigDecimal;
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp};

use crate::plugin::manifest::ColumnType;

/// PostgreSQL's bounds for `numeric` without a declared precision.
const NUMERIC_WHOLE_DIGITS_MAX: i64 = 131_072;
const NUMERIC_FRACTION_DIGITS_MAX: i64 = 16_383;

/// Where times are counted from.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// How much of an offending text a message repeats.
const SHOWN_CHARS_MAX: usize = 60;

pub(super) fn unfit(text: &str, column_type: ColumnType) -> String {
    format!("the text {} is not a {}", shown(text), column_type.sql())
}

pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

pub(super) fn without_nul(text: &str) -> Result<(), String> {
    match text.find('\0') {
        None => Ok(()),
        Some(at) => Err(format!(
            "the text has a NUL character at byte {at}, which PostgreSQL cannot store"
        )),
    }
}

/// Whole numbers, also as producers in other languages write them: `19900.0`, `1.99e4`.
pub(super) fn bigint(text: &str) -> Result<i64, String> {
    if let Ok(int) = i64::from_str(text) {
        return Ok(int);
    }
    let number = numeric(text).map_err(|_| unfit(text, ColumnType::BigInt))?;
    whole_digits(&number)
        .and_then(|digits| i64::from_str(&digits).ok())
        .ok_or_else(|| format!("the number {} does not fit a bigint column", shown(text)))
}

/// The digits of a number that has no fraction.
pub(super) fn whole_digits(number: &BigDecimal) -> Option<String> {
    number
        .is_integer()
        .then(|| number.with_scale(0).to_plain_string())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole and within the bounds that are checked"
)]
pub(super) fn whole(float: f64) -> Result<i64, String> {
    // 2^63 itself does not fit, -2^63 does.
    if float.fract() == 0.0
        && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float)
    {
        Ok(float as i64)
    } else {
        Err(format!("the number {float} does not fit a bigint column"))
    }
}

pub(super) fn numeric(text: &str) -> Result<BigDecimal, String> {
    let unfit = || unfit(text, ColumnType::Numeric);
    if !text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
    {
        return Err(unfit());
    }
    let number = BigDecimal::from_str(text).map_err(|_| unfit())?;
    let (digits, scale) = (
        i64::try_from(number.digits()).unwrap_or(i64::MAX),
        number.fractional_digit_count(),
    );
    if scale > NUMERIC_FRACTION_DIGITS_MAX
        || digits.saturating_sub(scale) > NUMERIC_WHOLE_DIGITS_MAX
    {
        return Err(format!(
            "the number {} has more digits than a numeric column holds",
            shown(text)
        ));
    }
    // A negative scale is only shorthand for zeros; the plain form is the canonical one.
    Ok(if scale < 0 {
        number.with_scale(0)
    } else {
        number
    })
}

pub(super) fn timestamp(text: &str) -> Result<i64, String> {
    let unfit = || unfit(text, ColumnType::Timestamptz);
    // A civil time reaches to the end of the year 9999, which an instant with an offset does not.
    if let Some(civil) = text
        .strip_suffix('Z')
        .and_then(|civil| DateTime::from_str(civil).ok())
    {
        let since = civil.duration_since(EPOCH);
        return i64::try_from(since.as_nanos().div_euclid(1_000)).map_err(|_| unfit());
    }
    let timestamp = Timestamp::from_str(text).map_err(|_| unfit())?;
    i64::try_from(timestamp.as_nanosecond().div_euclid(1_000)).map_err(|_| unfit())
}

pub(super) fn date(text: &str) -> Result<i32, String> {
    let date = Date::from_str(text).map_err(|_| unfit(text, ColumnType::Date))?;
    let days = date
        .since(Date::constant(1970, 1, 1))
        .map_err(|_| unfit(text, ColumnType::Date))?
        .get_days();
    Ok(days)
}

/// Canonical text of a time: UTC with `Z`, no fraction when zero, else six digits.
#[must_use]
pub fn timestamp_text(micros: i64) -> String {
    let Ok(civil) = EPOCH.checked_add(SignedDuration::from_micros(micros)) else {
        return format!("{micros} µs");
    };
    if micros.rem_euclid(1_000_000) == 0 {
        format!("{civil:.0}Z")
    } else {
        format!("{civil:.6}Z")
    }
}

/// Canonical text of a date.
#[must_use]
pub fn date_text(days: i32) -> String {
    use jiff::ToSpan as _;
    Date::constant(1970, 1, 1)
        .checked_add(days.days())
        .map_or_else(|_| format!("{days} d"), |date| date.to_string())
}

/// PostgreSQL's hexadecimal form of bytes: `\x0aff`.
pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let unfit = || unfit(text, ColumnType::Bytea);
    let digits = text.strip_prefix("\\x").ok_or_else(unfit)?.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(unfit());
    }
    let nibble = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    digits
        .chunks_exact(2)
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect::<Option<_>>()
        .ok_or_else(unfit)
}
