//! Times as microseconds since 1970, the form in which the host carries them.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// Microseconds between 1970-01-01 and 2000-01-01, where PostgreSQL's binary times begin.
const EPOCH_2000_MICROS: i64 = 946_684_800_000_000;

/// Numbers of the types, the same in every server. By name, each new session would have to ask for them first.
const TIMESTAMPTZ: Oid = Oid(1184);
const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);

/// A `timestamptz` as microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl Type<Postgres> for Micros {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl PgHasArrayType for Micros {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ_ARRAY)
    }
}

impl Encode<'_, Postgres> for Micros {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Postgres>>::encode_by_ref(
            &self.0.saturating_sub(EPOCH_2000_MICROS),
            buffer,
        )
    }
}

impl Decode<'_, Postgres> for Micros {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let bytes: [u8; 8] = value.as_bytes()?.try_into()?;
        // The ends of the range stand for infinity.
        Ok(Self(
            i64::from_be_bytes(bytes).saturating_add(EPOCH_2000_MICROS),
        ))
    }
}
