//! From the parser's events to a JSON tree.

use std::collections::BTreeMap;

use libyaml_safer::{EventData, ScalarStyle};
use objects::memory;
use serde_json::{Map, Value};

use super::base64;
use super::error::{Position, YamlError, YamlProblem};
use super::events::Events;
use super::key::{key_error, scalar_key, value_key};
use super::scalar::{Dialect, Scalar, Tag, to_json};

/// How deeply lists and mappings may be nested.
///
/// Enough for every schema in the field; little enough that the functions which
/// walk a tree never run out of stack.
pub const MAX_DEPTH: usize = 512;

/// How many nodes aliases may add to a document.
const MAX_ALIAS_NODES: u64 = 500_000;

/// How much memory the copies may take that anchors and aliases make of parts of a text, in bytes.
///
/// An anchor has a copy as an alias has one: anchors inside of anchors multiply a text, even if nothing names them.
const MAX_COPIES: usize = 64 << 20;

/// The long name of the tag of a merge key.
const MERGE_TAG: &str = "tag:yaml.org,2002:merge";

/// Returns the first document of `text`; an empty text is `null`.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text, Rules::default());
    Ok(documents.next_document()?.unwrap_or(Value::Null))
}

/// Returns the first document of `text`, whose tree and all that its anchors name may take `most` bytes of memory together.
///
/// For texts of users: a megabyte of small mappings would take hundreds.
pub fn parse_within(text: &str, most: usize) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text, Rules { most, ..Rules::default() });
    Ok(documents.next_document()?.unwrap_or(Value::Null))
}

/// Returns the first document of `text` and refuses a key that occurs twice in
/// one mapping.
pub fn parse_strict(text: &str) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text, Rules { strict: true, ..Rules::default() });
    Ok(documents.next_document()?.unwrap_or(Value::Null))
}

/// Returns all documents of `text`, which `---` lines separate.
///
/// A document without content is `null`.
pub fn parse_all(text: &str) -> Result<Vec<Value>, YamlError> {
    Documents::new(text, Rules::default()).all()
}

/// Returns all documents of `text` as version 3 of the library of the field reads them: of the words, only `true` and
/// `false` are booleans, and what is merged into a mapping never replaces what stands in it.
///
/// Scalars of the properties `texts` of a document are texts as they are written, null excepted.
pub fn parse_all_v3(text: &str, texts: &[&str]) -> Result<Vec<Value>, YamlError> {
    Documents::new(text, Rules { dialect: Dialect::V3, texts, ..Rules::default() }).all()
}

/// What readers differ in.
#[derive(Clone, Copy)]
struct Rules<'t> {
    dialect: Dialect,
    /// How much memory a document may take, in bytes.
    most: usize,
    /// A key that occurs twice in one mapping is refused.
    strict: bool,
    /// The properties of a document whose scalars are texts.
    texts: &'t [&'t str],
}

impl Default for Rules<'_> {
    fn default() -> Self {
        Self { dialect: Dialect::default(), most: usize::MAX, strict: false, texts: &[] }
    }
}

/// A named node that aliases can repeat.
enum Anchor {
    /// The node is not complete yet.
    Open,
    Complete {
        value: Value,
        nodes: u64,
        /// What a copy of it takes, in bytes.
        memory: usize,
    },
}

/// The name of a node and how much had been read when it began.
struct Named {
    name: String,
    start: Position,
    nodes: u64,
}

/// What a mapping waits for.
enum Pending {
    Key,
    Merge,
    Value(String),
}

/// A list or mapping that is not complete yet.
struct Frame {
    named: Option<Named>,
    start: Position,
    content: Content,
}

enum Content {
    List(Vec<Value>),
    Mapping {
        map: Map<String, Value>,
        pending: Pending,
        /// Where each key was; kept by the strict reader only.
        seen: BTreeMap<String, Position>,
    },
}

/// A scalar as the parser reports it.
struct RawScalar {
    anchor: Option<String>,
    tag: Option<String>,
    value: String,
    implicit: bool,
    position: Position,
}

