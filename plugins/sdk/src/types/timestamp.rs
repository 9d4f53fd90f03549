//! Times: RFC 3339 in UTC, cut to microseconds.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

use crate::contract::Text;

const MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
/// The first and the last moment that the host takes.
const FIRST: i64 = -62_135_596_800 * MICROS;
const LAST: i64 = 253_402_300_800 * MICROS - 1;
/// Since 0000-03-01.
const DAYS_BEFORE_1970: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// A moment to the microsecond, in the years 1 to 9999.
///
/// Read from `2026-03-01T08:30:00Z` with any number of fraction digits, of which six count: the rest is cut, not
/// rounded, so that a rebuild and the database agree. A leap second (`:60`) is refused. Written with `Z`, without
/// a fraction when it is zero and with six digits otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970-01-01T00:00:00Z, such as an event's `recorded_at`.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads a time in UTC, which must end in `Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (moment, rest) = local(text.as_bytes())?;
        (rest == b"Z").then_some(Self(moment))
    }

    /// The canonical text, made without the detours of formatting: every row has several.
    pub(crate) fn to_text(self) -> Text {
        let seconds = self.0.div_euclid(MICROS);
        let micros = self.0.rem_euclid(MICROS);
        let days = seconds.div_euclid(DAY_SECONDS) + DAYS_BEFORE_1970;
        let (year, month, day) = civil(days.rem_euclid(ERA_DAYS) as u32);
        let year = i64::from(year) + 400 * days.div_euclid(ERA_DAYS);
        let clock = seconds.rem_euclid(DAY_SECONDS);
        if !(0..=9_999).contains(&year) {
            // No time that was read from text; a store's clock may be anything.
            let fraction = if micros == 0 {
                String::new()
            } else {
                format!(".{micros:06}")
            };
            return format!(
                "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{fraction}Z",
                clock / 3_600,
                clock / 60 % 60,
                clock % 60
            )
            .into();
        }
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let (clock, micros) = (clock as u32, micros as u32);
        let numbers = [
            (0, year as u32 / 100),
            (2, year as u32 % 100),
            (5, month),
            (8, day),
            (11, clock / 3_600),
            (14, clock / 60 % 60),
            (17, clock % 60),
            (20, micros / 10_000),
            (22, micros / 100 % 100),
            (24, micros % 100),
        ];
        for (at, number) in numbers {
            [text[at], text[at + 1]] = PAIRS[number as usize];
        }
        if micros > 0 {
            return Text::ascii(&text);
        }
        text[19] = b'Z';
        let (whole, _) = text.split_first_chunk::<20>().unwrap_or((&[0; 20], &[]));
        Text::ascii(whole)
    }

    /// Whether no other text would be made of this one: it has the canonical form, or is no time at all. Only the
    /// marks are looked at, since every row has several times.
    pub(crate) fn is_final(text: &str) -> bool {
        let text = text.as_bytes();
        let fits = match text.len() {
            20 => text[19] == b'Z',
            27 => text[19] == b'.' && text[26] == b'Z' && text[20..26] != *b"000000",
            _ => false,
        };
        fits && text[4] == b'-'
            && text[7] == b'-'
            && text[10] == b'T'
            && text[13] == b':'
            && text[16] == b':'
    }

    /// Reads whatever the host takes for a time: also a space or `t` for the `T`, and an offset such as `+08:00`,
    /// `+0800` or `+08`. None when it leads out of the years 1 to 9999.
    pub(crate) fn parse_with_offset(text: &str) -> Option<Self> {
        let mut text = text.as_bytes().to_vec();
        if let Some(mark @ (b' ' | b't')) = text.get_mut(10) {
            *mark = b'T';
        }
        let (moment, rest) = local(&text)?;
        let &[sign @ (b'+' | b'-'), ref clock @ ..] = rest else {
            return matches!(rest, b"Z" | b"z").then_some(Self(moment));
        };
        let minutes: &[u8] = match clock.len() {
            2 => b"00",
            4 => &clock[2..],
            5 if clock[2] == b':' => &clock[3..],
            _ => return None,
        };
        let (hours, minutes) = (number(&clock[..2])?, number(minutes)?);
        if hours > 15 || minutes > 59 {
            return None;
        }
        let offset = (hours * 60 + minutes) * 60 * MICROS;
        let moment = if sign == b'+' {
            moment - offset
        } else {
            moment + offset
        };
        (FIRST..=LAST).contains(&moment).then_some(Self(moment))
    }
}

