//! From compiled code to a `Guest`: which world it speaks, and that it imports nothing beyond the contract.
//!
//! Promises: a missing or mistyped import or export is found here, not at the first event; everything unknown
//! is listed in one message. The contract's version is read from the names, never tried out.

use thiserror::Error;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};

use super::bindings::CONTRACT_VERSION;
use super::bindings::json::exports::projector::projection::projector_json;
use super::bindings::typed::exports::projector::projection::{manifest, projector};
use super::engine::{Engine, add_contract};
use super::logging::tidy;
use super::state::State;
use super::wasi;

/// The package that the contract lives in.
pub(super) const PACKAGE: &str = "projector:projection/";
/// What the contract lets a guest import.
const IMPORTS: [&str; 3] = ["types", "log", "read-model"];

/// Bytes of the engine's reason, which has names of the plugin in it.
const REASON_BYTES_MAX: usize = 4096;

/// Why compiled code is no guest.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// It speaks neither world.
    #[error(
        "it is a component, but no projection: it exports {exports}, and a projection exports \
         `projector:projection/manifest` and `projector:projection/projector` (or `projector-json`)"
    )]
    OtherWorld {
        /// What it exports, as a list for people.
        exports: String,
    },
    /// One half of the world is there.
    #[error("it exports `{present}` but not `{missing}`; a projection needs both")]
    HalfAWorld {
        /// The interface that is there.
        present: String,
        /// The one that is not.
        missing: &'static str,
    },
    /// It was built against a contract that this host does not speak.
    #[error(
        "it was built for version {found} of the plugin contract and this host speaks \
         {CONTRACT_VERSION}; build it against plugins/wit of this release, or run a host that speaks {found}"
    )]
    ContractVersion {
        /// The version in the names.
        found: String,
    },
    /// It wants what a projection may not have.
    #[error(
        "it imports {imports}, which a projection cannot have; beside `projector:projection` it may import \
         nothing but WASI 0.2, of which only the closed part works: no files, network, environment or clock of the \
         machine"
    )]
    UnknownImports {
        /// The imports, as a list for people.
        imports: String,
    },
    /// The names are right and the types are not.
    #[error("its imports or exports have other types than the contract: {0}")]
    Mismatch(String),
}

/// Linked code of one of the two worlds; its exports were found and their types checked.
pub(super) struct Linked {
    pub(super) pre: InstancePre<State>,
    pub(super) manifest: manifest::GuestIndices,
    pub(super) world: World,
    pub(super) unavailable: Vec<String>,
    /// Whether it may ask for the time, which is its batch's.
    pub(super) has_clock: bool,
}

/// The half in which the two worlds differ.
pub(super) enum World {
    /// Its function `project`.
    Typed(ComponentExportIndex),
    Json(projector_json::GuestIndices),
}

/// Checks the names of imports and exports alone, before anything is compiled. Returns whether the guest
/// speaks JSON.
///
/// # Errors
/// When it is no projection, or one of another contract version.
pub fn check_names(imports: &[String], exports: &[String]) -> Result<bool, LoadError> {
    let json = world(exports)?;
    imports_of_contract(imports)?;
    Ok(json)
}

/// Checks the names, then links.
pub(super) fn link(engine: &Engine, component: &Component) -> Result<Linked, LoadError> {
    let shape = component.component_type();
    let imports: Vec<String> = shape
        .imports(engine.wasmtime())
        .map(|(name, _)| name.to_owned())
        .collect();
    let exports: Vec<String> = shape
        .exports(engine.wasmtime())
        .map(|(name, _)| name.to_owned())
        .collect();
    let json = check_names(&imports, &exports)?;
    let unavailable = wasi::unavailable(&imports);
    let has_clock = imports.iter().any(|name| wasi::is_wasi(name));
    let pre = if has_clock {
        with_wasi(engine, component, &unavailable)
    } else {
        engine.linker().instantiate_pre(component)
    }
    .map_err(mismatch)?;
    let manifest = manifest::GuestIndices::new(&pre).map_err(mismatch)?;
    let world = if json {
        World::Json(projector_json::GuestIndices::new(&pre).map_err(mismatch)?)
    } else {
        projector::GuestIndices::new(&pre).map_err(mismatch)?;
        World::Typed(project(component, &exports)?)
    };
    Ok(Linked {
        pre,
        manifest,
        world,
        unavailable,
        has_clock,
    })
}

/// Where the function `project` is.
fn project(component: &Component, exports: &[String]) -> Result<ComponentExportIndex, LoadError> {
    exports
        .iter()
        .filter(|name| matches!(ours(name), Some(("projector", _))))
        .find_map(|name| {
            let interface = component.get_export_index(None, name)?;
            component.get_export_index(Some(&interface), "project")
        })
        .ok_or_else(|| LoadError::Mismatch("it exports no function `project`".to_owned()))
}

