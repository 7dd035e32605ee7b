//! From the parser's events to a JSON tree.
//!
//! It is long because each kind of event has its rules of YAML 1.1 here.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use libyaml_safer::{EventData, ScalarStyle};
use objects::memory;
use serde_json::{Map, Value};

use super::error::{Position, YamlError, YamlProblem};
use super::events::Events;
use super::key::{key_error, scalar_key, value_key};
use super::merge_key::merge;
use super::rules::Rules;
use super::scalar::{Dialect, Scalar, interpret, old_boolean, read, to_json};

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

/// How much memory the names of lists may take that are handed out, in bytes: a strict reader remembers them.
pub(super) const MAX_NAMES_MEMORY: usize = 4 << 20;

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

/// Returns the only document of `text`, within `most` bytes of memory as [`parse_within`] does. A key that occurs twice in one
/// mapping is refused, and so is a second document, unless there is nothing in it.
pub fn parse_only(text: &str, most: usize) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text, Rules { strict: true, most, ..Rules::default() });
    let first = documents.next_document()?.unwrap_or(Value::Null);
    while let Some(document) = documents.next_document()? {
        if !document.is_null() {
            return Err(YamlProblem::SecondDocument.at(documents.start()));
        }
    }
    Ok(first)
}

/// Returns the first document of `text` as [`parse_strict`] does, and refuses words such as `yes`, `off` and `n` without quotes,
/// which are booleans here and texts for other readers.
pub fn parse_plain(text: &str) -> Result<Value, YamlError> {
    let mut documents = Documents::new(text, Rules { strict: true, plain: true, ..Rules::default() });
    Ok(documents.next_document()?.unwrap_or(Value::Null))
}

/// Returns all documents of `text`, which `---` lines separate.
///
/// A document without content is `null`.
pub fn parse_all(text: &str) -> Result<Vec<Value>, YamlError> {
    Documents::new(text, Rules::default()).all()
}

/// Hands all documents of `text` to `each`, one after the other. Each of them may take `most` bytes of memory, as with
/// [`parse_within`].
///
/// # Errors
///
/// That of `each`, which ends the reading, or what is wrong with the text.
pub fn parse_each(
    text: &str,
    most: usize,
    mut each: impl FnMut(Value) -> Result<(), String>,
) -> Result<(), String> {
    let mut documents = Documents::new(text, Rules { most, ..Rules::default() });
    while let Some(document) = documents.next_document().map_err(|error| error.to_string())? {
        (documents.memory, documents.copies) = (0, 0);
        each(document)?;
    }
    Ok(())
}

