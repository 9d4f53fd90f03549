//! The append command: lines in, events out, and what a bad line leaves behind.

use std::fmt::Write as _;

use projector_host::commands::append::{self, Args, Summary};
use projector_host::error::{Exit, Failure};

use super::support::{Store, database, execute, identifier, schema};

async fn lines(store: &Store, text: &str, batch: u32) -> Result<Summary, Failure> {
    append::append(
        text.as_bytes(),
        "in.ndjson",
        batch,
        &store.database,
        &schema(),
        &mut |_| {},
    )
    .await
}

fn summary(appended: u64, duplicates: u64, positions: Option<(i64, i64)>) -> Summary {
    Summary {
        appended,
        duplicates,
        first_position: positions.map(|p| p.0),
        last_position: positions.map(|p| p.1),
    }
}

fn told(result: Result<Summary, Failure>) -> (Exit, String) {
    let failure = result.expect_err("it has to fail");
    (failure.exit, failure.to_string())
}

#[tokio::test]
async fn lines_become_events_in_their_order_and_payloads_stay_as_they_are() {
    let store = Store::new().await;
    let text = "\u{FEFF}{\"stream\":\"a\",\"type\":\"T\",\"data\":{\"n\":123456789012345678901234567890.1200,\"small\":-1e-30}}\r\n\n\
        {\"stream\":\"b\",\"type\":\"T\",\"data\":\"\u{1F600}\\ud83d\\ude00\",\"metadata\":{\"k\":\"v\"},\"schema_version\":7}\n\
        {\"stream\":\"a\",\"type\":\"T\",\"data\":null,\"metadata\":null,\"expected_version\":1}";
    assert_eq!(
        lines(&store, text, 500).await.expect("good lines"),
        summary(3, 0, Some((1, 3)))
    );
    assert_eq!(
        store.psql("select position, stream, version, data, metadata, schema_version from shop_events.events order by 1"),
        "1|a|1|{\"n\": 123456789012345678901234567890.1200, \"small\": -0.000000000000000000000000000001}|{}|1\n\
         2|b|1|\"\u{1F600}\u{1F600}\"|{\"k\": \"v\"}|7\n\
         3|a|2|null|{}|1"
    );
}

#[tokio::test]
async fn nothing_of_a_bad_batch_is_written_and_earlier_batches_stay() {
    let store = Store::new().await;
    let good = r#"{"stream":"a","type":"T","data":1}"#;
    let text = format!("{good}\n{good}\n\n{good}\n{{\"stream\":\"a\",\"typ\":\"T\"}}\n{good}\n");
    let (exit, message) = told(lines(&store, &text, 2).await);
    assert_eq!(exit, Exit::Failed);
    assert_eq!(
        message,
        "PH0321: in.ndjson:5: has the unknown key \"typ\"; did you mean \"type\"?; \
         the lines up to 2 are written (last position 2), nothing after them"
    );
    assert_eq!(store.versions(), "a|1,2");
    let (_, message) = told(lines(&store, "{\n", 2).await);
    assert!(message.ends_with("; nothing was written"), "{message}");
}

