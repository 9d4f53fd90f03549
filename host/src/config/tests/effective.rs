//! What belongs to a projection, where paths lead, which layer wins, and where secrets come from.

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;

#[test]
fn a_projection_has_its_own_settings_above_the_defaults() {
    let config = valid(
        "[defaults]\nretry = { attempts_max = 5 }\nstart_from = \"now\"\n[plugins]\ndir = \"/srv\"\n\
         [[projection]]\nname = \"order\"\nsha256 = \"AB00000000000000000000000000000000000000000000000000000000000000\"\n\
         config = { when = 2026-01-02, deep = { n = [1, 2.5, true] }, text = \"x\" }\n\
         retry = { max = \"1m\" }\nstart_from = 1200\nlimits = { memory_max = \"128MiB\" }\n",
    );
    let order = config.projection("order");
    assert_eq!(order.component, Path::new("/srv/order.wasm"));
    assert_eq!(
        order.sha256.as_deref(),
        Some("ab00000000000000000000000000000000000000000000000000000000000000")
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&order.config_json).ok(),
        Some(json!({"when": "2026-01-02", "deep": {"n": [1, 2.5, true]}, "text": "x"}))
    );
    assert_eq!(
        (order.retry.attempts_max, order.retry.max),
        (5, Duration::from_secs(60))
    );
    assert_eq!(order.start_from, StartFrom::Position(Position(1200)));
    assert_eq!(order.limits.memory_max, ByteSize::mib(128));
    assert_eq!(order.limits.fuel_max, Limits::default().fuel_max);

    let other = config.projection("other");
    assert_eq!(other.component, Path::new("/srv/other.wasm"));
    assert_eq!((other.config_json.as_str(), other.sha256), ("{}", None));
    assert_eq!(other.start_from, StartFrom::Now);
    assert_eq!(other.limits, Limits::default());

    check(
        "[[projection]]\nname = \"a\"\nlimits = { stack_max = \"2MiB\" }\n",
        &["/etc/p.toml:3:12 PH0103 unknown key `stack_max` in [[projection.limits]]"],
    );
    check(
        "[[projection]]\nname = \"a\"\nconfig = { x = inf }\nstart_from = -1\n",
        &[
            "/etc/p.toml:3:10 PH0104 `projection[0].config` holds inf, which JSON does not have",
            "/etc/p.toml:4:14 PH0105 `projection[0].start_from` is -1, but positions begin at 0",
        ],
    );
}

#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    let config = valid(
        "[host]\ncache_dir = \"c\"\n[plugins]\ndir = \"p\"\n[http]\nadmin_token_file = \"/run/t\"\n\
         [[projection]]\nname = \"a\"\ncomponent = \"x.wasm\"\n[[projection]]\nname = \"b\"\ncomponent = \"./y.wasm\"\n\
         [event_store]\nurl_file = \"u\"\n",
    );
    assert_eq!(config.host.cache_dir.as_deref(), Some(Path::new("/etc/c")));
    assert_eq!(
        config.event_store.url_file.as_deref(),
        Some(Path::new("/etc/u"))
    );
    assert_eq!(
        config.http.admin_token_file.as_deref(),
        Some(Path::new("/run/t"))
    );
    assert_eq!(config.projection("a").component, Path::new("/etc/p/x.wasm"));
    assert_eq!(config.projection("b").component, Path::new("/etc/./y.wasm"));
    assert_eq!(config.projection("c").component, Path::new("/etc/p/c.wasm"));
}

#[test]
fn flags_stand_above_the_environment_above_the_file_above_defaults() {
    let file = "[host]\nnode = \"file\"\nlog_format = \"json\"\n";
    let environment = Environment::from([
        ("PROJECTOR_NODE", "variable"),
        ("PROJECTOR_HTTP_LISTEN", "[::1]:0"),
        ("PROJECTOR_LOG", ""),
    ]);
    let flags = Flags {
        node: Some("flag".into()),
        ..Flags::default()
    };
    let source = |flags: &Flags, key: &str| {
        let loaded = parse(file, Path::new("p"), &environment, flags).expect("valid");
        (
            loaded.config.host.node.clone(),
            loaded.source(key).to_string(),
        )
    };
    assert_eq!(
        source(&flags, "host.node"),
        ("flag".into(), "flag --node".into())
    );
    let none = Flags::default();
    assert_eq!(
        source(&none, "host.node"),
        (
            "variable".into(),
            "environment variable PROJECTOR_NODE".into()
        )
    );
    assert_eq!(
        source(&none, "http.listen").1,
        "environment variable PROJECTOR_HTTP_LISTEN"
    );
    assert_eq!(source(&none, "host.log_format").1, "file, line 3");
    assert_eq!(source(&none, "host.log").1, "default");

    let bad = Environment::from([("PROJECTOR_LOG_FORMAT", "xml")]);
    let Err(Faults(found)) = parse("", Path::new("p"), &bad, &none) else {
        panic!("xml is no log format");
    };
    assert_eq!(
        found[0].place.to_string(),
        "environment variable PROJECTOR_LOG_FORMAT"
    );
}

