//! Text forms of values, both ways.

use std::str::FromStr as _;

use bigdecimal::BigDecimal;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use uuid::Uuid;

use crate::plugin::manifest::ColumnType;

/// PostgreSQL's bounds for `numeric` without a declared precision.
const NUMERIC_WHOLE_DIGITS_MAX: i64 = 131_072;
const NUMERIC_FRACTION_DIGITS_MAX: i64 = 16_383;

/// Doubles hold every whole number up to here exactly.
const EXACT_IN_DOUBLE_MAX: i64 = 1 << 53;

/// Digits of a second's fraction that count.
const FRACTION_DIGITS: usize = 6;

/// The server takes zones up to 15:59.
const OFFSET_HOURS_MAX: i64 = 15;

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z: the server's own forms for years beyond them are others.
const TIME_FIRST: i64 = -62_135_596_800_000_000;
const TIME_LAST: i64 = 253_402_300_799_999_999;

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

/// Whether the text is a decimal number as the server writes and reads it: digits with an optional sign, point and
/// exponent. No spaces, names, underscores or other bases, which differ between the server's versions.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let text = unsigned(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = unsigned(exponent);
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && digits(exponent)
        && !exponent.is_empty()
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

pub(super) fn numeric(text: &str) -> Result<BigDecimal, String> {
    let unfit = || unfit(text, ColumnType::Numeric);
    if !is_decimal(text) {
        return Err(unfit());
    }
    let number = BigDecimal::from_str(text).map_err(|_| unfit())?;
    if !fits_numeric(&number) {
        return Err(format!(
            "the number {} has more digits than a numeric column holds",
            shown(text)
        ));
    }
    // A negative scale is only shorthand for zeros; the plain form is the canonical one.
    Ok(if number.fractional_digit_count() < 0 {
        number.with_scale(0)
    } else {
        number
    })
}

/// Digits before and after the point, zeros included. A number below 1 has none before it.
pub(super) fn extent(number: &BigDecimal) -> (i64, i64) {
    let digits = i64::try_from(number.digits()).unwrap_or(i64::MAX);
    let scale = number.fractional_digit_count();
    (digits.saturating_sub(scale).max(0), scale.max(0))
}

/// Whether a numeric column without a declared precision holds it.
pub(super) fn fits_numeric(number: &BigDecimal) -> bool {
    let (whole, fraction) = extent(number);
    whole <= NUMERIC_WHOLE_DIGITS_MAX && fraction <= NUMERIC_FRACTION_DIGITS_MAX
}

/// The sum with the longer of the two fractions, as the server makes it also where one of them is zero.
pub(super) fn plus(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let scale = left
        .fractional_digit_count()
        .max(right.fractional_digit_count());
    (left + right).with_scale(scale)
}

/// A number without needless zeros: the one form of equal numbers.
pub(super) fn shortest(number: &BigDecimal) -> BigDecimal {
    let number = number.normalized();
    if number.fractional_digit_count() < 0 {
        number.with_scale(0)
    } else {
        number
    }
}

/// A whole number that is written as one must be exact, as an integer must; with a point or an exponent it is a
/// double like any other, the nearest one. What would become infinite, or zero without being it, is refused.
pub(super) fn double(text: &str) -> Result<f64, String> {
    let unfit = || unfit(text, ColumnType::Double);
    if !is_decimal(text) {
        return Err(unfit());
    }
    if !text.contains(['.', 'e', 'E']) {
        let whole = i64::from_str(text).ok();
        return whole.and_then(exact).ok_or_else(|| inexact(&shown(text)));
    }
    let float = f64::from_str(text).map_err(|_| unfit())?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
    if float.is_finite() && (float != 0.0 || is_zero) {
        Ok(float)
    } else {
        Err(format!(
            "the number {} is out of the range of double precision",
            shown(text)
        ))
    }
}

