//! Reading a plugin's writes, and the keys that it looks up, out of its memory in one pass.
//!
//! The engine's own way makes each name and each text a block of its own, several for each write; here they go straight
//! into [`Writes`]. Layouts are those of the component model's canonical ABI
//! (<https://github.com/WebAssembly/component-model/blob/main/design/mvp/CanonicalABI.md>) for `list<write>` and
//! `list<row-key>` of `plugins/wit`. Promises: every address, length, case and text is checked before it is followed; what is read is paid
//! for, byte by byte, from the bound on a call's output. Must never: trust the guest, or be used for another type: the
//! type checks are those of the generated types.
#![allow(
    unsafe_code,
    reason = "the engine's traits for types that cross the boundary can be implemented in no other way; there is no \
              unsafe block here, and what the traits ask for is delegated to the generated types or stated beside it"
)]

use wasmtime::component::__internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LiftContext};
use wasmtime::component::{ComponentType, Lift};
use wasmtime::{Result, bail, format_err};

use super::bindings::{RowKey, Write};
use super::writes::{Keys, Kind, Name, PackedValue, Span, Writes};

/// Bytes of the records in memory, and what they are aligned to.
const WRITE_BYTES: usize = 32;
const WRITE_ALIGN: usize = 4;
const KEY_BYTES: usize = 16;
const KEY_ALIGN: usize = 4;
const CELL_BYTES: usize = 32;
const CELL_ALIGN: usize = 8;
const TEXT_BYTES: usize = 8;
const TEXT_ALIGN: usize = 4;

/// The case of a change that has no cells.
const NO_CELLS: u8 = 5;

/// Names that are remembered by their address.
const RECENT: usize = 256;

macro_rules! lifted {
    ($packed:ty, $element:ty, $read:ident) => {
        // SAFETY: in memory and on the stack a list is a pair of address and length, whatever it holds: the associated
        // items are those of the list type that the type check accepts, and nothing else.
        unsafe impl ComponentType for $packed {
            type Lower = <[$element] as ComponentType>::Lower;

            const ABI: CanonicalAbiInfo = <[$element] as ComponentType>::ABI;

            fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> Result<()> {
                <[$element] as ComponentType>::typecheck(ty, types)
            }
        }

        // SAFETY: both functions only read what they are given; a value of any bytes is either read by the rules of
        // the canonical ABI or refused.
        unsafe impl Lift for $packed {
            fn linear_lift_from_flat(
                cx: &mut LiftContext<'_>,
                ty: InterfaceType,
                src: &Self::Lower,
            ) -> Result<Self> {
                if !is_utf8(cx) {
                    let list = Vec::<$element>::linear_lift_from_flat(cx, ty, src)?;
                    return Ok(Self::from_list(&list)?);
                }
                let place = (src[0].get_u32() as usize, src[1].get_u32() as usize);
                Reader::new(cx).$read(place)
            }

            fn linear_lift_from_memory(
                cx: &mut LiftContext<'_>,
                ty: InterfaceType,
                bytes: &[u8],
            ) -> Result<Self> {
                if !is_utf8(cx) {
                    let list = Vec::<$element>::linear_lift_from_memory(cx, ty, bytes)?;
                    return Ok(Self::from_list(&list)?);
                }
                Reader::new(cx).$read(pair(bytes, 0))
            }
        }
    };
}

lifted!(Writes, Write, writes);
lifted!(Keys, RowKey, keys);

/// Guests whose texts are not UTF-8 go the engine's way.
fn is_utf8(cx: &LiftContext<'_>) -> bool {
    use wasmtime::component::__internal::wasmtime_environ::component::StringEncoding;
    cx.options().string_encoding == StringEncoding::Utf8
}

struct Reader<'a, 'cx> {
    cx: &'a mut LiftContext<'cx>,
    memory: &'cx [u8],
    recent: Box<[Option<(u64, Name)>; RECENT]>,
    writes: Writes,
}

impl<'a, 'cx> Reader<'a, 'cx> {
    fn new(cx: &'a mut LiftContext<'cx>) -> Self {
        Self {
            memory: cx.memory(),
            cx,
            recent: Box::new([None; RECENT]),
            writes: Writes::default(),
        }
    }

    fn writes(mut self, (at, len): (usize, usize)) -> Result<Writes> {
        let all = self.list(at, len, WRITE_BYTES, WRITE_ALIGN)?;
        self.reserve(all);
        for write in all.as_chunks::<WRITE_BYTES>().0 {
            self.write(write)?;
        }
        Ok(self.writes)
    }

    /// Makes room at once, as far as the lengths that the guest names can be true.
    fn reserve(&mut self, all: &[u8]) {
        let all = all.as_chunks::<WRITE_BYTES>().0;
        let cells = all.iter().map(|write| match write[20] {
            NO_CELLS => pair(write, 12).1,
            _ => pair(write, 12).1.saturating_add(pair(write, 24).1),
        });
        let cells = cells.fold(0_usize, usize::saturating_add);
        let cells = cells.min(self.memory.len() / CELL_BYTES);
        self.writes.reserve(all.len(), cells);
    }