#[test]
fn urls_come_from_their_variable_then_a_fallback_then_libpq_variables() {
    let check = |text: &str, variables: &[(&str, &str)], expected: [&str; 2]| {
        let mut environment = Environment::default();
        for (name, value) in variables {
            environment = environment.with(name, value);
        }
        let loaded = parse(text, Path::new("p"), &environment, &Flags::default()).expect("valid");
        let secrets = &loaded.config.secrets;
        let found = [&secrets.event_store, &secrets.read_model].map(|secret| match secret {
            Ok(secret) => format!("{} {}", secret.source, secret.value.expose_secret()),
            Err(fault) => format!("{} {}", fault.place, fault.message),
        });
        assert_eq!(found, expected, "{variables:?}");
    };
    check(
        "",
        &[
            ("ES_DATABASE_URL", "postgres://a/a"),
            ("DATABASE_URL", "postgres://b/b"),
        ],
        [
            "environment variable ES_DATABASE_URL postgres://a/a",
            "environment variable DATABASE_URL postgres://b/b",
        ],
    );
    check(
        "",
        &[("DATABASE_URL", "postgres://b/b"), ("PGHOST", "x")],
        [
            "environment variable DATABASE_URL postgres://b/b",
            "environment variable DATABASE_URL postgres://b/b",
        ],
    );
    check(
        "[read_model]\nurl_env = \"RM\"\n",
        &[("PGHOST", "x")],
        [
            "environment variable PGHOST postgres://",
            "p:2:11 no URL for the read model database: the environment variable RM is not set",
        ],
    );
    check(
        "",
        &[
            ("ES_DATABASE_URL", "mysql://u:secret@h/d"),
            ("DATABASE_URL", "postgres://u:secret@h:x/d"),
        ],
        [
            "environment variable ES_DATABASE_URL the URL of the event store database does not begin with postgres://",
            "environment variable DATABASE_URL the URL of the read model database is malformed: error with configuration: invalid port number",
        ],
    );
    check(
        "",
        &[
            (
                "ES_DATABASE_URL",
                "postgres://h/d?sslmode=require&channel_binding=require",
            ),
            ("DATABASE_URL", "postgres://h/d?host=/s&sslmod=require"),
        ],
        [
            "environment variable ES_DATABASE_URL in the URL of the event store database the parameter `channel_binding` cannot be kept: the driver binds no channels, so it can only be `prefer` or `disable`; sslmode=verify-full makes sure which server answers",
            "environment variable DATABASE_URL in the URL of the read model database the parameter `sslmod` is not known",
        ],
    );
}

#[test]
fn a_url_file_is_read_without_its_line_end_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("url"), "postgres://u:pw@h/d\n").expect("a file");
    let text = "[event_store]\nurl_file = \"url\"\n[read_model]\nurl_file = \"none\"\n";
    let path = folder.path().join("p.toml");
    let loaded = parse(text, &path, &Environment::default(), &Flags::default()).expect("valid");
    let secret = loaded
        .config
        .secrets
        .event_store
        .as_ref()
        .expect("it is there");
    assert_eq!(secret.value.expose_secret(), "postgres://u:pw@h/d");
    assert!(loaded.config.event_store_database().is_ok());
    let fault = loaded
        .config
        .read_model_database()
        .expect_err("there is no such file");
    assert!(fault.place.to_string().ends_with("p.toml:4:12"), "{fault}");
    assert!(fault.message.contains("none for the read model"), "{fault}");
}

#[test]
fn no_secret_is_shown_anywhere() {
    let environment = Environment::from([
        (
            "DATABASE_URL",
            "postgres://me:hunter2@db:5433/app?password=hunter2",
        ),
        ("PROJECTOR_ADMIN_TOKEN", "hunter2"),
    ]);
    let loaded = parse("", Path::new("p"), &environment, &Flags::default()).expect("valid");
    let shown = format!("{loaded:?} {environment:?} {:?}", loaded.settings());
    assert!(!shown.contains("hunter2"), "{shown}");
    let settings = loaded.settings();
    let value = |key: &str| {
        let setting = settings.iter().find(|setting| setting.key == key);
        setting.map(|setting| setting.value.clone())
    };
    assert_eq!(
        value("read_model.url"),
        Some(json!("postgres://me:***@db:5433/app"))
    );
    assert_eq!(value("http.admin_token"), Some(json!("***")));
    assert!(
        loaded
            .config
            .admin_token()
            .is_ok_and(|token| token.is_some())
    );

    // Pasted into the wrong place, it is not repeated either.
    for text in [
        "[event_store]\nurl = \"postgres://me:hunter2@h\"\n",
        "[event_store]\nurl_env = \"postgres://me:hunter2@h\"\n",
        "[event_store]\npassword = \"hunter2\"\n",
        "[http]\nadmin_token_env = \"hunter2!\"\n",
    ] {
        let Err(found) = parsed(text) else {
            panic!("{text} is refused")
        };
        assert!(!format!("{found}{found:?}").contains("hunter2"), "{found}");
    }
}