/// Reads one document after the other.
struct Documents<'t> {
    events: Events<'t>,
    rules: Rules<'t>,
    anchors: BTreeMap<String, Anchor>,
    stack: Vec<Frame>,
    nodes: u64,
    /// What has been read takes so much, with its copies; that of documents before is still held.
    memory: usize,
    alias_nodes: u64,
    /// What the copies take of it.
    copies: usize,
}

impl<'t> Documents<'t> {
    fn new(text: &'t str, rules: Rules<'t>) -> Self {
        Self {
            events: Events::new(text),
            rules,
            anchors: BTreeMap::new(),
            stack: Vec::new(),
            nodes: 0,
            memory: 0,
            alias_nodes: 0,
            copies: 0,
        }
    }

    /// Returns the documents that are left.
    fn all(mut self) -> Result<Vec<Value>, YamlError> {
        let mut all = Vec::new();
        while let Some(document) = self.next_document()? {
            all.push(document);
        }
        Ok(all)
    }

    /// Returns the next document, or `None` behind the last one.
    fn next_document(&mut self) -> Result<Option<Value>, YamlError> {
        self.anchors.clear();
        self.stack.clear();
        (self.nodes, self.alias_nodes) = (0, 0);
        let mut root = None;
        loop {
            let event = self.events.next()?;
            let position = Position::from(event.start_mark);
            let complete = match event.data {
                EventData::StreamEnd => return Ok(None),
                EventData::DocumentEnd { .. } => return Ok(Some(root.unwrap_or(Value::Null))),
                EventData::DocumentStart { version_directive, .. } => {
                    if version_directive.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                        return Err(YamlProblem::Syntax {
                            problem: "found incompatible YAML document, only version 1.1 is read".to_owned(),
                            go: "found incompatible YAML document".to_owned(),
                        }
                        .at(position));
                    }
                    None
                }
                EventData::StreamStart { .. } => None,
                EventData::Alias { anchor } => self.alias(&anchor, position)?,
                EventData::Scalar { anchor, tag, value, plain_implicit, style, .. } => {
                    let implicit = plain_implicit && style == ScalarStyle::Plain;
                    self.scalar(RawScalar { anchor, tag, value, implicit, position })?
                }
                EventData::SequenceStart { anchor, .. } => {
                    self.open(anchor, position, Content::List(Vec::new()))?;
                    None
                }
                EventData::MappingStart { anchor, .. } => {
                    let content =
                        Content::Mapping { map: Map::new(), pending: Pending::Key, seen: BTreeMap::new() };
                    self.open(anchor, position, content)?;
                    None
                }
                EventData::SequenceEnd | EventData::MappingEnd => self.close()?,
            };
            if complete.is_some() {
                root = complete;
            }
        }
    }

    /// Notes that the node `anchor` begins.
    fn name(&mut self, anchor: Option<String>, start: Position) -> Option<Named> {
        anchor.map(|name| {
            self.anchors.insert(name.clone(), Anchor::Open);
            Named { name, start, nodes: self.nodes }
        })
    }

    /// Keeps the complete node `value` for aliases.
    fn keep(&mut self, named: Option<Named>, value: &Value) -> Result<(), YamlError> {
        if let Some(Named { name, start, nodes }) = named {
            let memory = memory::estimate(value);
            self.copy(memory + memory::ENTRY + name.len(), start)?;
            let anchor = Anchor::Complete { value: value.clone(), nodes: self.nodes - nodes, memory };
            self.anchors.insert(name, anchor);
        }
        Ok(())
    }

    /// Takes in that a part is read which takes so much memory.
    fn charge(&mut self, memory: usize, position: Position) -> Result<(), YamlError> {
        self.memory = self.memory.saturating_add(memory);
        if self.memory > self.rules.most {
            return Err(YamlProblem::TooLarge { limit: self.rules.most }.at(position));
        }
        Ok(())
    }

    /// Takes in that a part is copied which takes so much memory.
    fn copy(&mut self, memory: usize, position: Position) -> Result<(), YamlError> {
        self.copies = self.copies.saturating_add(memory);
        if self.copies > MAX_COPIES {
            return Err(YamlProblem::ExcessiveAliasing.at(position));
        }
        self.charge(memory, position)
    }

    fn open(&mut self, anchor: Option<String>, start: Position, content: Content) -> Result<(), YamlError> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(YamlProblem::TooDeep { limit: MAX_DEPTH }.at(start));
        }
        let named = self.name(anchor, start);
        self.nodes += 1;
        self.stack.push(Frame { named, start, content });
        Ok(())
    }

    /// Completes the innermost list or mapping; returns the root, if it is it.
    fn close(&mut self) -> Result<Option<Value>, YamlError> {
        let Some(Frame { named, start, content }) = self.stack.pop() else {
            return Ok(None);
        };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Mapping { map, .. } => Value::Object(map),
        };
        self.keep(named, &value)?;
        self.place(value, start)
    }

    /// Puts a complete node where it belongs; returns it, if it is the root.
    fn place(&mut self, value: Value, position: Position) -> Result<Option<Value>, YamlError> {
        if let Some(Frame { content: Content::List(_), .. }) = self.stack.last() {
            self.charge(memory::ITEM, position)?;
        }
        let Some(frame) = self.stack.last_mut() else {
            return Ok(Some(value));
        };
        match &mut frame.content {
            Content::List(items) => items.push(value),
            Content::Mapping { map, pending, .. } => match std::mem::replace(pending, Pending::Key) {
                Pending::Value(key) => {
                    map.insert(key, value);
                }
                Pending::Merge => merge(map, value, self.rules.dialect, position)?,
                Pending::Key => return Err(key_error(&value, position)),
            },
        }
        Ok(None)
    }

    fn scalar(&mut self, raw: RawScalar) -> Result<Option<Value>, YamlError> {
        let RawScalar { anchor, tag, value, implicit, position } = raw;
        let named = self.name(anchor, position);
        self.nodes += 1;
        self.charge(memory::TEXT + value.len(), position)?;
        let dialect = self.rules.dialect;
        if self.expects_text() {
            let (scalar, text) = interpret(dialect, tag.as_deref(), value, implicit, position)?;
            let value = if scalar == Scalar::Null { Value::Null } else { Value::String(text) };
            self.keep(named, &value)?;
            return self.place(value, position);
        }
        if !self.expects_key() {
            let value = read(dialect, tag.as_deref(), value, implicit, position)?;
            self.keep(named, &value)?;
            return self.place(value, position);
        }
        let is_merge = value == "<<" && (implicit || tag.as_deref() == Some(MERGE_TAG));
        if is_merge {
            self.keep(named, &Value::from("<<"))?;
            self.expect_value(Pending::Merge);
            return Ok(None);
        }
        let (scalar, text) = interpret(dialect, tag.as_deref(), value, implicit, position)?;
        if named.is_some() {
            let value = to_json(&scalar, text.clone()).unwrap_or(Value::Null);
            self.keep(named, &value)?;
        }
        let key = scalar_key(&scalar, text, position)?;
        self.set_key(key, position)?;
        Ok(None)
    }

    fn alias(&mut self, name: &str, position: Position) -> Result<Option<Value>, YamlError> {
        let (nodes, memory) = match self.anchors.get(name) {
            Some(Anchor::Complete { nodes, memory, .. }) => (*nodes, *memory),
            Some(Anchor::Open) => {
                return Err(YamlProblem::RecursiveAnchor { anchor: name.to_owned() }.at(position));
            }
            None => return Err(YamlProblem::UnknownAnchor { anchor: name.to_owned() }.at(position)),
        };
        self.nodes += nodes + 1;
        self.alias_nodes += nodes;
        if is_excessive(self.alias_nodes, self.nodes) {
            return Err(YamlProblem::ExcessiveAliasing.at(position));
        }
        self.copy(memory, position)?;
        let Some(Anchor::Complete { value, .. }) = self.anchors.get(name) else { return Ok(None) };
        let value = value.clone();
        if self.expects_key() {
            let key = value_key(&value, position)?;
            self.set_key(key, position)?;
            return Ok(None);
        }
        if self.expects_merge() && !value.is_object() {
            return Err(YamlProblem::Merge.at(position));
        }
        self.place(value, position)
    }

    fn pending(&self) -> Option<&Pending> {
        match self.stack.last() {
            Some(Frame { content: Content::Mapping { pending, .. }, .. }) => Some(pending),
            _ => None,
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.pending(), Some(Pending::Key))
    }

    /// Returns whether the value of a property comes that is a text.
    fn expects_text(&self) -> bool {
        let is_text = |key: &String| self.rules.texts.contains(&key.as_str());
        self.stack.len() == 1 && matches!(self.pending(), Some(Pending::Value(key)) if is_text(key))
    }

    fn expects_merge(&self) -> bool {
        matches!(self.pending(), Some(Pending::Merge))
    }

    fn expect_value(&mut self, next: Pending) {
        if let Some(Frame { content: Content::Mapping { pending, .. }, .. }) = self.stack.last_mut() {
            *pending = next;
        }
    }

    /// Notes the key of the value that comes next.
    fn set_key(&mut self, key: String, position: Position) -> Result<(), YamlError> {
        let is_first = matches!(self.stack.last(), Some(Frame { content: Content::Mapping { map, .. }, .. }) if map.is_empty());
        let block = if is_first { memory::BLOCK } else { 0 };
        self.charge(memory::ENTRY + block, position)?;
        if self.rules.strict
            && let Some(Frame { content: Content::Mapping { seen, .. }, .. }) = self.stack.last_mut()
            && let Some(first) = seen.insert(key.clone(), position)
        {
            return Err(YamlProblem::DuplicateKey { first, key }.at(position));
        }
        self.expect_value(Pending::Value(key));
        Ok(())
    }
}

