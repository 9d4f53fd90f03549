//! How much is in a plugin file, counted before anything that recurses or allocates by what the file claims.
//!
//! Everything that reads a component (the validator, the encoder, the compiler) descends into it by recursion, and
//! keeps hundreds of bytes for what takes two in the file. Promises: this look needs no deeper stack and no more memory
//! for one file than for another, and takes time in proportion to the file's bytes; a file that passes is within every
//! bound below. Must never: say whether a file is valid; that is the validator's.

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternName, ComponentImport, ComponentType,
    ComponentTypeRef, CoreType, ElementItems, Parser, Payload, WasmFeatures,
};

use super::error::Error;

// Compilers stay far below: an interpreter for JavaScript or Python is a component of some 20 modules with 15,000
// functions, and three levels of nesting.

/// Levels of components, modules, and types of components and instances within each other.
pub const NESTING_MAX: u64 = 100;
/// Modules and components within the file.
pub const PARTS_MAX: u64 = 500;
/// Functions that modules define.
pub const FUNCTIONS_MAX: u64 = 100_000;
/// Types, and what types of components, instances and modules declare.
pub const TYPES_MAX: u64 = 50_000;
/// What components import, export, alias, instantiate, lift and lower.
pub const DEFINITIONS_MAX: u64 = 50_000;
/// What modules import and export, their globals, tables, memories and segments.
pub const ITEMS_MAX: u64 = 200_000;
/// Elements of tables that the file sets.
pub const ELEMENTS_MAX: u64 = 1_000_000;
/// Sections that are neither code nor types: names, debug information, who built it.
pub const CUSTOM_SECTIONS_MAX: u64 = 5_000;

/// Checks that a file is within the bounds.
///
/// # Errors
/// [`Error::Limit`] when it is not; other errors when it cannot be read to its end.
pub(super) fn check(bytes: &[u8]) -> Result<(), Error> {
    let mut counts = Counts::default();
    counts.binary(bytes, 0).map_err(|stop| match stop {
        Stop::Limit(error) => error,
        Stop::Malformed(error) => Error::malformed(&error, bytes.len()),
    })
}

enum Stop {
    Limit(Error),
    Malformed(wasmparser::Error),
}

impl From<wasmparser::Error> for Stop {
    fn from(error: wasmparser::Error) -> Self {
        Self::Malformed(error)
    }
}

#[derive(Default)]
struct Counts {
    parts: u64,
    functions: u64,
    types: u64,
    definitions: u64,
    items: u64,
    elements: u64,
    custom: u64,
}

/// Types that are still to be read at one level.
struct Level {
    left: u32,
    is: Within,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Section,
    Component,
    Instance,
}