/// The whole number as a double, if nothing is lost.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact within the bound that is checked"
)]
pub(super) fn exact(int: i64) -> Option<f64> {
    (-EXACT_IN_DOUBLE_MAX..=EXACT_IN_DOUBLE_MAX)
        .contains(&int)
        .then_some(int as f64)
}

pub(super) fn inexact(number: &str) -> String {
    format!("the whole number {number} is not exact in a double precision column")
}

/// Thirty-two hexadecimal digits in any case, with the four usual dashes or without any.
pub(super) fn uuid(text: &str) -> Result<Uuid, String> {
    let known = matches!(text.len(), 32 | 36).then(|| Uuid::try_parse(text).ok());
    known.flatten().ok_or_else(|| unfit(text, ColumnType::Uuid))
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" | "t" => Ok(true),
        "false" | "f" => Ok(false),
        _ => Err(unfit(text, ColumnType::Boolean)),
    }
}

/// RFC 3339, and the server's own form: a space for the `T`, an offset of hours alone. What is finer than a microsecond
/// is cut. A leap second, which the server would make the next minute, is refused.
pub(super) fn timestamp(text: &str) -> Result<i64, String> {
    instant(text).ok_or_else(|| unfit(text, ColumnType::Timestamptz))
}

fn instant(text: &str) -> Option<i64> {
    let date = civil_date(text.get(..10)?)?;
    let clock = text[10..].strip_prefix(['T', 't', ' '])?;
    let marks = clock.as_bytes();
    if marks.get(2) != Some(&b':') || marks.get(5) != Some(&b':') {
        return None;
    }
    let part = |at: usize| digits(clock.get(at..at + 2)?);
    let (hour, minute, second) = (part(0)?, part(3)?, part(6)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut zone = clock.get(8..)?;
    let mut micros = 0;
    if let Some(fraction) = zone.strip_prefix('.') {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let kept = fraction.get(..length.min(FRACTION_DIGITS))?;
        let missing = u32::try_from(FRACTION_DIGITS - kept.len()).ok()?;
        micros = digits(kept)? * 10_i64.pow(missing);
        zone = &fraction[length..];
    }
    let seconds = i64::from(days_since_epoch(date)?) * 86_400 + (hour * 60 + minute) * 60 + second
        - offset(zone)?;
    let instant = seconds * 1_000_000 + micros;
    // An offset can lead out of the years that have a text form.
    (TIME_FIRST..=TIME_LAST)
        .contains(&instant)
        .then_some(instant)
}

/// Seconds that a zone is ahead of UTC: `Z`, `+08`, `+0800` or `+08:00`.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let ahead = zone.strip_prefix(['+', '-'])?;
    let hours = digits(ahead.get(..2)?)?;
    let minutes = match ahead.len() {
        2 => 0,
        4 => digits(&ahead[2..])?,
        5 => digits(ahead[2..].strip_prefix(':')?)?,
        _ => return None,
    };
    if hours > OFFSET_HOURS_MAX || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    Some(if zone.starts_with('-') {
        -seconds
    } else {
        seconds
    })
}

/// A number of digits alone, at least one.
fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// `2024-02-29`, in the years 1 to 9999.
pub(super) fn date(text: &str) -> Result<i32, String> {
    civil_date(text)
        .and_then(days_since_epoch)
        .ok_or_else(|| unfit(text, ColumnType::Date))
}

fn civil_date(text: &str) -> Option<Date> {
    let marks = text.as_bytes();
    if marks.len() != 10 || marks[4] != b'-' || marks[7] != b'-' {
        return None;
    }
    let part = |from: usize, to: usize| digits(text.get(from..to)?);
    let year = i16::try_from(part(0, 4)?).ok().filter(|&year| year > 0)?;
    let month = i8::try_from(part(5, 7)?).ok()?;
    Date::new(year, month, i8::try_from(part(8, 10)?).ok()?).ok()
}

fn days_since_epoch(date: Date) -> Option<i32> {
    let since = date.since(EPOCH.date()).ok()?;
    Some(since.get_days())
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