/// A linker of its own: the imports that trap are those of this component.
fn with_wasi(
    engine: &Engine,
    component: &Component,
    unavailable: &[String],
) -> wasmtime::Result<InstancePre<State>> {
    let mut linker = Linker::new(engine.wasmtime());
    add_contract(&mut linker)?;
    wasi::add(&mut linker)?;
    for (name, item) in component.component_type().imports(engine.wasmtime()) {
        if unavailable.iter().any(|other| other == name) {
            wasi::trap(engine.wasmtime(), &mut linker, name, &item.ty)?;
        }
    }
    linker.instantiate_pre(component)
}

fn mismatch(error: wasmtime::Error) -> LoadError {
    LoadError::Mismatch(tidy(&format!("{error:#}"), REASON_BYTES_MAX))
}

/// Whether the exports are those of the JSON world.
fn world(exports: &[String]) -> Result<bool, LoadError> {
    let ours: Vec<(&str, &str)> = exports.iter().filter_map(|name| ours(name)).collect();
    if let Some((_, version)) = ours.iter().find(|(_, version)| !speaks(version)) {
        return Err(LoadError::ContractVersion {
            found: tidy(version, 100),
        });
    }
    let has = |wanted: &str| ours.iter().any(|(interface, _)| *interface == wanted);
    match (has("manifest"), has("projector"), has("projector-json")) {
        (true, true, _) => Ok(false),
        (true, false, true) => Ok(true),
        (true, false, false) => Err(LoadError::HalfAWorld {
            present: "projector:projection/manifest".into(),
            missing: "projector:projection/projector",
        }),
        (false, true, _) | (false, _, true) => Err(LoadError::HalfAWorld {
            present: "projector:projection/projector".into(),
            missing: "projector:projection/manifest",
        }),
        (false, false, false) => Err(LoadError::OtherWorld {
            exports: list(exports),
        }),
    }
}

fn imports_of_contract(imports: &[String]) -> Result<(), LoadError> {
    let mut unknown = Vec::new();
    for name in imports {
        match ours(name) {
            Some((_, version)) if !speaks(version) => {
                return Err(LoadError::ContractVersion {
                    found: tidy(version, 100),
                });
            }
            Some((interface, _)) if IMPORTS.contains(&interface) => {}
            _ if wasi::is_wasi(name) => {}
            _ => unknown.push(name.clone()),
        }
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(LoadError::UnknownImports {
            imports: list(&unknown),
        })
    }
}

/// Interface and version of a name of our package.
pub(super) fn ours(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_prefix(PACKAGE)?;
    Some(name.split_once('@').unwrap_or((name, "")))
}

/// Below 1.0 versions match while major and minor are the same, as the engine's linker matches them.
pub(super) fn speaks(version: &str) -> bool {
    let series = |version: &str| -> Option<(u64, u64, bool)> {
        let (version, pre) = match version.split_once('-') {
            Some((version, _)) => (version, true),
            None => (version, false),
        };
        let mut parts = version.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            return None;
        };
        Some((major, minor, pre))
    };
    series(version).is_some_and(|found| Some(found) == series(CONTRACT_VERSION))
}

/// A list for people, bounded.
pub(super) fn list(names: &[String]) -> String {
    const SHOWN_MAX: usize = 20;
    if names.is_empty() {
        return "nothing".into();
    }
    let mut text = names
        .iter()
        .take(SHOWN_MAX)
        .map(|name| format!("`{}`", tidy(name, 100)))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN_MAX {
        text.push_str(&format!(" and {} more", names.len() - SHOWN_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_world_is_told_by_the_names_of_the_exports() {
        let manifest = "projector:projection/manifest@0.1.0";
        let typed = "projector:projection/projector@0.1.0";
        let json = "projector:projection/projector-json@0.1.4";
        assert_eq!(world(&owned(&[manifest, typed])), Ok(false));
        assert_eq!(world(&owned(&[manifest, json, "init"])), Ok(true));
        assert!(matches!(
            world(&owned(&[typed])),
            Err(LoadError::HalfAWorld { .. })
        ));
        assert!(matches!(
            world(&owned(&[manifest])),
            Err(LoadError::HalfAWorld { .. })
        ));
        assert!(matches!(
            world(&owned(&["wasi:http/handler@0.2.0"])),
            Err(LoadError::OtherWorld { .. })
        ));
        for other in ["0.2.0", "1.0.0", "0.1.0-rc1", ""] {
            assert_eq!(
                world(&owned(&[
                    &format!("projector:projection/manifest@{other}"),
                    typed
                ])),
                Err(LoadError::ContractVersion {
                    found: other.to_owned()
                })
            );
        }
    }

    #[test]
    fn every_unknown_import_stands_in_one_message() {
        let error = imports_of_contract(&owned(&[
            "projector:projection/log@0.1.0",
            "wasi:sockets/tcp@0.3.0",
            "wasi:clocks/wall-clock@0.2.1",
            "acme:secrets/read",
            "projector:projection/writer@0.1.0",
        ]))
        .expect_err("three are unknown");
        let text = error.to_string();
        for name in [
            "wasi:sockets/tcp@0.3.0",
            "acme:secrets/read",
            "projector:projection/writer@0.1.0",
        ] {
            assert!(text.contains(name), "{text}");
        }
        assert!(
            !text.contains("/log@") && !text.contains("wall-clock"),
            "{text}"
        );
    }
}