/// Returns all documents of `text` as version 3 of the library of the field reads them: of the words, only `true` and
/// `false` are booleans, and what is merged into a mapping never replaces what stands in it.
///
/// Scalars of the properties `texts` of a document are texts as they are written, null excepted.
pub fn parse_all_v3(text: &str, texts: &[&str]) -> Result<Vec<Value>, YamlError> {
    Documents::new(text, Rules { dialect: Dialect::V3, texts, ..Rules::default() }).all()
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

/// What became of an event.
pub(super) enum Step {
    /// There is no further document.
    End,
    /// A document is complete.
    Document(Value),
    /// A document goes on.
    Within,
    /// The property whose lists are handed out begins; those of an equal one before it count no more.
    Lists,
    /// One of these lists begins; one of the same name before it counts no more.
    List(String),
    /// The next item of that list is complete. It is nowhere else.
    Item(Value),
}

/// Reads one document after the other.
pub(super) struct Documents<'t, R = BufReader<&'t [u8]>> {
    events: Events<'t, R>,
    rules: Rules<'t>,
    anchors: BTreeMap<String, Anchor>,
    stack: Vec<Frame>,
    nodes: u64,
    /// What has been read takes so much, with its copies; that of documents before is still held.
    memory: usize,
    alias_nodes: u64,
    /// What the copies take of it.
    copies: usize,
    root: Option<Value>,
    /// The item that is handed out next.
    item: Option<Value>,
    /// What had been read took so much, without copies, before the list that is handed out and its name.
    before_list: usize,
    /// What is remembered of the names of such lists takes so much.
    names: usize,
    /// Where the last document begins.
    start: Position,
}

impl<'t> Documents<'t> {
    fn new(text: &'t str, rules: Rules<'t>) -> Self {
        Self::of(Events::new(text), rules)
    }
}

impl<'t, R: BufRead> Documents<'t, R> {
    /// Returns the documents that these events make.
    pub(super) fn of(events: Events<'t, R>, rules: Rules<'t>) -> Self {
        Self {
            events,
            rules,
            anchors: BTreeMap::new(),
            stack: Vec::new(),
            nodes: 0,
            memory: 0,
            alias_nodes: 0,
            copies: 0,
            root: None,
            item: None,
            before_list: 0,
            names: 0,
            start: Position::START,
        }
    }

    /// Returns where the last document begins of which anything was read.
    pub(super) fn start(&self) -> Position {
        self.start
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
        loop {
            match self.step()? {
                Step::End => return Ok(None),
                Step::Document(document) => return Ok(Some(document)),
                Step::Within | Step::Lists | Step::List(_) | Step::Item(_) => {}
            }
        }
    }

    /// Takes in the next event.
    pub(super) fn step(&mut self) -> Result<Step, YamlError> {
        let event = self.events.next()?;
        let position = Position::from(event.start_mark);
        let complete = match event.data {
            EventData::StreamEnd => return Ok(Step::End),
            EventData::DocumentEnd { .. } => {
                return Ok(Step::Document(self.root.take().unwrap_or(Value::Null)));
            }
            EventData::DocumentStart { version_directive, .. } => {
                if version_directive.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                    return Err(YamlProblem::Syntax {
                        problem: "found incompatible YAML document, only version 1.1 is read".to_owned(),
                        go: "found incompatible YAML document".to_owned(),
                    }
                    .at(position));
                }
                self.start = position;
                self.anchors.clear();
                self.stack.clear();
                (self.nodes, self.alias_nodes) = (0, 0);
                None
            }
            EventData::StreamStart { .. } => None,
            EventData::Alias { anchor } => self.alias(&anchor, position)?,
            EventData::Scalar { anchor, tag, value, plain_implicit, style, .. } => {
                let implicit = plain_implicit && style == ScalarStyle::Plain;
                self.scalar(RawScalar { anchor, tag, value, implicit, position })?
            }
            EventData::SequenceStart { anchor, .. } => {
                let is_named = anchor.is_some();
                self.open(anchor, position, Content::List(Vec::new()))?;
                // A list with an anchor is needed as a whole.
                if !is_named && let Some(name) = self.handed_out_list() {
                    return Ok(Step::List(name.to_owned()));
                }
                None
            }
            EventData::MappingStart { anchor, .. } => {
                let content =
                    Content::Mapping { map: Map::new(), pending: Pending::Key, seen: BTreeMap::new() };
                self.open(anchor, position, content)?;
                if self.stack.len() == 2 && self.hands_out() {
                    return Ok(Step::Lists);
                }
                None
            }
            EventData::SequenceEnd | EventData::MappingEnd => self.close()?,
        };
        if complete.is_some() {
            self.root = complete;
        }
        if let Some(item) = self.item.take() {
            self.memory = self.before_list + self.copies;
            return Ok(Step::Item(item));
        }
        Ok(Step::Within)
    }

    /// Returns whether what is read stands in the property whose lists are handed out.
    fn hands_out(&self) -> bool {
        let is_key = |key: &String| self.rules.handed_out == Some(key.as_str());
        self.rules.handed_out.is_some()
            && self.stack.get(1).is_some_and(|frame| frame.named.is_none())
            && matches!(self.stack.first(), Some(Frame { content: Content::Mapping { pending: Pending::Value(key), .. }, .. }) if is_key(key))
    }

    /// Returns the name of the innermost list, if that is handed out item by item.
    fn handed_out_list(&self) -> Option<&str> {
        let [_, lists, Frame { named: None, content: Content::List(_), .. }] = self.stack.as_slice() else {
            return None;
        };
        match &lists.content {
            Content::Mapping { pending: Pending::Value(name), .. } if self.hands_out() => Some(name),
            Content::Mapping { .. } | Content::List(_) => None,
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
        let is_handed_out = self.handed_out_list().is_some();
        let Some(Frame { named, start, content }) = self.stack.pop() else {
            return Ok(None);
        };
        if is_handed_out {
            self.memory = self.before_list + self.copies;
            self.expect_value(Pending::Key);
            return Ok(None);
        }
        let value = match content {
            Content::List(mut items) => {
                // A list grows by doubling, and what is read may be kept for long.
                items.shrink_to_fit();
                Value::Array(items)
            }
            Content::Mapping { map, .. } => Value::Object(map),
        };
        self.keep(named, &value)?;
        self.place(value, start)
    }

    /// Puts a complete node where it belongs; returns it, if it is the root.
    fn place(&mut self, value: Value, position: Position) -> Result<Option<Value>, YamlError> {
        if self.handed_out_list().is_some() {
            self.item = Some(value);
            return Ok(None);
        }
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
        if self.rules.plain
            && implicit
            && let Some(flag) = old_boolean(&value)
        {
            return Err(YamlProblem::OldBoolean { word: value, flag }.at(position));
        }
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
            if self.rules.strict {
                self.remember(&value, position)?;
            }
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
        if self.stack.len() == 2 && self.hands_out() {
            let taken_by_key = memory::TEXT + key.len();
            self.before_list = self.memory.saturating_sub(self.copies + taken_by_key);
        }
        let is_first = matches!(self.stack.last(), Some(Frame { content: Content::Mapping { map, .. }, .. }) if map.is_empty());
        let block = if is_first { memory::BLOCK } else { 0 };
        self.charge(memory::ENTRY + block, position)?;
        if self.rules.strict {
            self.remember(&key, position)?;
        }
        self.expect_value(Pending::Value(key));
        Ok(())
    }

    /// Refuses a key that is in the innermost mapping already.
    fn remember(&mut self, key: &str, position: Position) -> Result<(), YamlError> {
        let memory = memory::ENTRY + memory::TEXT + key.len();
        if self.stack.len() == 2 && self.hands_out() {
            self.names = self.names.saturating_add(memory);
            if self.names > MAX_NAMES_MEMORY {
                return Err(YamlProblem::TooLarge { limit: MAX_NAMES_MEMORY }.at(position));
            }
        } else {
            self.charge(memory, position)?;
        }
        if let Some(Frame { content: Content::Mapping { seen, .. }, .. }) = self.stack.last_mut()
            && let Some(first) = seen.insert(key.to_owned(), position)
        {
            return Err(YamlProblem::DuplicateKey { first, key: key.to_owned() }.at(position));
        }
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
