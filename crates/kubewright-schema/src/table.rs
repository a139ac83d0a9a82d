//! Reader of the schema table that `tools/gen-schema` writes.
//!
//! Strings and definitions are located by offset; a definition is decoded on first use, nothing up front.

use serde_json::Value;

use super::node::{
    AdditionalProperties, Child, Field, Kind, List, ListType, Node, Object, PatchStrategy, Presence, Scalar,
    Wire, WireForm,
};

static TABLE: &[u8] = include_bytes!("builtin.bin");
const HEAD: usize = 16;

const REQUIRED: u8 = 1;
const MERGE: u8 = 2;
const RETAIN_KEYS: u8 = 4;
const REPLACE: u8 = 8;
const MERGE_KEY: u8 = 16;
const GRANULAR: u8 = 32;
const DEFAULT: u8 = 64;

/// Offsets of the sections of the table.
#[derive(Debug)]
pub(super) struct Table {
    strings: usize,
    text: usize,
    definitions: usize,
    kinds: usize,
    nodes: usize,
    pub(super) definition_count: usize,
    pub(super) kind_count: usize,
}

impl Table {
    /// Computes the section offsets from the four words of the header.
    pub(super) fn open() -> Self {
        let string_count = u32_at(4);
        let definition_count = u32_at(8);
        let kind_count = u32_at(12);
        let text = HEAD + (string_count + 1) * 4;
        let definitions = text + u32_at(HEAD + string_count * 4);
        let kinds = definitions + definition_count * 8;
        let nodes = kinds + kind_count * 8;
        Self { strings: HEAD, text, definitions, kinds, nodes, definition_count, kind_count }
    }

    /// Returns the whole table, which is static; a method because only an opened table is known to be valid.
    #[expect(clippy::unused_self, reason = "see the documentation")]
    pub(super) fn bytes(&self) -> &'static [u8] {
        TABLE
    }

    fn text(&self, id: usize) -> &'static str {
        let from = u32_at(self.strings + id * 4);
        let to = u32_at(self.strings + id * 4 + 4);
        str::from_utf8(&TABLE[self.text + from..self.text + to]).unwrap_or_default()
    }

    /// Returns the `OpenAPI` name of a definition.
    pub(super) fn definition_name(&self, id: usize) -> &'static str {
        self.text(u32_at(self.definitions + id * 8))
    }

    /// Returns group, version, kind and definition number of an entry of the kind index.
    pub(super) fn kind(&self, entry: usize) -> ((&'static str, &'static str, &'static str), u16) {
        let at = self.kinds + entry * 8;
        let word = |i: usize| u16::from_le_bytes([TABLE[at + i * 2], TABLE[at + i * 2 + 1]]);
        let text = |i| self.text(usize::from(word(i)));
        ((text(0), text(1), text(2)), word(3))
    }

    /// Decodes one definition; references are not followed.
    pub(super) fn definition(&self, id: usize) -> Node {
        let at = self.nodes + u32_at(self.definitions + id * 8 + 4);
        match (Reader { table: self, at }).child() {
            Child::Inline(node) => *node,
            Child::Builtin(other) => self.definition(usize::from(other)),
        }
    }
}

fn u32_at(at: usize) -> usize {
    u32::from_le_bytes([TABLE[at], TABLE[at + 1], TABLE[at + 2], TABLE[at + 3]]) as usize
}

struct Reader<'t> {
    table: &'t Table,
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        TABLE[self.at - 1]
    }

    fn var(&mut self) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> &'static str {
        let id = self.var();
        self.table.text(id)
    }

    fn child(&mut self) -> Child {
        let scalar = |scalar| Node::from(Kind::Scalar(scalar));
        let node = match self.byte() {
            0 => return Child::Builtin(u16::try_from(self.var()).unwrap_or_default()),
            1 => scalar(Scalar::String),
            2 => scalar(Scalar::Bytes),
            3 => scalar(Scalar::Time),
            4 => scalar(Scalar::Int32),
            5 | 6 => scalar(Scalar::Int64),
            7 => scalar(Scalar::Number),
            8 => scalar(Scalar::Boolean),
            9 => scalar(Scalar::IntOrString),
            10 => scalar(Scalar::Quantity),
            12 => Kind::Raw.into(),
            15 => scalar(Scalar::MicroTime),
            13 => Kind::Object(self.object()).into(),
            14 => Kind::List(self.list()).into(),
            _ => Kind::Any.into(),
        };
        node.into()
    }

    fn object(&mut self) -> Object {
        let atomic = self.byte() != 0;
        let count = self.var();
        let fields = (0..count).map(|_| self.field()).collect();
        let additional = match self.byte() {
            0 => AdditionalProperties::Closed,
            1 => AdditionalProperties::Values(self.child()),
            _ => AdditionalProperties::Any,
        };
        Object { fields, additional, atomic }
    }

    fn field(&mut self) -> Field {
        let name = self.text().into();
        let flags = self.byte();
        let presence = match self.byte() {
            1 => Presence::OmitEmpty,
            2 => Presence::Always,
            3 => Presence::AlwaysNull,
            4 => Presence::OmitZero,
            _ => Presence::Optional,
        };
        let wire = self.wire();
        let has = |flag| flags & flag != 0;
        let merge_key = has(MERGE_KEY).then(|| self.text().into());
        let default = has(DEFAULT).then(|| match self.byte() {
            0 => Value::from(self.text()),
            _ => Value::from(self.var()),
        });
        let mut node = self.child();
        if let (Some(default), Child::Inline(node)) = (default, &mut node) {
            node.default = Some(default);
        }
        if let (true, Child::Builtin(id)) = (has(GRANULAR), &node) {
            let mut copy = self.table.definition(usize::from(*id));
            if let Kind::Object(object) = &mut copy.kind {
                object.atomic = false;
            }
            node = copy.into();
        }
        let patch = PatchStrategy {
            merge: has(MERGE),
            retain_keys: has(RETAIN_KEYS),
            replace: has(REPLACE),
            merge_key,
        };
        Field { name, node, required: has(REQUIRED), presence, patch, wire }
    }

    fn wire(&mut self) -> Wire {
        let byte = self.byte();
        let form = match byte >> 4 {
            2 => WireForm::Wrapped,
            3 => WireForm::SchemaOrBool,
            4 => WireForm::SchemaOrArray,
            5 => WireForm::SchemaOrStrings,
            _ => WireForm::Plain,
        };
        let numbers = (0..byte & 15).map(|_| u16::try_from(self.var()).unwrap_or_default()).collect();
        Wire { numbers, form }
    }

    fn list(&mut self) -> List {
        let list_type = match self.byte() {
            1 => ListType::Set,
            2 => {
                let count = self.var();
                ListType::Map((0..count).map(|_| self.text().into()).collect())
            }
            _ => ListType::Atomic,
        };
        List { list_type, item: self.child() }
    }
}
