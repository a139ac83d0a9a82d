//! YAML events into nodes.
//!
//! The parser underneath serde-saphyr gives events with their places; this module makes JSON-shaped nodes of them
//! the way Kubernetes does (see `scalar` for words): aliases and `<<` merges are expanded, keys become text, tags
//! of custom types are ignored.
//!
//! Where this reader and `kubectl`'s differ, it is on purpose:
//! - A key beside a `<<` merge wins over the merged one wherever it stands, as YAML says; Go's reader lets the later
//!   one win.
//! - `!!binary` is refused; Go would put the decoded bytes into JSON, where they are damaged.
//! - A second document after `...` is read; Go's reader drops it in silence.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Marker, Options, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{
    error::{DecodeProblem, ReadError},
    limits::Limits,
    node::{Mapping, Mark, Node, NodeValue},
    scalar::{Plain, json_number, key_text, resolve},
};

/// Reads the documents of one YAML text.
pub(super) struct YamlReader<'t> {
    events: Parser<'t, StrInput<'t>>,
    /// How many lines of the whole input come before the text.
    lines_before: usize,
    limits: Limits,
    done: bool,
}

impl<'t> YamlReader<'t> {
    pub(super) fn new(text: &'t str, first_line: usize, limits: Limits) -> Self {
        let mut options = Options::default();
        options.set_emit_comments(false);
        // The builder counts the levels; the parser only needs a bound of its own behind that.
        options.flow_nesting_limit = limits.depth * 2;
        options.block_nesting_limit = limits.depth * 2;
        let events = Parser::new_from_str_with_options(text, options);
        Self { events, lines_before: first_line - 1, limits, done: false }
    }

    /// The next document, or `None` at the end of the text. After an error it goes on behind the next `...`.
    pub(super) fn next(&mut self) -> Option<Result<Node, ReadError>> {
        if self.done {
            return None;
        }
        let next = self.document().transpose();
        self.done = match &next {
            Some(Ok(_)) => false,
            Some(Err(_)) => !matches!(self.events.proceed_next_document(), Ok(true)),
            None => true,
        };
        next
    }

    fn document(&mut self) -> Result<Option<Node>, ReadError> {
        let mut builder = Builder::new(self.limits);
        while let Some(next) = self.events.next_event() {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            let at = self.mark(&span.start);
            match event {
                Event::DocumentEnd => {
                    return Ok(Some(builder.root.unwrap_or(Node::new(at, NodeValue::Null))));
                }
                Event::Scalar(text, style, anchor, tag) => {
                    builder.scalar(at, &text, style, anchor, tag.as_deref())?;
                }
                Event::SequenceStart(_, anchor, _) => {
                    builder.open(at, anchor, Content::Sequence(Vec::new()))?;
                }
                Event::MappingStart(_, anchor, _) => builder.open(at, anchor, Content::empty_mapping())?,
                Event::SequenceEnd | Event::MappingEnd => builder.close()?,
                Event::Alias(id) => builder.alias(at, id)?,
                // Stream and document starts, and presentation that was not asked for.
                _ => {}
            }
        }
        Ok(None)
    }

    fn mark(&self, marker: &Marker) -> Mark {
        Mark { line: self.lines_before + marker.line(), column: marker.col() + 1 }
    }

    fn syntax(&self, error: &ScanError) -> ReadError {
        ReadError {
            at: self.mark(error.marker()),
            problem: DecodeProblem::Syntax { message: error.kind().to_string() },
        }
    }
}

/// Puts the values of one document together, without recursion.
struct Builder {
    limits: Limits,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: BTreeMap<usize, Node>,
    /// What anchors and aliases may still copy.
    copies_left: usize,
}

/// A sequence or mapping whose end has not come yet.
struct Open {
    at: Mark,
    anchor: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping {
        mapping: Mapping,
        /// The key whose value comes next.
        key: Option<Key>,
        merged: Vec<Mapping>,
    },
}

enum Key {
    Field { text: String, at: Mark },
    Merge,
}

impl Content {
    fn empty_mapping() -> Self {
        Self::Mapping { mapping: Mapping::default(), key: None, merged: Vec::new() }
    }
}

fn refuse<T>(at: Mark, message: impl Into<String>) -> Result<T, ReadError> {
    Err(ReadError { at, problem: DecodeProblem::Syntax { message: message.into() } })
}

impl Builder {
    fn new(limits: Limits) -> Self {
        Self { limits, open: Vec::new(), root: None, anchors: BTreeMap::new(), copies_left: limits.bytes }
    }

