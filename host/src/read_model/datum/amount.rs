//! Amounts of `add`, and how several of them become one.

use bigdecimal::BigDecimal;
use std::str::FromStr as _;

use super::{Datum, text};
use crate::guest::writes::ValueRef;
use crate::plugin::manifest::ColumnType;

/// What one `add` adds to one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// For bigint columns. Wider than the column: a net of two amounts may not fit where its result does.
    Whole(i128),
    /// For numeric columns.
    Decimal(BigDecimal),
    /// For double precision columns.
    Double(f64),
}

/// Several amounts added to the same column: their sum, and the lowest and highest running sum, so that a
/// result which leaves the column's range for a moment is found although the end would fit.
#[derive(Debug, Clone, PartialEq)]
pub enum Sums {
    /// For bigint columns.
    Whole {
        /// Sum of all.
        sum: i128,
        /// Lowest running sum.
        lowest: i128,
        /// Highest running sum.
        highest: i128,
    },
    /// For numeric columns.
    Decimal {
        /// Sum of all.
        sum: BigDecimal,
        /// Lowest running sum.
        lowest: BigDecimal,
        /// Highest running sum.
        highest: BigDecimal,
    },
    /// For double precision columns: one amount only, since their addition is not associative.
    Double(f64),
}

/// Bound of a whole amount. Far from i128's end, so that running sums of a batch cannot overflow.
const WHOLE_MAX: i128 = 1 << 96;

impl Amount {
    /// Reads an amount for a numeric column.
    ///
    /// # Errors
    /// A sentence that says why the value is no amount for this column.
    pub fn from_value(
        value: ValueRef<'_>,
        column_type: ColumnType,
        position: i64,
    ) -> Result<Self, String> {
        match column_type {
            ColumnType::BigInt => match value {
                ValueRef::Text(text) => whole(text),
                ValueRef::Other("numeric" | "bigint", text) => whole(text),
                other => match Datum::from_value(other, column_type, position)? {
                    Datum::BigInt(int) => Ok(Self::Whole(i128::from(int))),
                    _ => Err("add needs a number, not null".to_owned()),
                },
            },
            ColumnType::Numeric => match Datum::from_value(value, column_type, position)? {
                Datum::Numeric(number) => Ok(Self::Decimal(number)),
                _ => Err("add needs a number, not null".to_owned()),
            },
            ColumnType::Double => match Datum::from_value(value, column_type, position)? {
                Datum::Double(float) => Ok(Self::Double(float)),
                _ => Err("add needs a number, not null".to_owned()),
            },
            other => Err(format!(
                "add works on numeric columns, and this one is {}",
                other.sql()
            )),
        }
    }

    /// Adds to a known value; null counts as 0.
    ///
    /// # Errors
    /// When the result leaves the column's range.
    pub fn add_to(&self, base: &Datum) -> Result<Datum, String> {
        match (self, base) {
            (Self::Whole(amount), Datum::Null) => fit(*amount),
            (Self::Whole(amount), Datum::BigInt(int)) => fit(i128::from(*int) + amount),
            (Self::Decimal(amount), Datum::Null) => Ok(Datum::Numeric(amount.clone())),
            (Self::Decimal(amount), Datum::Numeric(number)) => {
                let sum = text::plus(number, amount);
                if text::fits_numeric(&sum) {
                    Ok(Datum::Numeric(sum))
                } else {
                    Err("the sum has more digits than a numeric column holds".to_owned())
                }
            }
            (Self::Double(amount), Datum::Null) => Ok(Datum::Double(*amount)),
            (Self::Double(amount), Datum::Double(float)) => {
                let sum = float + amount;
                if sum.is_finite() {
                    Ok(Datum::Double(sum))
                } else {
                    Err("the sum overflows double precision".to_owned())
                }
            }
            _ => Err("add does not fit the column's type".to_owned()),
        }
    }
}