    fn keys(mut self, (at, len): (usize, usize)) -> Result<Keys> {
        let all = self.list(at, len, KEY_BYTES, KEY_ALIGN)?;
        let cells = len.saturating_mul(2).min(self.memory.len() / CELL_BYTES);
        self.writes.reserve(len, cells);
        for row in all.as_chunks::<KEY_BYTES>().0 {
            let table = self.name(pair(row, 0))?;
            let key = self.writes.next_cell();
            self.cells(pair(row, 8))?;
            let end = self.writes.next_cell();
            self.writes.end_write(0, table, Kind::Remove, key, end)?;
        }
        Ok(Keys::new(self.writes))
    }

    /// event u32, table text, key list, then the change: its case and, behind padding, its list.
    fn write(&mut self, write: &[u8; WRITE_BYTES]) -> Result<()> {
        let kind = match write[20] {
            0 => Kind::Insert,
            1 => Kind::Put,
            2 => Kind::Merge,
            3 => Kind::Patch,
            4 => Kind::Add,
            NO_CELLS => Kind::Remove,
            6 => Kind::RemoveWhere,
            other => return Err(no_case("change", other)),
        };
        let table = self.name(pair(write, 4))?;
        let key = self.writes.next_cell();
        self.cells(pair(write, 12))?;
        let columns = self.writes.next_cell();
        if kind != Kind::Remove {
            self.cells(pair(write, 24))?;
        }
        self.writes
            .end_write(word(write, 0), table, kind, key, columns)?;
        Ok(())
    }

    fn cells(&mut self, (at, len): (usize, usize)) -> Result<()> {
        let cells = self.list(at, len, CELL_BYTES, CELL_ALIGN)?;
        for cell in cells.as_chunks::<CELL_BYTES>().0 {
            let column = self.name(pair(cell, 0))?;
            let value = self.value(cell)?;
            self.writes.push_cell(column, value);
        }
        Ok(())
    }

    /// The value of a cell: its case at 8, what it holds from 16 on.
    fn value(&mut self, cell: &[u8; CELL_BYTES]) -> Result<PackedValue> {
        Ok(match cell[8] {
            0 => PackedValue::Null,
            1 => match cell[16] {
                // As the canonical ABI has it: everything but zero.
                0 => PackedValue::Boolean(false),
                _ => PackedValue::Boolean(true),
            },
            2 => PackedValue::Int(i64::from_le_bytes(eight(cell))),
            3 => PackedValue::Float(f64::from_le_bytes(eight(cell))),
            4 => PackedValue::Text(self.text(pair(cell, 16))?),
            5 => {
                let (at, len) = pair(cell, 16);
                let bytes = self.list(at, len, 1, 1)?;
                PackedValue::Bytes(self.writes.keep_bytes(bytes)?)
            }
            6 => {
                let (at, len) = pair(cell, 16);
                let list = self.list(at, len, TEXT_BYTES, TEXT_ALIGN)?;
                let texts = list.as_chunks::<TEXT_BYTES>().0.iter();
                let texts = texts.map(|text| self.text(pair(text, 0)));
                let texts = texts.collect::<Result<Vec<Span>>>()?;
                PackedValue::Texts(self.writes.keep_texts(&texts)?)
            }
            7 => PackedValue::Position,
            8 => {
                let name = self.text(pair(cell, 16))?;
                PackedValue::Other(name, self.text(pair(cell, 24))?)
            }
            other => return Err(no_case("value", other)),
        })
    }

    fn text(&mut self, place: (usize, usize)) -> Result<Span> {
        let text = self.read_text(place)?;
        Ok(self.writes.keep(text)?)
    }

    /// A name that stands at the same address as one before is the same: memory does not change while it is read.
    fn name(&mut self, place: (usize, usize)) -> Result<Name> {
        let (at, len) = place;
        let address = (at as u64) << 32 | len as u64;
        let slot = (at ^ at >> 7) % RECENT;
        if let Some((known, name)) = self.recent[slot]
            && known == address
        {
            self.cx.consume_fuel(len)?;
            return Ok(name);
        }
        let text = self.read_text(place)?;
        let name = self.writes.intern(text)?;
        self.recent[slot] = Some((address, name));
        Ok(name)
    }

    fn read_text(&mut self, (at, len): (usize, usize)) -> Result<&'cx str> {
        let Some(bytes) = cut(self.memory, at, len) else {
            bail!("string pointer/length out of bounds of memory");
        };
        self.cx.consume_fuel(len)?;
        Ok(str::from_utf8(bytes)?)
    }

    /// The bytes of a list, paid for.
    fn list(&mut self, at: usize, len: usize, size: usize, align: usize) -> Result<&'cx [u8]> {
        let bytes = len
            .checked_mul(size)
            .and_then(|bytes| cut(self.memory, at, bytes))
            .ok_or_else(|| format_err!("list pointer/length out of bounds of memory"))?;
        if !at.is_multiple_of(align) {
            bail!("list pointer is not aligned");
        }
        self.cx.consume_fuel(bytes.len())?;
        Ok(bytes)
    }
}

fn cut(memory: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    memory.get(at..at.checked_add(len)?)
}

fn no_case(what: &str, case: u8) -> wasmtime::Error {
    format_err!("{case} is no case of `{what}`")
}

fn word(record: &[u8], at: usize) -> u32 {
    let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
    u32::from_le_bytes(bytes)
}

/// An address and a length.
fn pair(record: &[u8], at: usize) -> (usize, usize) {
    (word(record, at) as usize, word(record, at + 4) as usize)
}

fn eight(cell: &[u8; CELL_BYTES]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&cell[16..24]);
    bytes
}
