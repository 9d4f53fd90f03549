//! Points a connection URL at another database of the same server.

/// The same server and settings, another database. `None` if this is no such URL.
pub(crate) fn with_database(server: &str, database: &str) -> Option<String> {
    let (scheme, rest) = server.split_once("://")?;
    if !matches!(scheme, "postgres" | "postgresql") {
        return None;
    }
    let (rest, settings) = match rest.split_once('?') {
        Some((rest, settings)) => (rest, format!("?{settings}")),
        None => (rest, String::new()),
    };
    let host = rest.split('/').next().unwrap_or(rest);
    Some(format!(
        "{scheme}://{host}/{}{settings}",
        percent_encoded(database)
    ))
}

/// `host:port` of a URL, and where in the text it stands. `None` if it does not name both.
pub(crate) fn authority(url: &str) -> Option<(String, std::ops::Range<usize>)> {
    let start = url.find("://")? + 3;
    let end = url[start..]
        .find(['/', '?'])
        .map_or(url.len(), |at| start + at);
    let start = url[start..end]
        .rfind('@')
        .map_or(start, |at| start + at + 1);
    let found = &url[start..end];
    found.contains(':').then(|| (found.to_owned(), start..end))
}

/// Keeps what may stand in a URL's path as it is.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte))
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_changes() {
        let check = |server: &str, expected: Option<&str>| {
            assert_eq!(
                with_database(server, "test_1").as_deref(),
                expected,
                "{server}"
            );
        };
        check(
            "postgresql://postgres@127.0.0.1:5432/postgres",
            Some("postgresql://postgres@127.0.0.1:5432/test_1"),
        );
        check("postgres://a:b@h", Some("postgres://a:b@h/test_1"));
        check(
            "postgres://a@h/?sslmode=disable",
            Some("postgres://a@h/test_1?sslmode=disable"),
        );
        check("host=127.0.0.1 port=5432", None);
        check("mysql://h/d", None);
    }

    #[test]
    fn host_and_port_are_found() {
        let check = |url: &str, expected: Option<&str>| {
            let found = authority(url).map(|(text, range)| {
                assert_eq!(text, url[range]);
                text
            });
            assert_eq!(found.as_deref(), expected, "{url}");
        };
        check("postgresql://u:p@h:5432/d?x=1", Some("h:5432"));
        check("postgresql://127.0.0.1:1", Some("127.0.0.1:1"));
        check("postgresql://h/d", None);
    }

    #[test]
    fn an_odd_name_is_encoded() {
        assert_eq!(
            with_database("postgres://h/x", "a b/ü"),
            Some("postgres://h/a%20b%2F%C3%BC".into())
        );
    }
}