impl Counts {
    /// A component or module that stands at this level, and all within it.
    fn binary(&mut self, bytes: &[u8], level: u64) -> Result<(), Stop> {
        let mut depth = level;
        let mut is_module = false;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version { encoding, .. } if depth == level => {
                    is_module = encoding == wasmparser::Encoding::Module;
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                    depth += 1;
                    nested(depth)?;
                    add(&mut self.parts, 1, PARTS_MAX, "modules and components")?;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentTypeSection(section) => {
                    self.component_types(&bytes[section.range()], depth)?;
                }
                Payload::CoreTypeSection(section) => {
                    for core in section {
                        self.core_type(&core?)?;
                    }
                }
                Payload::CustomSection(section) => {
                    add(&mut self.custom, 1, CUSTOM_SECTIONS_MAX, "custom sections")?;
                    // The encoder reads a component from here.
                    if is_module
                        && level == 0
                        && section.name().starts_with(super::file::TYPE_SECTION)
                    {
                        nested(depth + 1)?;
                        self.binary(section.data(), level + 1)?;
                    }
                }
                payload => self.section(payload)?,
            }
        }
        Ok(())
    }

    /// Sections without levels.
    fn section(&mut self, payload: Payload<'_>) -> Result<(), Stop> {
        let (definitions, items) = match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    self.types(group?.types().len() as u64)?;
                }
                return Ok(());
            }
            Payload::FunctionSection(section) => {
                let found = section.count().into();
                return add(&mut self.functions, found, FUNCTIONS_MAX, "functions");
            }
            Payload::ElementSection(section) => {
                add(&mut self.items, section.count().into(), ITEMS_MAX, ITEMS)?;
                for element in section {
                    let count = match element?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    };
                    let found = count.into();
                    add(&mut self.elements, found, ELEMENTS_MAX, "table elements")?;
                }
                return Ok(());
            }
            Payload::ImportSection(section) => (0, section.count()),
            Payload::ExportSection(section) => (0, section.count()),
            Payload::GlobalSection(section) => (0, section.count()),
            Payload::TableSection(section) => (0, section.count()),
            Payload::MemorySection(section) => (0, section.count()),
            Payload::TagSection(section) => (0, section.count()),
            Payload::DataSection(section) => (0, section.count()),
            Payload::InstanceSection(section) => (section.count(), 0),
            Payload::ComponentInstanceSection(section) => (section.count(), 0),
            Payload::ComponentAliasSection(section) => (section.count(), 0),
            Payload::ComponentCanonicalSection(section) => (section.count(), 0),
            Payload::ComponentImportSection(section) => (section.count(), 0),
            Payload::ComponentExportSection(section) => (section.count(), 0),
            _ => return Ok(()),
        };
        add(
            &mut self.definitions,
            definitions.into(),
            DEFINITIONS_MAX,
            "imports, exports, aliases, instances and adapted functions of components",
        )?;
        add(&mut self.items, items.into(), ITEMS_MAX, ITEMS)
    }

    /// The types of a section and those within them. The library reads a type of a component or an instance by
    /// recursion, so the levels are kept here, and it reads only what has none.
    fn component_types(&mut self, section: &[u8], depth: u64) -> Result<(), Stop> {
        let mut reader = BinaryReader::new_features(section, 0, WasmFeatures::all());
        let mut levels = vec![Level {
            left: reader.read_var_u32()?,
            is: Within::Section,
        }];
        while let Some(level) = levels.last_mut() {
            let Some(left) = level.left.checked_sub(1) else {
                levels.pop();
                continue;
            };
            level.left = left;
            let is = level.is;
            let mut ahead = reader.clone();
            let first = ahead.read_u8()?;
            if is != Within::Section {
                match first {
                    0x01 => reader = ahead,
                    _ => {
                        self.declaration(&mut reader, is)?;
                        continue;
                    }
                }
            }
            self.types(1)?;
            let mut ahead = reader.clone();
            let is = match ahead.read_u8()? {
                0x41 => Within::Component,
                0x42 => Within::Instance,
                _ => {
                    reader.read::<ComponentType<'_>>()?;
                    continue;
                }
            };
            reader = ahead;
            levels.push(Level {
                left: reader.read_var_u32()?,
                is,
            });
            nested(depth + levels.len() as u64)?;
        }
        Ok(())
    }

    /// Everything that a type declares but types.
    fn declaration(&mut self, reader: &mut BinaryReader<'_>, is: Within) -> Result<(), Stop> {
        self.types(1)?;
        let mut ahead = reader.clone();
        match ahead.read_u8()? {
            0x00 => {
                let core = ahead.read::<CoreType<'_>>()?;
                self.core_type(&core)?;
            }
            0x02 => {
                ahead.read::<ComponentAlias<'_>>()?;
            }
            0x03 if is == Within::Component => drop(ahead.read::<ComponentImport<'_>>()?),
            0x04 => {
                ahead.read::<ComponentExternName<'_>>()?;
                ahead.read::<ComponentTypeRef>()?;
            }
            // The library says what is wrong with it; it is no type, so this does not recurse.
            _ => drop(reader.read::<wasmparser::InstanceTypeDeclaration<'_>>()?),
        }
        *reader = ahead;
        Ok(())
    }

    fn core_type(&mut self, core: &CoreType<'_>) -> Result<(), Stop> {
        match core {
            CoreType::Rec(group) => self.types(group.types().len() as u64),
            CoreType::Module(declared) => self.types(1 + declared.len() as u64),
        }
    }

    fn types(&mut self, count: u64) -> Result<(), Stop> {
        add(&mut self.types, count, TYPES_MAX, "types and their parts")
    }
}

const ITEMS: &str = "imports, exports, globals and segments of modules";

fn add(sum: &mut u64, count: u64, max: u64, what: &'static str) -> Result<(), Stop> {
    *sum += count;
    limit(*sum, max, what)
}

fn nested(depth: u64) -> Result<(), Stop> {
    limit(depth, NESTING_MAX, "levels of nesting")
}

fn limit(found: u64, max: u64, what: &'static str) -> Result<(), Stop> {
    if found > max {
        return Err(Stop::Limit(Error::Limit { what, found, max }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    fn leb(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        [&[id], leb(content.len()).as_slice(), content].concat()
    }

    fn nested_types(byte: u8, depth: usize) -> Vec<u8> {
        let mut types = vec![1];
        for _ in 0..depth {
            types.extend([byte, 1, 1]);
        }
        types.extend([0x7f]);
        [COMPONENT, section(7, &types).as_slice()].concat()
    }

    fn nested_components(depth: usize) -> Vec<u8> {
        let mut bytes = COMPONENT.to_vec();
        for _ in 0..depth {
            bytes = [COMPONENT, section(4, &bytes).as_slice()].concat();
        }
        bytes
    }

    fn custom(name: &str, content: &[u8]) -> Vec<u8> {
        section(
            0,
            &[leb(name.len()), name.into(), content.to_vec()].concat(),
        )
    }

    /// What a file has too much of, and how much.
    fn over(bytes: &[u8]) -> Option<(&'static str, u64)> {
        match check(bytes) {
            Ok(()) => None,
            Err(Error::Limit { what, found, .. }) => Some((what, found)),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn nesting_is_bounded_wherever_it_stands() {
        const LEVELS: Option<(&str, u64)> = Some(("levels of nesting", NESTING_MAX + 1));
        for byte in [0x41, 0x42] {
            assert_eq!(over(&nested_types(byte, 90)), None);
            for depth in [101, 4_000, 1_000_000] {
                assert_eq!(over(&nested_types(byte, depth)), LEVELS);
                let hidden = custom("component-type:x", &nested_types(byte, depth));
                assert_eq!(over(&[MODULE, &hidden].concat()), LEVELS);
                let within = section(4, &nested_types(byte, depth));
                assert_eq!(over(&[COMPONENT, &within].concat()), LEVELS);
            }
        }
        assert_eq!(over(&nested_components(100)), None);
        assert_eq!(over(&nested_components(2_000)), LEVELS);
        // Levels of both kinds count together.
        let mut mixed = nested_types(0x41, 60);
        for _ in 0..60 {
            mixed = [COMPONENT, section(4, &mixed).as_slice()].concat();
        }
        assert_eq!(over(&mixed), LEVELS);
    }

    #[test]
    fn counts_are_bounded_by_what_a_file_claims() {
        let parts = section(4, COMPONENT).repeat(501);
        assert_eq!(
            over(&[COMPONENT, &parts].concat()),
            Some(("modules and components", 501))
        );
        let functions = section(3, &[leb(100_001), vec![0; 100_001]].concat());
        assert_eq!(
            over(&[MODULE, &functions].concat()),
            Some(("functions", 100_001))
        );
        let types = section(1, &[leb(50_001), b"\x60\0\0".repeat(50_001)].concat());
        assert_eq!(
            over(&[MODULE, &types].concat()),
            Some(("types and their parts", 50_001))
        );
        let many = custom("x", b"").repeat(5_001);
        assert_eq!(
            over(&[MODULE, &many].concat()),
            Some(("custom sections", 5_001))
        );
        let declared = [
            &[1, 0x42],
            leb(60_000).as_slice(),
            &b"\x01\x7f".repeat(60_000),
        ]
        .concat();
        assert_eq!(
            over(&[COMPONENT, &section(7, &declared)].concat()),
            Some(("types and their parts", 50_001))
        );
    }

    #[test]
    fn what_is_cut_or_malformed_is_no_limit() {
        let whole = nested_types(0x42, 50);
        for cut in 8..whole.len() {
            let error = check(&whole[..cut]).err().map(|error| error.code().0);
            assert!(cut == 8 || error == Some(502), "{cut}: {error:?}");
        }
        let bad = [COMPONENT, &section(7, &[1, 0x42, 1, 9])].concat();
        assert_eq!(check(&bad).expect_err("no declaration").code().0, 504);
    }
}
