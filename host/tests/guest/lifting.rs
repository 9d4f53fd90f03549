//! The host's own reading of writes gives what the engine's reading gives, in each encoding of texts, and refuses the
//! same bytes.

use projector_host::guest::bindings::Write;
use projector_host::guest::writes::Writes;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

/// The contract's types, and a function that returns a list of writes from memory.
const SHELL: &str = r#"(component
  (core module $m
    (memory (export "memory") 1)
    (data (i32.const 16) "DATA")
    (func (export "f") (result i32) i32.const 16))
  (core instance $i (instantiate $m))
  (type $v (variant (case "null") (case "boolean" bool) (case "int" s64) (case "float" f64) (case "text" string)
    (case "bytes" (list u8)) (case "texts" (list string)) (case "position") (case "other" (tuple string string))))
  (export $value "value" (type $v))
  (type $c (record (field "column" string) (field "value" $value)))
  (export $cell "cell" (type $c))
  (type $k (record (field "table" string) (field "key" (list $cell))))
  (export $key "row-key" (type $k))
  (type $ch (variant (case "insert" (list $cell)) (case "put" (list $cell)) (case "merge" (list $cell))
    (case "patch" (list $cell)) (case "add" (list $cell)) (case "remove") (case "remove-where" (list $cell))))
  (export $change "change" (type $ch))
  (type $w (record (field "event" u32) (field "target" $key) (field "change" $change)))
  (export $write "write" (type $w))
  (func (export "f") (result (list $write))
    (canon lift (core func $i "f") (memory $i "memory") string-encoding=ENCODING)))"#;

/// Where the image lies in the guest's memory.
const BASE: usize = 16;

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16,
    CompactUtf16,
}

/// What a guest's memory holds.
struct Image {
    encoding: Encoding,
    bytes: Vec<u8>,
}

impl Image {
    /// Room for what the function returns: the list's address and length.
    fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            bytes: vec![0; 16],
        }
    }

    fn block(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        u32::try_from(at).expect("small")
    }

    fn text(&mut self, text: &str) -> [u8; 8] {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let half = u32::try_from(units.len() / 2).expect("short");
        let (at, len) = match self.encoding {
            Encoding::Utf8 => (
                self.block(text.as_bytes()),
                u32::try_from(text.len()).expect("short"),
            ),
            Encoding::Utf16 => (self.block(&units), half),
            Encoding::CompactUtf16 => (self.block(&units), half | 1 << 31),
        };
        pair(at, len)
    }

    fn list(&mut self, elements: &[Vec<u8>]) -> [u8; 8] {
        let at = self.block(&elements.concat());
        pair(at, u32::try_from(elements.len()).expect("short"))
    }

    fn cell(&mut self, column: &str, case: u8, payload: &[u8]) -> Vec<u8> {
        let mut cell = self.text(column).to_vec();
        cell.extend([case, 0, 0, 0, 0, 0, 0, 0]);
        cell.extend_from_slice(payload);
        cell.resize(32, 0);
        cell
    }

    fn write(
        &mut self,
        event: u32,
        table: &str,
        key: [u8; 8],
        case: u8,
        cells: [u8; 8],
    ) -> Vec<u8> {
        let table = self.text(table);
        let event = event.to_le_bytes();
        [&event[..], &table, &key, &[case, 0, 0, 0], &cells].concat()
    }

    /// One write of each kind, with a value of each case.
    fn sample(&mut self) -> Vec<Vec<u8>> {
        let text = self.text("naïve 漢字 😀");
        let empty = self.text("");
        let bytes = pair(self.block(&[0, 7, 255]), 3);
        let texts = self.list(&[text.to_vec(), empty.to_vec()]);
        let other = [self.text("numeric"), self.text("1.50")].concat();
        let cells = [
            self.cell("a", 0, &[]),
            self.cell("b", 1, &[1]),
            self.cell("c", 2, &i64::MIN.to_le_bytes()),
            self.cell("d", 3, &0.1_f64.to_le_bytes()),
            self.cell("e", 4, &text),
            self.cell("f", 5, &bytes),
            self.cell("g", 6, &texts),
            self.cell("h", 7, &[]),
            self.cell("i", 8, &other),
        ];
        let key = [self.cell("id", 4, &empty)];
        (0..7)
            .map(|kind| {
                let (key, cells) = (self.list(&key), self.list(&cells));
                self.write(
                    u32::from(kind),
                    if kind == 3 { "täble" } else { "t" },
                    key,
                    kind,
                    cells,
                )
            })
            .collect()
    }

    fn returning(mut self, writes: &[Vec<u8>]) -> Self {
        let list = self.list(writes);
        self.bytes[..8].copy_from_slice(&list);
        self
    }

    /// What the engine and the host read, as lists of the contract's type, or why not.
    fn read(&self) -> (Result<String, String>, Result<String, String>) {
        let data: String = self
            .bytes
            .iter()
            .map(|byte| format!("\\{byte:02x}"))
            .collect();
        let encoding = match self.encoding {
            Encoding::Utf8 => "utf8",
            Encoding::Utf16 => "utf16",
            Encoding::CompactUtf16 => "latin1+utf16",
        };
        let text = SHELL.replace("DATA", &data).replace("ENCODING", encoding);
        let binary = wat::parse_str(text).expect("a component");
        let engine = Engine::new(&Config::new()).expect("an engine");
        let component = Component::from_binary(&engine, &binary).expect("compiles");
        let mut store = Store::new(&engine, ());
        store.set_hostcall_fuel(1 << 20);
        let instance = Linker::new(&engine)
            .instantiate(&mut store, &component)
            .expect("an instance");
        let theirs = instance
            .get_typed_func::<(), (Vec<Write>,)>(&mut store, "f")
            .expect("the types are the contract's")
            .call(&mut store, ())
            .map(|(list,)| format!("{list:?}"))
            .map_err(|error| error.root_cause().to_string());
        // An instance that failed once cannot be entered again.
        let instance = Linker::new(&engine)
            .instantiate(&mut store, &component)
            .expect("an instance");
        let ours = instance
            .get_typed_func::<(), (Writes,)>(&mut store, "f")
            .expect("the types are the contract's")
            .call(&mut store, ())
            .map(|(writes,)| format!("{writes:?}"))
            .map_err(|error| error.root_cause().to_string());
        (theirs, ours)
    }
}