impl Sums {
    /// The sums of one amount.
    #[must_use]
    pub fn of(amount: &Amount) -> Self {
        match amount {
            Amount::Whole(amount) => Self::Whole {
                sum: *amount,
                lowest: *amount,
                highest: *amount,
            },
            Amount::Decimal(amount) => Self::Decimal {
                sum: amount.clone(),
                lowest: amount.clone(),
                highest: amount.clone(),
            },
            Amount::Double(amount) => Self::Double(*amount),
        }
    }

    /// One amount more. False when the two cannot be one: doubles must be added one after the other.
    #[must_use]
    pub fn then(&mut self, amount: &Amount) -> bool {
        match (self, amount) {
            (
                Self::Whole {
                    sum,
                    lowest,
                    highest,
                },
                Amount::Whole(amount),
            ) => {
                *sum += amount;
                *lowest = (*lowest).min(*sum);
                *highest = (*highest).max(*sum);
                true
            }
            (
                Self::Decimal {
                    sum,
                    lowest,
                    highest,
                },
                Amount::Decimal(amount),
            ) => {
                *sum = text::plus(sum, amount);
                if *sum < *lowest {
                    lowest.clone_from(sum);
                }
                if *sum > *highest {
                    highest.clone_from(sum);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether this amount must wait until these sums are in the row: doubles are added one after the other, and a
    /// sum that is no numeric by itself cannot be sent, though it may fit with the column's value.
    #[must_use]
    pub fn must_wait(&self, amount: &Amount) -> bool {
        match (self, amount) {
            (Self::Whole { .. }, Amount::Whole(_)) => false,
            (Self::Decimal { sum, .. }, Amount::Decimal(amount)) => {
                !text::fits_numeric(&text::plus(sum, amount))
            }
            _ => true,
        }
    }

    /// Whether the end is also the farthest from 0 that any running sum comes, on either side: then it alone decides
    /// whether all fit.
    #[must_use]
    pub fn is_monotone(&self) -> bool {
        match self {
            Self::Whole { .. } => false,
            Self::Decimal {
                sum,
                lowest,
                highest,
            } => {
                let zero = BigDecimal::from(0);
                (*highest == *sum && *lowest >= zero) || (*lowest == *sum && *highest <= zero)
            }
            Self::Double(_) => true,
        }
    }

    /// Adds to a known value as the database would: every running sum must fit.
    ///
    /// # Errors
    /// When a running sum leaves the column's range.
    pub fn add_to(&self, base: &Datum) -> Result<Datum, String> {
        match self {
            Self::Whole {
                sum,
                lowest,
                highest,
            } => {
                Amount::Whole(*lowest).add_to(base)?;
                Amount::Whole(*highest).add_to(base)?;
                Amount::Whole(*sum).add_to(base)
            }
            Self::Decimal {
                sum,
                lowest,
                highest,
            } => {
                Amount::Decimal(lowest.clone()).add_to(base)?;
                Amount::Decimal(highest.clone()).add_to(base)?;
                Amount::Decimal(sum.clone()).add_to(base)
            }
            Self::Double(sum) => Amount::Double(*sum).add_to(base),
        }
    }
}

fn fit(sum: i128) -> Result<Datum, String> {
    i64::try_from(sum)
        .map(Datum::BigInt)
        .map_err(|_| format!("the sum {sum} does not fit a bigint column"))
}

fn whole(text: &str) -> Result<Amount, String> {
    let unfit = || format!("the amount {} is not a whole number", text::shown(text));
    let number = text::numeric(text).map_err(|_| unfit())?;
    let digits = text::whole_digits(&number).ok_or_else(unfit)?;
    match i128::from_str(&digits) {
        Ok(amount) if (-WHOLE_MAX..=WHOLE_MAX).contains(&amount) => Ok(Amount::Whole(amount)),
        _ => Err(format!("the amount {} is too large", text::shown(text))),
    }
}
