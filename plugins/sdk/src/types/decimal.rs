//! Decimal numbers of any length, as PostgreSQL's `numeric` holds them: just enough to add them up and to write
//! them plainly. Nothing is rounded.

use std::fmt;

/// Exponents beyond this are refused rather than written out as zeros.
const EXPONENT_MAX: i64 = 20_000;

/// `digits / 10^scale`, negative or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// From the highest to the lowest, each 0 to 9, without leading zeros; empty for zero.
    digits: Vec<u8>,
    scale: usize,
}

impl Decimal {
    /// Reads digits with an optional sign, fraction and exponent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut digits = Vec::with_capacity(mantissa.len());
        for byte in whole.bytes().chain(fraction.bytes()) {
            digits.push(char::from(byte).to_digit(10)? as u8);
        }
        let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent_digits.is_empty() || !exponent_digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        if digits.iter().all(|&digit| digit == 0) {
            return Some(Self::new(false, Vec::new(), fraction.len()));
        }
        let exponent: i64 = exponent.parse().ok()?;
        if exponent.abs() > EXPONENT_MAX {
            return None;
        }
        let scale = i64::try_from(fraction.len()).ok()? - exponent;
        if scale < 0 {
            digits.resize(digits.len() + usize::try_from(-scale).ok()?, 0);
        }
        Some(Self::new(
            negative,
            digits,
            usize::try_from(scale.max(0)).ok()?,
        ))
    }

    /// The sum, with the longer of the two fractions.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.scaled(scale), other.scaled(scale));
        if self.negative == other.negative {
            return Self::new(self.negative, sum(&left, &right), scale);
        }
        if (left.len(), &left) >= (right.len(), &right) {
            Self::new(self.negative, difference(&left, &right), scale)
        } else {
            Self::new(other.negative, difference(&right, &left), scale)
        }
    }

    /// The number, if it is whole and fits.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        let whole = self.digits.len().saturating_sub(self.scale);
        if self.digits[whole..].iter().any(|&digit| digit != 0) {
            return None;
        }
        self.digits[..whole]
            .iter()
            .try_fold(0_i64, |number, &digit| {
                let number = number.checked_mul(10)?;
                if self.negative {
                    number.checked_sub(digit.into())
                } else {
                    number.checked_add(digit.into())
                }
            })
    }

    fn new(negative: bool, mut digits: Vec<u8>, scale: usize) -> Self {
        let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
        digits.drain(..zeros);
        Self {
            negative: negative && !digits.is_empty(),
            digits,
            scale,
        }
    }

    /// The digits at a scale not below the own one.
    fn scaled(&self, scale: usize) -> Vec<u8> {
        let mut digits = self.digits.clone();
        if !digits.is_empty() {
            digits.resize(digits.len() + scale - self.scale, 0);
        }
        digits
    }
}

/// Both without leading zeros.
fn sum(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut digits = Vec::with_capacity(left.len().max(right.len()) + 1);
    let mut carry = 0;
    let (mut left, mut right) = (left.iter().rev(), right.iter().rev());
    loop {
        let pair = (left.next(), right.next());
        if pair == (None, None) {
            break;
        }
        let digit = pair.0.copied().unwrap_or(0) + pair.1.copied().unwrap_or(0) + carry;
        digits.push(digit % 10);
        carry = digit / 10;
    }
    digits.push(carry);
    digits.reverse();
    digits
}

/// The larger less the smaller.
fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut digits = larger.to_vec();
    let mut borrow = 0;
    let mut smaller = smaller.iter().rev();
    for digit in digits.iter_mut().rev() {
        let less = smaller.next().copied().unwrap_or(0) + borrow;
        borrow = u8::from(*digit < less);
        *digit = *digit + 10 * borrow - less;
    }
    digits
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.digits.len() + 3);
        if self.negative {
            text.push('-');
        }
        let width = self.digits.len().max(self.scale + 1);
        for place in 0..width {
            if place + self.scale == width {
                text.push('.');
            }
            let digit = (place + self.digits.len())
                .checked_sub(width)
                .map_or(0, |at| self.digits[at]);
            text.push(char::from(b'0' + digit));
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    fn plain(text: &str) -> Option<String> {
        Decimal::parse(text).map(|number| number.to_string())
    }

    fn check_sum(left: &str, right: &str, expected: &str) {
        let (Some(a), Some(b)) = (Decimal::parse(left), Decimal::parse(right)) else {
            panic!("{left} or {right} is no number");
        };
        assert_eq!(a.plus(&b).to_string(), expected, "{left} + {right}");
        assert_eq!(b.plus(&a).to_string(), expected, "{right} + {left}");
    }

    #[test]
    fn numbers_are_written_plainly_and_keep_their_scale() {
        for (text, expected) in [
            ("0", Some("0")),
            ("-0.00", Some("0.00")),
            ("007", Some("7")),
            ("+1.50", Some("1.50")),
            (".5", Some("0.5")),
            ("5.", Some("5")),
            ("1.5e3", Some("1500")),
            ("1.5e-3", Some("0.0015")),
            ("-12e-1", Some("-1.2")),
            ("", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("1e+-5", None),
            ("1_0", None),
            ("1e20001", None),
        ] {
            assert_eq!(plain(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sums_are_exact() {
        check_sum("1", "2", "3");
        check_sum("999", "1", "1000");
        check_sum("0.1", "0.02", "0.12");
        check_sum("-1.5", "1.50", "0.00");
        check_sum("100", "-1", "99");
        check_sum("-100", "1", "-99");
        check_sum(
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
        );
        check_sum("0", "-7", "-7");
        check_sum("0.5", "0", "0.5");
    }
}
