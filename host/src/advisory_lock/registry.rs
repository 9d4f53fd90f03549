//! Names in use: finds two names that share a key, and says which name a key belongs to.
//!
//! Promises: both derivations are compared, the 64-bit keys and the 32-bit classes of slot locks; the second
//! is where collisions happen (1 % at about 9,300 names).

use std::collections::BTreeMap;

use super::error::Error;
use super::key::Key;

/// Names by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    singles: BTreeMap<Key, String>,
    classes: BTreeMap<i32, String>,
}

impl Registry {
    /// A registry of `(namespace, name)`.
    ///
    /// # Errors
    /// [`Error::Collision`] when two names share a key or a slot class.
    pub fn new<N, S>(names: impl IntoIterator<Item = (N, S)>) -> Result<Self, Error>
    where
        N: AsRef<str>,
        S: AsRef<str>,
    {
        let mut registry = Self::default();
        for (namespace, name) in names {
            registry.add(namespace.as_ref(), name.as_ref())?;
        }
        Ok(registry)
    }

    /// Adds a fixed key under a label, such as the leader lock.
    ///
    /// # Errors
    /// [`Error::Collision`] when a name has this key.
    pub fn add_fixed(&mut self, key: Key, label: impl Into<String>) -> Result<(), Error> {
        insert(&mut self.singles, key, label.into(), "key", key.to_string())
    }

    /// The name behind a key, and for a slot which one.
    #[must_use]
    pub fn name_of(&self, key: Key) -> Option<String> {
        if let Some(name) = self.singles.get(&key) {
            return Some(name.clone());
        }
        match key {
            Key::Single(_) => None,
            Key::Pair(class, slot) => {
                let name = self.classes.get(&class)?;
                Some(format!("{name} (slot {slot})"))
            }
        }
    }

    fn add(&mut self, namespace: &str, name: &str) -> Result<(), Error> {
        let label = label(namespace, name);
        let key = Key::derive(namespace, name);
        insert(
            &mut self.singles,
            key,
            label.clone(),
            "key",
            key.to_string(),
        )?;
        if let Key::Pair(class, _) = Key::slot(namespace, name, 0) {
            let shown = class.to_string();
            insert(&mut self.classes, class, label, "slot class", shown)?;
        }
        Ok(())
    }
}

/// How a name is shown, and what its runs are remembered under: `namespace/name`, or the name alone. No two names
/// have one label: slashes of the namespace are written as `%2F`, and a name with a slash begins with one.
#[must_use]
pub fn label(namespace: &str, name: &str) -> String {
    if namespace.is_empty() && !name.contains('/') {
        return name.to_owned();
    }
    let namespace = namespace.replace('%', "%25").replace('/', "%2F");
    format!("{namespace}/{name}")
}

fn insert<K: Ord>(
    map: &mut BTreeMap<K, String>,
    key: K,
    label: String,
    what: &'static str,
    shown: String,
) -> Result<(), Error> {
    match map.get(&key) {
        Some(first) if *first != label => Err(Error::Collision {
            first: first.clone(),
            second: label,
            what,
            key: shown,
        }),
        _ => {
            map.insert(key, label);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_have_one_label() {
        let names = [
            ("", "a/b/c"),
            ("a", "b/c"),
            ("a/b", "c"),
            ("a%2Fb", "c"),
            ("", "c"),
        ];
        let labels = names.map(|(namespace, name)| label(namespace, name));
        assert_eq!(labels, ["/a/b/c", "a/b/c", "a%2Fb/c", "a%252Fb/c", "c"]);
        assert_eq!(label("billing", "report"), "billing/report");
    }

    #[test]
    fn names_are_found_by_key_and_by_slot() {
        let mut registry = Registry::new([("", "nightly-invoices"), ("billing", "nightly-report")])
            .expect("they differ");
        registry
            .add_fixed(Key::Single(7), "leader")
            .expect("it is free");
        let name = |key| registry.name_of(key);
        assert_eq!(
            name(Key::Single(-2656678946205210572)).as_deref(),
            Some("nightly-invoices")
        );
        assert_eq!(
            name(Key::slot("billing", "nightly-report", 3)).as_deref(),
            Some("billing/nightly-report (slot 3)")
        );
        assert_eq!(name(Key::Single(7)).as_deref(), Some("leader"));
        assert_eq!(name(Key::Single(8)), None);
    }

    #[test]
    fn two_names_with_one_slot_class_are_refused_with_both_names() {
        // 32 bits: among 200,000 names some pair shares a class, almost surely.
        let names = (0..200_000).map(|number| ("", format!("job-{number}")));
        match Registry::new(names) {
            Err(Error::Collision {
                first,
                second,
                what,
                ..
            }) => {
                assert_eq!(what, "slot class");
                assert_eq!(Key::slot("", &first, 0), Key::slot("", &second, 0));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_on_the_leader_key_is_refused() {
        let mut registry = Registry::new([("", "nightly-invoices")]).expect("one name");
        let error = registry
            .add_fixed(Key::Single(-2656678946205210572), "the leader lock")
            .expect_err("it is taken");
        assert!(error.to_string().contains("nightly-invoices"), "{error}");
    }
}