/// Returns whether aliases make up too much of a document.
///
/// Small documents may consist of aliases almost entirely; the larger a document
/// is, the smaller is the share.
fn is_excessive(alias_nodes: u64, nodes: u64) -> bool {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    if alias_nodes <= 100 || nodes <= 1_000 {
        return false;
    }
    if alias_nodes > MAX_ALIAS_NODES {
        return true;
    }
    #[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
    let (alias_nodes, nodes) = (alias_nodes as f64, nodes as f64);
    let growth = ((nodes - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    alias_nodes / nodes > 0.99 - 0.89 * growth
}

/// Returns what a scalar means, and its text.
pub(super) fn interpret(
    dialect: Dialect,
    tag: Option<&str>,
    text: String,
    implicit: bool,
    position: Position,
) -> Result<(Scalar, String), YamlError> {
    let Some(uri) = tag else {
        let scalar = if implicit { dialect.resolve(&text) } else { Scalar::Text };
        return Ok((scalar, text));
    };
    let Some(tag) = Tag::from_uri(uri) else {
        return Ok((Scalar::Text, text));
    };
    let unfit = |text: &str| {
        let own = dialect.resolve(text).tag().to_owned();
        YamlProblem::Tag { text: text.to_owned(), tag: tag.short().to_owned(), own }.at(position)
    };
    if tag == Tag::Binary {
        let text = base64::decode(&text).ok_or_else(|| unfit(&text))?;
        return Ok((Scalar::Text, text));
    }
    match dialect.resolve_tagged(tag, &text) {
        Some(scalar) => Ok((scalar, text)),
        None => Err(unfit(&text)),
    }
}

fn read(
    dialect: Dialect,
    tag: Option<&str>,
    text: String,
    implicit: bool,
    position: Position,
) -> Result<Value, YamlError> {
    let (scalar, text) = interpret(dialect, tag, text, implicit, position)?;
    if matches!(scalar, Scalar::Float(number) if !number.is_finite()) {
        return Err(YamlProblem::NotJson { text }.at(position));
    }
    Ok(to_json(&scalar, text).unwrap_or(Value::Null))
}

/// Merges `value`, a mapping or a list of them, into `map`.
///
/// What stands in `map` so far is overridden, or stays in version 3; of a list, the first mapping wins.
fn merge(
    map: &mut Map<String, Value>,
    value: Value,
    dialect: Dialect,
    position: Position,
) -> Result<(), YamlError> {
    let mappings = match value {
        mapping @ Value::Object(_) => vec![mapping],
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(YamlProblem::Merge.at(position));
        }
    };
    let mut merged = Map::new();
    for mapping in mappings.into_iter().rev() {
        let Value::Object(mapping) = mapping else { return Err(YamlProblem::Merge.at(position)) };
        merged.extend(mapping);
    }
    for (key, value) in merged {
        if dialect == Dialect::V2 || !map.contains_key(&key) {
            map.insert(key, value);
        }
    }
    Ok(())
}
