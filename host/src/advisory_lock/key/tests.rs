//! Golden vectors of the derivation, and the round trip through `pg_locks`.

use proptest::prelude::*;

use super::*;

/// Computed by another language from the published rule. A change here breaks every user's locks.
const GOLDEN: [(&str, &str, i64, i32); 6] = [
    ("", "nightly-invoices", -2656678946205210572, -618556270),
    ("billing", "nightly-report", 1229024805155964307, 286154636),
    ("", "", 1827842756796890065, 425577805),
    ("ab", "c", 5853654607636891601, 1362910170),
    ("a", "bc", -3373233922533901723, -785392226),
    ("größe", "Übersicht", -8430527111442607264, -1962885054),
];

#[test]
fn names_give_the_published_keys() {
    for (namespace, name, single, class) in GOLDEN {
        assert_eq!(
            Key::derive(namespace, name),
            Key::Single(single),
            "{namespace}/{name}"
        );
        assert_eq!(
            Key::slot(namespace, name, 3),
            Key::Pair(class, 3),
            "{namespace}/{name}"
        );
    }
}

#[test]
fn a_short_text_is_its_ascii_bytes() {
    assert_eq!(
        Key::from_ascii("PICOCQRS"),
        Some(Key::Single(0x5049_434F_4351_5253))
    );
    assert_eq!(Key::from_ascii("A"), Some(Key::Single(0x41)));
    for refused in ["", "NINECHARS", "grün", "a b"] {
        assert_eq!(Key::from_ascii(refused), None, "{refused}");
    }
}

#[test]
fn keys_at_the_edges_stand_in_pg_locks_as_the_server_writes_them() {
    for (key, classid, objid, objsubid) in [
        (Key::Single(0), 0, 0, 1),
        (Key::Single(-1), 4_294_967_295, 4_294_967_295, 1),
        (Key::Single(1 << 32), 1, 0, 1),
        (Key::Single(i64::MAX), 2_147_483_647, 4_294_967_295, 1),
        (Key::Single(i64::MIN), 2_147_483_648, 0, 1),
        (Key::Single(-4_294_967_297), 4_294_967_294, 4_294_967_295, 1),
        (Key::Pair(-1, -2), 4_294_967_295, 4_294_967_294, 2),
        (
            Key::Pair(i32::MAX, i32::MIN),
            2_147_483_647,
            2_147_483_648,
            2,
        ),
    ] {
        assert_eq!(
            key.tag(),
            Tag {
                classid,
                objid,
                objsubid
            },
            "{key}"
        );
    }
    assert_ne!(
        Key::Single((1 << 32) | 2).tag(),
        Key::Pair(1, 2).tag(),
        "the two forms are different locks"
    );
    assert_eq!(
        Key::from_tag(Tag {
            classid: -1,
            objid: 0,
            objsubid: 1
        }),
        None
    );
}

proptest! {
    #[test]
    fn every_key_comes_back_from_its_tag(single: i64, a: i32, b: i32) {
        prop_assert_eq!(Key::from_tag(Key::Single(single).tag()), Some(Key::Single(single)));
        prop_assert_eq!(Key::from_tag(Key::Pair(a, b).tag()), Some(Key::Pair(a, b)));
    }
}
