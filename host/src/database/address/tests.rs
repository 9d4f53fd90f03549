//! Which parameters of a URL are kept, and what is said of the others.

use super::*;
use crate::database::session::place;

fn places(url: &str) -> Result<Vec<String>, String> {
    let address = Address::parse(url).map_err(|error| error.to_string())?;
    Ok(address
        .hosts
        .iter()
        .map(|host| {
            format!(
                "{}@{}/{}",
                host.get_username(),
                place(host),
                host.get_database().unwrap_or_default()
            )
        })
        .collect())
}

#[test]
fn one_or_several_hosts_in_any_spelling_are_told_apart() {
    let check = |url: &str, expected: &[&str]| {
        let expected = Ok(expected.iter().map(|&one| one.to_owned()).collect());
        assert_eq!(places(url), expected, "{url}");
    };
    check("postgres://u:p@one:5433/db", &["u@one:5433/db"]);
    check("postgresql://u@one/db", &["u@one:5432/db"]);
    check(
        "postgres://u:p%40%2C@one:5433,two:5434,three/db?sslmode=require",
        &["u@one:5433/db", "u@two:5434/db", "u@three:5432/db"],
    );
    check(
        "postgres://u@[::1]:5433,[::2]:5434/db",
        &["u@[::1]:5433/db", "u@[::2]:5434/db"],
    );
    check(
        "postgres://u@/db?host=one,two&port=5433",
        &["u@one:5433/db", "u@two:5433/db"],
    );
    check(
        "postgres:///db?user=u&host=one%2Ctwo&port=5433,5434",
        &["u@one:5433/db", "u@two:5434/db"],
    );
    check("postgres://u@/db?host=/run/pg", &["u@/run/pg:5432/db"]);
    check(
        "postgres://u@%2Frun%2Fpg:5433,two/db",
        &["u@/run/pg:5433/db", "u@two:5432/db"],
    );
    check("postgres://u@one/db?dbname=other", &["u@one:5432/other"]);
}

#[test]
fn what_is_not_known_or_cannot_be_kept_is_refused_by_name() {
    let check = |query: &str, expected: &str, hint: Option<&str>| {
        let error = Address::parse(&format!("postgres://u:secret@one/db?{query}"))
            .expect_err("it is refused");
        let text = error.to_string();
        assert!(text.contains(expected), "{query}: {text}");
        assert!(!text.contains("secret"), "{text}");
        let shown = error.hint().unwrap_or_default();
        assert!(shown.contains(hint.unwrap_or_default()), "{query}: {shown}");
    };
    check("sslmod=require", "`sslmod`", Some("`sslmode`"));
    check("ssl=true", "`ssl`", None);
    check(
        "target_session_atrs=any",
        "`target_session_atrs`",
        Some("`target_session_attrs`"),
    );
    check("channel_binding=require", "`channel_binding`", None);
    check(
        "target_session_attrs=standby",
        "`target_session_attrs`",
        None,
    );
    check("target_session_attrs=", "`target_session_attrs`", None);
    check("pgbouncer=true", "`pgbouncer`", Some("known are"));
    check("gssencmode=require", "`gssencmode`", None);
    check("SSLMODE=require", "`***`", None);
    check("connect_timeout=soon", "`connect_timeout`", None);
    check("port=1,2,3&host=a,b", "`host` names 2 of 3 hosts", None);
    check("port=x", "invalid", None);
}

#[test]
fn what_is_known_is_kept() {
    let wanted = |query: &str| {
        let url = format!("postgres://u@one,two/db?{query}");
        Address::parse(&url).map(|address| (address.wanted, address.connect_timeout))
    };
    assert_eq!(wanted("channel_binding=prefer"), Ok((Wanted::Any, None)));
    assert_eq!(
        wanted("target_session_attrs=read-write&connect_timeout=2"),
        Ok((Wanted::ReadWrite, Some(Duration::from_secs(2))))
    );
    assert_eq!(
        wanted("target_session_attrs=primary&connect_timeout=0&options[work_mem]=8MB"),
        Ok((Wanted::Primary, None))
    );
}

#[test]
fn hosts_in_two_places_and_too_many_hosts_are_refused() {
    assert!(places("postgres://u@one,two/db?host=three").is_err());
    assert!(places("postgres://u@a,b,c,d,e,f,g,h,i/db").is_err());
}