/// The moment that the date and the clock time would be in UTC, and what follows them.
fn local(text: &[u8]) -> Option<(i64, &[u8])> {
    let (head, _) = text.split_first_chunk::<20>()?;
    if [head[4], head[7], head[10], head[13], head[16]] != *b"--T::" {
        return None;
    }
    // The largest digit; whatever is no digit is larger than nine.
    let mut largest = 0;
    let mut pair = |at: usize| {
        let (tens, ones) = (head[at].wrapping_sub(b'0'), head[at + 1].wrapping_sub(b'0'));
        largest = largest.max(tens).max(ones);
        10 * u32::from(tens) + u32::from(ones)
    };
    let (year, month, day) = (100 * pair(0) + pair(2), pair(5), pair(8));
    let (hour, minute, second) = (pair(11), pair(14), pair(17));
    if largest > 9
        || year == 0
        || day == 0
        || day > month_days(year, month)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let mut rest = &text[19..];
    let mut micros = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if length == 0 {
            return None;
        }
        micros = (0..6).fold(0, |micros, place| {
            let digit = if place < length {
                fraction[place] - b'0'
            } else {
                0
            };
            micros * 10 + u32::from(digit)
        });
        rest = &fraction[length..];
    }
    let clock = (hour * 60 + minute) * 60 + second;
    let seconds = days_from_civil(year, month, day) * DAY_SECONDS + i64::from(clock);
    Some((seconds * MICROS + i64::from(micros), rest))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, &byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// How many days the month has; none when there is no such month.
fn month_days(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, from the year 1 on; years begin in March here, so that the leap
/// day is last.
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let leap_days = year / 4 - year / 100 + year / 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    i64::from(year * 365 + leap_days + day_of_year) - DAYS_BEFORE_1970
}

/// Year, month and day that are so many days, of an era, after 0000-03-01.
fn civil(day_of_era: u32) -> (u32, u32, u32) {
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    if shifted < 10 {
        (year, shifted + 3, day)
    } else {
        (year + 1, shifted - 9, day)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_text();
        f.write_str(&text)
    }
}

/// The two digits of each number below a hundred.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in UTC such as 2026-03-01T08:30:00Z")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    fn check(text: &str, expected: Option<&str>) {
        let found = Timestamp::parse(text).map(|moment| moment.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
        if let Some(expected) = expected {
            assert_eq!(Timestamp::is_final(text), expected == text, "{text}");
        }
    }

    #[test]
    fn fractions_are_cut_to_microseconds() {
        check("2026-03-01T08:30:00Z", Some("2026-03-01T08:30:00Z"));
        check("2026-03-01T08:30:00.000Z", Some("2026-03-01T08:30:00Z"));
        check(
            "2026-03-01T08:30:00.5Z",
            Some("2026-03-01T08:30:00.500000Z"),
        );
        check(
            "2026-03-01T08:30:00.123456Z",
            Some("2026-03-01T08:30:00.123456Z"),
        );
        check(
            "2026-03-01T08:30:00.999999999Z",
            Some("2026-03-01T08:30:00.999999Z"),
        );
        check(
            "2026-03-01T08:30:00.000000999Z",
            Some("2026-03-01T08:30:00Z"),
        );
        check(
            "1969-12-31T23:59:59.9999999Z",
            Some("1969-12-31T23:59:59.999999Z"),
        );
    }

    #[test]
    fn the_calendar_is_checked() {
        check("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00Z"));
        check("2000-02-29T00:00:00Z", Some("2000-02-29T00:00:00Z"));
        check("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z"));
        check(
            "9999-12-31T23:59:59.999999Z",
            Some("9999-12-31T23:59:59.999999Z"),
        );
        for text in [
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-04-31T00:00:00Z",
            "2024-04-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2016-12-31T23:59:60Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+00:00",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00ZZ",
            "20240101T000000Z0000",
            "2024-01-01T00:00:0éZ",
            "",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn days_come_back() {
        for day in (-719_162..2_932_897).step_by(5) {
            let moment = Timestamp::from_micros(day * 86_400_000_000);
            assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        }
    }

    #[test]
    fn offsets_move_to_utc() {
        let read = |text| Timestamp::parse_with_offset(text).map(|moment| moment.to_string());
        assert_eq!(
            read("2024-01-01T00:00:00+08:00").as_deref(),
            Some("2023-12-31T16:00:00Z")
        );
        assert_eq!(
            read("2024-01-01T00:00:00-00:30").as_deref(),
            Some("2024-01-01T00:30:00Z")
        );
        assert_eq!(
            read("2024-01-01T00:00:00Z").as_deref(),
            Some("2024-01-01T00:00:00Z")
        );
        for same in [
            "2024-01-01 08:00:00+0800",
            "2024-01-01t08:00:00+08",
            "2024-01-01 00:00:00z",
        ] {
            assert_eq!(
                read(same).as_deref(),
                Some("2024-01-01T00:00:00Z"),
                "{same}"
            );
        }
        for bad in [
            "2024-01-01T00:00:00+8",
            "2024-01-01T00:00:00+16:00",
            "2024-01-01T23:59:60Z",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
