//! The command line from outside: the real program, its output, its exit codes, above all its failures.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use projector_testkit::test_database;

/// A folder with a configuration, and the program in it with an empty environment.
struct Cli {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Cli {
    fn new(config: &str) -> Self {
        let cli = Self::empty();
        fs::write(cli.path("projections.toml"), config).expect("a file can be written");
        fs::create_dir(cli.path("plugins")).expect("a folder can be made");
        cli
    }

    fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            variables: Vec::new(),
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_projector-host"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env_clear()
            .envs(self.variables.iter().cloned());
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let output = self
            .command(arguments)
            .output()
            .expect("the program starts");
        Answer::of(output)
    }

    /// Runs, and checks the exit code and what stands in the output.
    #[track_caller]
    fn check(&self, arguments: &[&str], code: i32, expected: &[&str]) -> Answer {
        let answer = self.run(arguments);
        assert_eq!(answer.code, Some(code), "{arguments:?}: {answer:?}");
        for text in expected {
            let found = answer.stdout.contains(text) || answer.stderr.contains(text);
            assert!(found, "{arguments:?} lacks {text:?}: {answer:?}");
        }
        answer
    }
}

#[derive(Debug)]
struct Answer {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Answer {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("standard output is JSON")
    }
}

#[test]
fn a_bad_configuration_ends_every_command_with_78_and_names_the_place() {
    let cases: &[(&str, &[&str])] = &[
        ("[host\n", &["error[PH0102]", "projections.toml:1:6", "^"]),
        (
            "[host]\nnod = 1\n",
            &[
                "error[PH0103]: unknown key `nod` in [host]",
                "projections.toml:2:1",
                "2 | nod",
                "| ^^^",
                "did you mean `node`?",
            ],
        ),
        (
            "[event_store]\npoll_interval = 250\n",
            &[
                "error[PH0104]",
                "projections.toml:2:17",
                "poll_interval = 250",
                "\"250ms\"",
            ],
        ),
        (
            "[http]\nlisten = \"7400\"\n",
            &["error[PH0104]", "projections.toml:2:10", "0.0.0.0:7400"],
        ),
        (
            "[plugins.limits]\nmemory_max = \"8GiB\"\n",
            &["error[PH0105]", "projections.toml:2:14"],
        ),
        (
            "[leader]\nlocal_lease = \"2s\"\n",
            &["error[PH0106]", "projections.toml:2:15", "three times"],
        ),
        (
            "[event_store]\nlayout = \"marten\"\n",
            &[
                "error[PH0107]",
                "projections.toml:2:10",
                "not available yet",
            ],
        ),
        (
            "[read_model]\nschema = \"pg_x\"\n",
            &["error[PH0108]", "projections.toml:2:10"],
        ),
        (
            "[[projection]]\nname = \"a\"\n[[projection]]\nname = \"a\"\n",
            &["error[PH0109]", "projections.toml:4:8"],
        ),
        (
            "[event_store]\nnotifi = true\nlayout = \"marten\"\n[[projection]]\n",
            &[
                "projections.toml:2:1",
                "projections.toml:3:10",
                "projections.toml:4:1",
                "has 3 faults",
            ],
        ),
    ];
    for (config, expected) in cases {
        let cli = Cli::new(config);
        for arguments in [
            &[][..],
            &["run"],
            &["validate", "--offline"],
            &["config", "show"],
        ] {
            let answer = cli.run(arguments);
            assert_eq!(
                answer.code,
                Some(78),
                "{arguments:?} of {config:?}: {answer:?}"
            );
            for text in *expected {
                // `validate` answers on standard output, and counts in its own words.
                let shown = format!("{}{}", answer.stdout, answer.stderr);
                let counted = text.starts_with("has ") && shown.contains("3 faults");
                assert!(
                    counted || shown.contains(text),
                    "{arguments:?} lacks {text:?}: {shown}"
                );
            }
            let is_answer = arguments.contains(&"validate");
            assert_eq!(
                answer.stdout.is_empty(),
                !is_answer,
                "{arguments:?}: {answer:?}"
            );
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_78_and_says_why() {
    let cli = Cli::empty();
    cli.check(
        &[],
        78,
        &["error[PH0101]", "projections.toml", "config init"],
    );
    cli.check(&["--config", "x/y.toml", "run"], 78, &["x/y.toml"]);
    cli.check(
        &["run", "--config", "."],
        78,
        &["error[PH0101]", "not its folder"],
    );
    fs::write(cli.path("latin1.toml"), b"[host]\n# h\xf6st\n").expect("a file");
    cli.check(&["--config", "latin1.toml"], 78, &["line 2 is not UTF-8"]);

    let cli = Cli::empty().with("PROJECTOR_CONFIG", "other.toml");
    cli.check(&[], 78, &["other.toml"]);
    cli.check(&["--config", "flag.toml"], 78, &["flag.toml"]);
}

#[test]
fn wrong_usage_is_2() {
    let cli = Cli::new("");
    cli.check(&["runn"], 2, &["unrecognized subcommand", "run"]);
    cli.check(&["--timeout", "5s"], 2, &["--until-caught-up"]);
    cli.check(&["--until-caught-up", "--timeout", "5"], 2, &["--timeout"]);
    cli.check(&["--dev", "validate"], 2, &["stand after `run`"]);
    cli.check(&["explain", "PH9999"], 2, &["no error has the code"]);
    cli.check(&["--log-format", "xml"], 2, &["text", "json"]);
}

#[test]
fn environment_and_flags_are_checked_like_the_file() {
    let cli = Cli::new("").with("PROJECTOR_HTTP_LISTEN", "nowhere");
    cli.check(
        &["validate", "--offline"],
        78,
        &[
            "error[PH0104]",
            "environment variable PROJECTOR_HTTP_LISTEN",
        ],
    );
    cli.check(
        &["--node", "a b", "config", "show"],
        78,
        &["error[PH0108]", "flag --node"],
    );
}

#[test]
fn a_missing_url_names_the_variable() {
    let cli = Cli::new("[event_store]\nurl_env = \"MY_ES\"\n");
    cli.check(
        &["validate"],
        78,
        &[
            "error[PH0110]",
            "projections.toml:2:11",
            "MY_ES",
            "DATABASE_URL",
        ],
    );
    let answer = cli.check(&["validate", "--offline"], 0, &["warning[PH0110]"]);
    assert!(
        answer.stdout.ends_with("valid, with 3 warnings\n"),
        "{answer:?}"
    );
    cli.check(
        &["validate", "--offline", "--deny-warnings"],
        78,
        &["warning[PH0110]"],
    );
}

#[test]
fn validate_looks_at_both_databases_and_says_which_one_cannot_be_used() {
    let database = test_database().expect("a server");
    // A port on which nobody can listen.
    let bad = Cli::new("[host]\nauto_migrate = true\n")
        .with("ES_DATABASE_URL", database.url())
        .with("DATABASE_URL", "postgres://me:hunter2@127.0.0.1:1/x");
    let answer = bad.check(&["validate"], 69, &["error[PH0201]", "read model database"]);
    assert!(
        !answer.stdout.contains("event store database"),
        "{answer:?}"
    );
    assert!(!format!("{answer:?}").contains("hunter2"), "{answer:?}");

    let missing = Cli::new("").with("DATABASE_URL", &format!("{}_gone", database.url()));
    let findings = missing.check(&["validate", "-o", "json"], 69, &[]).json();
    assert_eq!(findings["valid"], false);
    assert_eq!(findings["errors"], 2);
    assert_eq!(findings["findings"][1]["place"], "event store database");
}

#[test]
fn validate_asks_for_migrations_unless_the_host_applies_them_itself() {
    let database = test_database().expect("a server");
    let cli = Cli::new("").with("DATABASE_URL", database.url());
    cli.check(
        &["validate"],
        78,
        &[
            "error[PH0202]",
            "event store database",
            "read model database",
            "migrate up",
        ],
    );
    let schemas = "select count(*) from pg_namespace where nspname in ('event_store', 'projector')";
    assert_eq!(
        database.psql(schemas).expect("an answer"),
        "0",
        "validate changes nothing"
    );

    let migrating = Cli::new("[host]\nauto_migrate = true\n").with("DATABASE_URL", database.url());
    migrating.check(&["validate"], 0, &["no plugin in the folder"]);

    cli.check(&["migrate", "up"], 0, &[]);
    let answer = cli.check(&["validate"], 0, &["no plugin in the folder"]);
    assert!(
        answer.stdout.ends_with("valid, with 1 warning\n"),
        "{answer:?}"
    );

    // Numbers that are handed out ahead cannot be read without losing events.
    database
        .psql("alter table event_store.events alter column position set cache 20")
        .expect("it is altered");
    cli.check(&["validate"], 78, &["error[PH0302]", "CACHE 1"]);
}

#[test]
fn validate_names_every_plugin_file_that_would_be_refused() {
    let cli = Cli::new("[[projection]]\nname = \"order\"\n").with("DATABASE_URL", "postgres://h/d");
    // Compiled code would be kept below the user's folder.
    let home = cli.path("").display().to_string();
    let cli = cli.with("HOME", &home);
    fs::remove_dir(cli.path("plugins")).expect("it is empty");
    cli.check(
        &["validate", "--offline"],
        78,
        &["error[PH0516]", "plugins"],
    );
    fs::create_dir(cli.path("plugins")).expect("a folder");
    fs::write(cli.path("plugins/a.wasm"), "").expect("a file");
    fs::write(cli.path("plugins/b.wasm"), "text").expect("a file");
    cli.check(
        &["validate", "--offline"],
        78,
        &[
            "a.wasm",
            "b.wasm",
            "error[PH0502]",
            "error[PH0514]",
            "`order` is configured",
        ],
    );
    let made: Vec<_> = fs::read_dir(cli.folder.path()).expect("a folder").collect();
    assert_eq!(made.len(), 2, "validate changes nothing: {made:?}");
}

#[test]
fn findings_as_json_have_places_for_programs() {
    let cli = Cli::new("[host]\nnod = 1\n");
    let answer = cli.check(&["validate", "--offline", "-o", "json"], 78, &[]);
    let finding = &answer.json()["findings"][0];
    assert_eq!(finding["code"], "PH0103");
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["file"], "projections.toml");
    assert_eq!(
        (&finding["line"], &finding["column"]),
        (&2.into(), &1.into())
    );
    assert_eq!(finding["hint"], "did you mean `node`?");
}

#[test]
fn config_show_prints_values_with_sources_and_masks_secrets() {
    let cli = Cli::new("[host]\nlog = \"warn\"\n")
        .with("DATABASE_URL", "postgres://me:hunter2@db/app")
        .with("PROJECTOR_NODE", "n1");
    let answer = cli.check(&["config", "show"], 0, &[]);
    assert!(!format!("{answer:?}").contains("hunter2"));
    let line = |key: &str| {
        let mut lines = answer.stdout.lines();
        let line = lines.find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        line("host.node"),
        "\"n1\" environment variable PROJECTOR_NODE"
    );
    assert_eq!(line("host.log "), "\"warn\" file, line 2");
    assert_eq!(line("leader.key"), "\"PICOCQRS\" default");
    assert_eq!(
        line("read_model.url "),
        "\"postgres://me:***@db:5432/app\" environment variable DATABASE_URL"
    );
    let json = cli.check(&["config", "show", "-o", "json"], 0, &[]).json();
    let settings = json["settings"].as_array().cloned().unwrap_or_default();
    let of = |key: &str| {
        settings
            .iter()
            .find(|setting| setting["key"] == key)
            .cloned()
    };
    assert_eq!(
        of("host.node").map(|setting| setting["value"].clone()),
        Some("n1".into())
    );
}

#[test]
fn config_init_writes_a_valid_file_and_never_overwrites_one() {
    let cli = Cli::new("");
    fs::remove_file(cli.path("projections.toml")).expect("it is there");
    cli.check(
        &["config", "init", "projections.toml"],
        0,
        &["wrote projections.toml"],
    );
    cli.check(&["validate", "--offline"], 0, &[]);
    let printed = cli.check(&["config", "init"], 0, &[]).stdout;
    let path = cli.path("projections.toml");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), printed);

    fs::write(&path, "# mine\n").expect("a file");
    cli.check(
        &["config", "init", "projections.toml"],
        1,
        &["exists already"],
    );
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "# mine\n");
}

