//! The wake-up of the readers: sent, guarded, silenced, and never in the way.

use projector_host::event_store::layout::Layout;
use sqlx::postgres::PgListener;

use super::support::{Store, append, execute, schema};

const ONE: &str = r#"[{"type":"T","data":1}]"#;

async fn listener(store: &Store) -> PgListener {
    let mut listener = PgListener::connect(store.test.url())
        .await
        .expect("the test server takes sessions");
    let channel = Layout::Projector { schema: schema() }.channel();
    listener.listen(&channel).await.expect("a channel");
    listener.listen("marker").await.expect("a channel");
    listener
}

/// Channels that were notified before a marker that is sent now.
async fn heard(store: &Store, listener: &mut PgListener) -> Vec<String> {
    store.psql("notify marker");
    let mut channels = Vec::new();
    loop {
        let notification = listener.recv().await.expect("the listener lives");
        if notification.channel() == "marker" {
            return channels;
        }
        assert_eq!(notification.payload(), "");
        channels.push(notification.channel().to_owned());
    }
}

#[tokio::test]
async fn an_append_wakes_the_channel_of_its_schema_once_and_off_means_silence() {
    let store = Store::new().await;
    let mut session = store.session().await;
    let mut listener = listener(&store).await;
    append(&mut session, "a", None, ONE).await.expect("new");
    assert_eq!(
        heard(&store, &mut listener).await,
        ["projector_events_shop_events"]
    );

    execute(&mut session, "BEGIN; SET LOCAL projector.notify = 'off'")
        .await
        .expect("a setting");
    append(&mut session, "a", None, ONE).await.expect("new");
    execute(&mut session, "COMMIT").await.expect("a commit");
    assert!(heard(&store, &mut listener).await.is_empty());

    append(&mut session, "a", None, ONE).await.expect("new");
    assert_eq!(
        heard(&store, &mut listener).await.len(),
        1,
        "it was off for that transaction only"
    );
}

#[tokio::test]
async fn only_one_transaction_at_a_time_notifies() {
    let store = Store::new().await;
    let (mut first, mut second) = (store.session().await, store.session().await);
    let mut listener = listener(&store).await;
    execute(&mut first, "BEGIN")
        .await
        .expect("a transaction begins");
    append(&mut first, "a", None, ONE).await.expect("new");
    append(&mut second, "b", None, ONE)
        .await
        .expect("it does not wait for the other one");
    assert!(
        heard(&store, &mut listener).await.is_empty(),
        "the first one holds the guard"
    );
    execute(&mut first, "COMMIT").await.expect("a commit");
    assert_eq!(heard(&store, &mut listener).await.len(), 1);
}
