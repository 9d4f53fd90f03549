//! Plugin files that cost whoever reads them a deep stack, much memory or much time. They are made, not kept.

use wit_component::ComponentEncoder;

use super::module;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

const INSTANCE_TYPE: u8 = 0x42;
const COMPONENT_TYPE: u8 = 0x41;

/// One file.
#[derive(Debug)]
pub struct Harmful {
    /// What is in it.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it is refused.
    pub code: u16,
}

/// All of them. Each is a whole plugin with something behind it, or a module.
///
/// # Panics
/// When the well-behaved guest cannot be made a component.
#[must_use]
pub fn every_file() -> Vec<Harmful> {
    let good = component();
    let plugin = |more: Vec<u8>| [good.as_slice(), more.as_slice()].concat();
    let core = |more: Vec<u8>| [module("base").as_slice(), more.as_slice()].concat();
    let file = |name, code, bytes| Harmful { name, bytes, code };
    let nested = |byte, depth| section(7, &nested_types(byte, depth));
    let embedded = |byte, depth| [COMPONENT, &nested(byte, depth)].concat();
    let children = |count: usize| section(4, COMPONENT).repeat(count);
    let cut = |content: &[u8]| [&[7, 0x85, 1], content].concat();
    vec![
        file(
            "instance-types-4000",
            504,
            plugin(nested(INSTANCE_TYPE, 4_000)),
        ),
        file(
            "component-types-4000",
            504,
            plugin(nested(COMPONENT_TYPE, 4_000)),
        ),
        file(
            "component-types-1000000",
            504,
            plugin(nested(COMPONENT_TYPE, 1_000_000)),
        ),
        file(
            "module-types-4000",
            504,
            core(custom("component-type:x", &embedded(INSTANCE_TYPE, 4_000))),
        ),
        file(
            "module-types-1000000",
            504,
            core(custom(
                "component-type:x",
                &embedded(COMPONENT_TYPE, 1_000_000),
            )),
        ),
        file("components-10000", 504, plugin(children(10_000))),
        file("components-20000", 504, plugin(children(20_000))),
        file("components-2000-deep", 504, plugin(deep(2_000))),
        file(
            "functions-2000000",
            504,
            plugin(section(1, &functions(2_000_000))),
        ),
        file(
            "custom-sections-100000",
            504,
            plugin(custom("x", b"").repeat(100_000)),
        ),
        file("export-chain-900", 509, exports(900, 1)),
        file("export-tree-60", 504, exports(60, 2)),
        file(
            "type-section-cut",
            502,
            plugin(cut(&[1, INSTANCE_TYPE, 1, 1])),
        ),
    ]
}

/// The well-behaved guest as a component.
fn component() -> Vec<u8> {
    ComponentEncoder::default()
        .module(&module("base"))
        .and_then(|mut encoder| encoder.encode())
        .expect("it is a projection")
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], leb128(content.len()).as_slice(), content].concat()
}

fn custom(name: &str, content: &[u8]) -> Vec<u8> {
    section(0, &[&leb128(name.len()), name.as_bytes(), content].concat())
}

/// A type section with one type, in types, in types.
fn nested_types(byte: u8, depth: usize) -> Vec<u8> {
    [&[1], [byte, 1, 1].repeat(depth).as_slice(), &[0x7f]].concat()
}

/// A section with a component in a component in a component.
fn deep(depth: usize) -> Vec<u8> {
    let mut bytes = section(4, COMPONENT);
    for _ in 1..depth {
        bytes = section(4, &[COMPONENT, &bytes].concat());
    }
    bytes
}

/// A module with so many functions that do nothing.
fn functions(count: usize) -> Vec<u8> {
    let number = leb128(count);
    [
        MODULE,
        &section(1, &[1, 0x60, 0, 0]),
        &section(3, &[number.as_slice(), &vec![0; count]].concat()),
        &section(
            10,
            &[number.as_slice(), &[2, 0, 0x0b].repeat(count)].concat(),
        ),
    ]
    .concat()
}

/// Instances that export the one before so many times, one behind the other.
fn exports(length: usize, width: usize) -> Vec<u8> {
    let mut instances = [leb128(length + 1), vec![1, 0]].concat();
    for before in 0..length {
        instances.extend([1, u8::try_from(width).expect("few")]);
        for name in 0..width {
            instances.extend([0, 1, b'a' + u8::try_from(name).expect("few"), 5]);
            instances.extend(leb128(before));
        }
    }
    [COMPONENT, &section(5, &instances)].concat()
}