#[test]
fn config_schema_can_be_compared_with_a_file() {
    let cli = Cli::empty();
    let checked_in = projector_testkit::repository("config/projections.schema.json");
    let file = checked_in.display().to_string();
    cli.check(&["config", "schema", "--check", &file], 0, &[]);
    fs::write(cli.path("old.json"), "{}\n").expect("a file");
    cli.check(
        &["config", "schema", "--check", "old.json"],
        1,
        &["differs"],
    );
    assert_eq!(
        cli.check(&["config", "schema"], 0, &[]).stdout,
        fs::read_to_string(checked_in).expect("it is there")
    );
}

#[test]
fn the_development_configuration_is_valid() {
    let file = projector_testkit::repository("config/dev.toml");
    let file = file.display().to_string();
    Cli::empty().check(&["--config", &file, "config", "show"], 0, &["\"DEV\""]);
}

#[test]
fn explain_prints_a_page_or_lists_all() {
    let cli = Cli::empty();
    cli.check(
        &["explain", "ph0103"],
        0,
        &["# PH0103: unknown key", "**What to do.**"],
    );
    cli.check(&["explain"], 0, &["PH0101", "PH0110"]);
}

#[test]
fn version_and_completions_need_no_configuration() {
    let cli = Cli::empty();
    cli.check(&["--version"], 0, &[env!("CARGO_PKG_VERSION")]);
    let json = cli.check(&["version", "-o", "json"], 0, &[]).json();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["engine"]["name"], "wasmtime");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        cli.check(&["completions", shell], 0, &["projector-host", "validate"]);
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let cli = Cli::empty();
    for arguments in [
        &["config", "schema"][..],
        &["completions", "bash"],
        &["config", "init"],
    ] {
        let mut child = cli
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // Closed before anything could be read, so that the next write fails whatever its size.
        drop(child.stdout.take());
        let mut stderr = String::new();
        let mut pipe = child.stderr.take().expect("it was piped");
        pipe.read_to_string(&mut stderr).expect("text");
        let status = child.wait().expect("it ends");
        assert_eq!(
            (status.code(), stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_check_that_fails_says_so_even_when_nobody_reads_why() {
    for format in ["text", "json"] {
        let mut child = Cli::new("nonsense = 1\n")
            .command(&["validate", "--offline", "-o", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(78), "{format}");
    }
}

#[test]
fn colours_are_for_terminals_only() {
    let answer = Cli::empty().run(&[]);
    assert!(!answer.stderr.contains('\u{1b}'), "{answer:?}");
}

#[test]
fn append_needs_no_read_model() {
    let database = test_database().expect("a server");
    let both = Cli::new("").with("DATABASE_URL", database.url());
    both.check(&["migrate", "up"], 0, &[]);
    let writer = Cli::new("").with("ES_DATABASE_URL", database.url());
    let line = r#"{"stream":"order-1","type":"OrderCreated","data":{}}"#;
    fs::write(writer.path("events.ndjson"), line).expect("a file");
    writer.check(&["append", "events.ndjson"], 0, &["1"]);
    writer.check(&["status"], 78, &["error[PH0110]", "DATABASE_URL"]);
}