    /// Whether the next value is a key.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { content: Content::Mapping { key: None, .. }, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Open { content: Content::Mapping { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(new);
        }
    }

    fn scalar(
        &mut self,
        at: Mark,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), ReadError> {
        let plain = style == ScalarStyle::Plain;
        if self.expects_key() {
            let untagged = plain && tag.is_none();
            if text == "<<" && (untagged || tag.is_some_and(|tag| core_tag(tag) == Some("merge"))) {
                self.set_key(Key::Merge);
                return Ok(());
            }
            let key = if untagged { key_text(text) } else { Some(text.to_owned()) };
            let Some(key) = key else {
                return refuse(at, "null cannot be a key; a key is missing or must be quoted");
            };
            if anchor != 0 {
                self.remember(at, anchor, &Node::new(at, NodeValue::String(key.clone())))?;
            }
            self.set_key(Key::Field { text: key, at });
            return Ok(());
        }
        let node = scalar_node(at, text, plain, tag)?;
        self.finish(node, anchor)
    }

    fn open(&mut self, at: Mark, anchor: usize, content: Content) -> Result<(), ReadError> {
        if self.expects_key() {
            return refuse(at, "a list or an object cannot be a key");
        }
        if self.open.len() >= self.limits.depth {
            return Err(ReadError { at, problem: DecodeProblem::TooDeep { limit: self.limits.depth } });
        }
        self.open.push(Open { at, anchor, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ReadError> {
        let Some(Open { at, anchor, content }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::Sequence(items) => NodeValue::Sequence(items),
            Content::Mapping { mut mapping, merged, .. } => {
                for other in merged {
                    mapping.merge(other);
                }
                NodeValue::Mapping(mapping)
            }
        };
        self.finish(Node::new(at, value), anchor)
    }

    fn alias(&mut self, at: Mark, id: usize) -> Result<(), ReadError> {
        let Some(anchored) = self.anchors.get(&id) else {
            return refuse(at, "this alias stands inside the value that it refers to");
        };
        if self.expects_key() {
            let NodeValue::String(text) = &anchored.value else {
                return refuse(at, "an alias used as a key must refer to a text");
            };
            let text = text.clone();
            self.set_key(Key::Field { text, at });
            return Ok(());
        }
        let (weight, depth) = (anchored.weight(), anchored.depth());
        if self.open.len() + depth > self.limits.depth {
            return Err(ReadError { at, problem: DecodeProblem::TooDeep { limit: self.limits.depth } });
        }
        let mut copy = anchored.clone();
        self.pay(at, weight)?;
        copy.at = at;
        self.finish(copy, 0)
    }

    /// Hands a complete value to the collection around it.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), ReadError> {
        if anchor != 0 {
            self.remember(node.at, anchor, &node)?;
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::Sequence(items)) => items.push(node),
            Some(Content::Mapping { mapping, key, merged }) => match key.take() {
                Some(Key::Field { text, at }) => mapping.insert(text, at, node),
                Some(Key::Merge) => merge_values(node, merged)?,
                // A collection is never opened where a key is due, and scalars there become keys.
                None => {}
            },
        }
        Ok(())
    }

    fn remember(&mut self, at: Mark, anchor: usize, node: &Node) -> Result<(), ReadError> {
        self.pay(at, node.weight())?;
        self.anchors.insert(anchor, node.clone());
        Ok(())
    }

    /// Charges a copy, so that a few lines of nested aliases cannot fill the memory.
    fn pay(&mut self, at: Mark, weight: usize) -> Result<(), ReadError> {
        match self.copies_left.checked_sub(weight) {
            Some(left) => {
                self.copies_left = left;
                Ok(())
            }
            None => {
                Err(ReadError { at, problem: DecodeProblem::TooManyAliases { limit: self.limits.bytes } })
            }
        }
    }
}

/// The value of `<<`: one mapping, or a list of them of which the earlier wins.
fn merge_values(node: Node, merged: &mut Vec<Mapping>) -> Result<(), ReadError> {
    const WANTED: &str = "the value of << must be an object or a list of objects";
    match node.value {
        NodeValue::Mapping(mapping) => merged.push(mapping),
        NodeValue::Sequence(items) => {
            for item in items {
                match item.value {
                    NodeValue::Mapping(mapping) => merged.push(mapping),
                    _ => return refuse(item.at, WANTED),
                }
            }
        }
        _ => return refuse(node.at, WANTED),
    }
    Ok(())
}

/// The name of a tag such as `!!int`, or `None` for a tag of somebody's own.
fn core_tag(tag: &Tag) -> Option<&str> {
    (tag.handle() == "tag:yaml.org,2002:").then(|| tag.suffix())
}

fn scalar_node(at: Mark, text: &str, plain: bool, tag: Option<&Tag>) -> Result<Node, ReadError> {
    let wanted = tag.map(|tag| core_tag(tag).unwrap_or("str"));
    let meaning = match wanted {
        None if plain => resolve(text),
        Some("binary") => {
            return refuse(at, "!!binary is not supported: write the base64 text without the tag");
        }
        Some(name @ ("int" | "float" | "bool" | "null")) => match (name, resolve(text)) {
            ("int", meaning @ (Plain::Int(_) | Plain::Uint(_)))
            | ("float", meaning @ (Plain::Int(_) | Plain::Uint(_) | Plain::Float(_)))
            | ("bool", meaning @ Plain::Bool(_))
            | ("null", meaning @ Plain::Null) => meaning,
            _ => return refuse(at, format!("this value is not what its tag !!{name} says")),
        },
        // Quoted, !!str, !!timestamp, and scalars of somebody's own type.
        None | Some(_) => Plain::Text,
    };
    let value = match meaning {
        Plain::Null => NodeValue::Null,
        Plain::Bool(value) => NodeValue::Bool(value),
        Plain::Int(value) => NodeValue::Number(value.into()),
        Plain::Uint(value) => NodeValue::Number(value.into()),
        Plain::Float(value) => match json_number(value) {
            Some(number) => NodeValue::Number(number),
            None => return refuse(at, "infinity and NaN have no place in a Kubernetes object"),
        },
        Plain::Text => NodeValue::String(text.to_owned()),
    };
    let changed = match &value {
        NodeValue::Bool(value) => text != if *value { "true" } else { "false" },
        NodeValue::Number(number) => number.to_string() != text,
        _ => false,
    };
    // Longer spellings than this are no use in a message.
    Ok(Node { at, value, written: (changed && text.len() <= 24).then(|| text.into()) })
}