/// Whatever the tool lets pass, the store has to hold; so both are asked about the same lines.
#[tokio::test]
async fn tool_and_server_agree_about_what_can_be_held() {
    let store = Store::new().await;
    let deep = format!("{}{}", "[".repeat(990), "]".repeat(990));
    for (data, fits) in [
        ("1e131071", true),
        ("1e131072", false),
        ("1e-16383", true),
        ("1e-16384", false),
        ("0e131072", true),
        ("12.5e131070", true),
        ("12.5e131071", false),
        ("0.0001e131075", true),
        (r#""\u0000""#, false),
        (r#"{"\u0000":1}"#, false),
        (r#""\ud800""#, false),
        (r#""\ude00\ud83d""#, false),
        (r#""\\u0000 \u0001""#, true),
        (deep.as_str(), true),
    ] {
        let server = store
            .test
            .psql(&format!("select pg_column_size('{data}'::jsonb)"));
        assert_eq!(server.is_ok(), fits, "the server about {data}");
        let line = format!(r#"{{"stream":"a","type":"T","data":{data}}}"#);
        let tool = lines(&store, &line, 500).await;
        assert_eq!(tool.is_ok(), fits, "the tool about {data}: {tool:?}");
        if let Err(failure) = tool {
            assert!(
                failure.to_string().contains("in.ndjson:1: \"data\" has"),
                "{failure}"
            );
        }
    }
}

#[tokio::test]
async fn a_conflict_names_the_line_and_both_versions_and_expectations_hold_in_order() {
    let store = Store::new().await;
    let text = "{\"stream\":\"a\",\"type\":\"T\",\"data\":1,\"expected_version\":0}\n\
        {\"stream\":\"b\",\"type\":\"T\",\"data\":1}\n\n\
        {\"stream\":\"a\",\"type\":\"T\",\"data\":1,\"expected_version\":1}\n";
    assert_eq!(
        lines(&store, text, 500).await.expect("in order"),
        summary(3, 0, Some((1, 3)))
    );
    let text = "{\"stream\":\"b\",\"type\":\"T\",\"data\":1}\n\n\
        {\"stream\":\"a\",\"type\":\"T\",\"data\":1,\"expected_version\":2}\n\
        {\"stream\":\"a\",\"type\":\"T\",\"data\":1,\"expected_version\":2}\n";
    let (exit, message) = told(lines(&store, text, 500).await);
    assert_eq!(exit, Exit::Failed);
    assert_eq!(
        message,
        "PH0322: in.ndjson:4: the stream \"a\" is at version 3, not at the expected version 2; nothing was written"
    );
    assert_eq!(store.versions(), "a|1,2\nb|1");
}

#[tokio::test]
async fn lines_sent_again_are_counted_and_an_id_in_another_stream_is_refused() {
    let store = Store::new().await;
    let line = |stream: &str, n: u8, more: &str| {
        format!(
            r#"{{"stream":"{stream}","type":"T","data":1,"id":"9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e0{n:02}"{more}}}"#
        )
    };
    let first = format!(
        "{}\n{}\n",
        line("a", 1, r#","expected_version":0"#),
        line("a", 2, "")
    );
    assert_eq!(
        lines(&store, &first, 500).await.expect("new"),
        summary(2, 0, Some((1, 2)))
    );
    let more = format!(
        "{first}{}\n{}\n",
        line("a", 3, r#","expected_version":2"#),
        line("a", 3, "")
    );
    assert_eq!(
        lines(&store, &more, 500).await.expect("some new"),
        summary(1, 3, Some((3, 3)))
    );
    assert_eq!(
        lines(&store, &more, 1).await.expect("none new"),
        summary(0, 4, None)
    );
    for text in [
        line("b", 1, ""),
        format!("{}\n{}", line("b", 4, ""), line("c", 4, "")),
    ] {
        let (exit, message) = told(lines(&store, &text, 500).await);
        assert_eq!(exit, Exit::Failed);
        assert!(
            message.starts_with("PH0323: in.ndjson:")
                && message.contains("already stands in the stream"),
            "{message}"
        );
    }
    assert_eq!(store.versions(), "a|1,2,3");
}

#[tokio::test]
async fn many_lines_over_many_streams_keep_their_order() {
    let store = Store::new().await;
    let mut text = String::new();
    for n in 0..20_000 {
        writeln!(
            text,
            r#"{{"stream":"s{}","type":"T{}","data":{{"n":{n}}}}}"#,
            n * 7919 % 997,
            n % 5
        )
        .expect("a string takes all");
    }
    let mut batches = 0;
    let done = append::append(
        text.as_bytes(),
        "in",
        500,
        &store.database,
        &schema(),
        &mut |_| batches += 1,
    )
    .await;
    assert_eq!(
        done.expect("good lines"),
        summary(20_000, 0, Some((1, 20_000)))
    );
    assert_eq!(batches, 40);
    assert_eq!(store.broken_streams(), "0");
    assert_eq!(
        store.psql(
            "select count(*) from shop_events.events where (data->>'n')::int <> position - 1"
        ),
        "0"
    );
}

#[tokio::test]
async fn a_large_event_passes_and_comes_back_whole() {
    let store = Store::new().await;
    let text = format!(
        r#"{{"stream":"a","type":"T","data":"{}"}}"#,
        "x\\n".repeat(2_500_000)
    );
    lines(&store, &text, 500)
        .await
        .expect("5 MB are no problem");
    assert_eq!(
        store.psql("select length(data #>> '{}') from shop_events.events"),
        "5000000"
    );
}

#[tokio::test]
async fn the_command_reads_a_file_and_answers_for_people_and_programs() {
    let store = Store::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("events.ndjson");
    std::fs::write(&file, "{\"stream\":\"a\",\"type\":\"T\",\"data\":1}\n").expect("a file");
    let args = Args {
        file: file.clone(),
        batch: 500,
    };
    let mut out = Vec::new();
    for json in [true, false] {
        append::run(
            &args,
            &store.database,
            &schema(),
            json,
            &mut out,
            &mut |_| {},
        )
        .await
        .expect("a good file");
    }
    assert_eq!(
        String::from_utf8_lossy(&out),
        "{\"appended\":1,\"duplicates\":0,\"first_position\":1,\"last_position\":1}\nappended 1 event, positions 2 to 2\n"
    );
    let gone = Args {
        file: folder.path().join("none"),
        batch: 500,
    };
    let failed = append::run(
        &gone,
        &store.database,
        &schema(),
        true,
        &mut Vec::new(),
        &mut |_| {},
    )
    .await;
    assert!(
        failed
            .expect_err("no file")
            .to_string()
            .starts_with("cannot open")
    );
}

#[tokio::test]
async fn a_store_that_is_unmigrated_away_or_busy_has_its_own_exit() {
    let store = Store::new().await;
    let line = r#"{"stream":"a","type":"T","data":1}"#.as_bytes();
    let other = identifier("nothing_here");
    let failed = append::append(line, "in", 500, &store.database, &other, &mut |_| {}).await;
    let (exit, message) = told(failed);
    assert_eq!(exit, Exit::Config);
    assert!(
        message.starts_with("PH0202") && message.contains("migrate up"),
        "{message}"
    );

    let away = database("postgres://127.0.0.1:1/x");
    let failed = append::append(line, "in", 500, &away, &schema(), &mut |_| {}).await;
    assert_eq!(told(failed).0, Exit::Unavailable);

    let mut holder = store.session().await;
    execute(
        &mut holder,
        r#"BEGIN; SELECT shop_events.append('a', NULL, '[{"type":"T","data":1}]')"#,
    )
    .await
    .expect("nobody is in the way");
    let (exit, message) =
        told(append::append(line, "in", 500, &store.database, &schema(), &mut |_| {}).await);
    assert_eq!(exit, Exit::TryAgain);
    assert!(
        message.contains("in:1-1: another transaction appends"),
        "{message}"
    );
}
