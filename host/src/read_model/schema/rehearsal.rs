//! Tries what a first generation would need, and takes it back.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::database::identifier::Identifier;
use crate::plugin::manifest::Manifest;

use super::{Error, make};

/// Creates the tables and views of a projection and takes them back. Nothing of it is ever seen by anybody else.
///
/// # Errors
/// What would keep the projection from beginning.
pub async fn rehearse(
    connection: &mut PgConnection,
    control: &Identifier,
    readers: &Identifier,
    manifest: &Manifest,
) -> Result<(), Error> {
    let mut transaction = connection.begin().await?;
    // A leader that makes the same tables at this moment is not waited for, and does not wait long.
    sqlx::query("SET LOCAL lock_timeout = '2s'")
        .execute(&mut *transaction)
        .await?;
    let made = make(&mut transaction, control, readers, manifest, 1).await;
    transaction.rollback().await?;
    made.map(drop)
}