fn pair(at: u32, len: u32) -> [u8; 8] {
    let mut pair = [0; 8];
    pair[..4].copy_from_slice(&at.to_le_bytes());
    pair[4..].copy_from_slice(&len.to_le_bytes());
    pair
}

#[test]
fn writes_of_every_kind_are_read_in_every_encoding() {
    for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::CompactUtf16] {
        let mut image = Image::new(encoding);
        let writes = image.sample();
        let (theirs, ours) = image.returning(&writes).read();
        let theirs = theirs.expect("nothing is wrong with it");
        assert!(
            theirs.contains("naïve 漢字 😀") && theirs.contains("täble"),
            "{theirs}"
        );
        assert_eq!(ours, Ok(theirs));
    }
}

#[test]
fn what_the_engine_refuses_is_refused() {
    let refused = |spoil: &dyn Fn(&mut Image, &mut Vec<Vec<u8>>)| {
        let mut image = Image::new(Encoding::Utf8);
        let mut writes = image.sample();
        spoil(&mut image, &mut writes);
        let (theirs, ours) = image.returning(&writes).read();
        assert!(theirs.is_err(), "{theirs:?}");
        ours.expect_err("the engine refuses it")
    };
    let far = u32::MAX - 8;
    for (at, len, why) in [
        (far, 16, "out of bounds"),
        (BASE as u32 + 4, 1 << 28, "out of bounds"),
        (BASE as u32 + 4, 1, "not aligned"),
    ] {
        // The key's list of cells.
        let why_not = refused(&|_, writes| writes[0][12..20].copy_from_slice(&pair(at, len)));
        assert!(why_not.contains(why), "{why_not}");
        // The list of cells of the change.
        let why_not = refused(&|_, writes| writes[0][24..32].copy_from_slice(&pair(at, len)));
        assert!(why_not.contains(why), "{why_not}");
    }
    // The table's name.
    let why_not = refused(&|_, writes| writes[0][4..12].copy_from_slice(&pair(far, 16)));
    assert!(why_not.contains("out of bounds"), "{why_not}");
    let why_not = refused(&|image, writes| {
        let at = image.block(&[b'a', 0xff]);
        writes[0][4..12].copy_from_slice(&pair(at, 2));
    });
    assert!(why_not.contains("utf-8"), "{why_not}");
    for case in [7, 255] {
        let why_not = refused(&|_, writes| writes[0][20] = case);
        assert!(why_not.contains("no case of `change`"), "{why_not}");
    }
    let with = |image: &mut Image, writes: &mut [Vec<u8>], cell: Vec<u8>| {
        let cells = image.list(&[cell]);
        writes[0][24..32].copy_from_slice(&cells);
    };
    let why_not = refused(&|image, writes| {
        let cell = image.cell("a", 9, &[]);
        with(image, writes, cell);
    });
    assert!(why_not.contains("no case of `value`"), "{why_not}");
    // A text, bytes, a list of texts and the second text of a pair, each beyond the end of memory.
    for (case, at) in [(4, 16), (5, 16), (6, 16), (8, 24)] {
        let why_not = refused(&|image, writes| {
            let mut cell = image.cell("a", case, &[]);
            cell[at..at + 8].copy_from_slice(&pair(far, 16));
            with(image, writes, cell);
        });
        assert!(why_not.contains("out of bounds"), "{case}: {why_not}");
    }
    let why_not = refused(&|image, writes| {
        let mut cell = image.cell("a", 6, &[]);
        let text = image.list(&[pair(far, 16).to_vec()]);
        cell[16..24].copy_from_slice(&text);
        with(image, writes, cell);
    });
    assert!(why_not.contains("out of bounds"), "{why_not}");
    // The same large text many times: more than the bound on what a call may hand over.
    let why_not = refused(&|image, writes| {
        let at = image.block(&[b'x'; 20_000]);
        let mut cell = image.cell("a", 4, &[]);
        cell[16..24].copy_from_slice(&pair(at, 20_000));
        let cells = image.list(&vec![cell; 100]);
        writes[0][24..32].copy_from_slice(&cells);
    });
    assert!(
        why_not.contains("fuel allocated for hostcalls"),
        "{why_not}"
    );
}
