//! Lists of a document that is too large for a tree: their items are handed out one by one.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde_json::Value;

use super::build::{Documents, Step};
use super::error::{YamlError, YamlProblem};
use super::events::Events;
use super::rules::Rules;

/// How much of a stream is read until something in it is complete, in bytes.
///
/// It limits the length of texts and comments, which the parser holds as a whole.
const MOST_WITHOUT_EVENT: usize = 1 << 20;

/// The byte order mark that some editors put in front of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What a stream says of the lists that are handed out.
#[derive(Clone, Debug, PartialEq)]
pub enum ListPart {
    /// The mapping of lists begins. What one with the same key before it said counts no more.
    Lists,
    /// The list with this key begins. What one with the same key before it said counts no more.
    List(String),
    /// The next item of that list.
    Item(Value),
}

/// Reads the first document of a stream, whose property `key` is a mapping of lists: `entries: {a: [1, 2], b: [3]}`.
///
/// The items of these lists are handed to `each` as they come, and are not in the tree that is returned; lists that have
/// an anchor, or come from an alias or a merge key, are there as a whole. The tree, its anchors and one item may take
/// `most` bytes of memory together.
///
/// # Errors
///
/// That of `each`, which ends the reading, or what is wrong with the text.
pub fn parse_lists<E: From<YamlError>>(
    stream: impl BufRead,
    key: &str,
    most: usize,
    each: impl FnMut(ListPart) -> Result<(), E>,
) -> Result<Value, E> {
    read_lists(stream, (key, most), false, each)
}

/// Does the same with a stream that has to be one document, in which no key is there twice in one mapping: a second one is an error,
/// unless there is nothing in it. The names of the lists may take 4 MiB beside the rest.
///
/// # Errors
///
/// Those of [`parse_lists`].
pub fn parse_only_lists<E: From<YamlError>>(
    stream: impl BufRead,
    key: &str,
    most: usize,
    each: impl FnMut(ListPart) -> Result<(), E>,
) -> Result<Value, E> {
    read_lists(stream, (key, most), true, each)
}

fn read_lists<E: From<YamlError>>(
    stream: impl BufRead,
    (key, most): (&str, usize),
    is_only: bool,
    mut each: impl FnMut(ListPart) -> Result<(), E>,
) -> Result<Value, E> {
    let unnoticed = Rc::new(Cell::new(0));
    let mut stream = Paced { stream, unnoticed: Rc::clone(&unnoticed) };
    let begins_with_mark = stream.fill_buf().is_ok_and(|bytes| bytes.starts_with(BYTE_ORDER_MARK));
    if begins_with_mark {
        stream.consume(BYTE_ORDER_MARK.len());
    }
    let rules = Rules::handing_out(key, most, is_only);
    let mut documents = Documents::of(Events::of_stream(stream), rules);
    let mut first = None;
    loop {
        let step = documents.step().map_err(|error| limited(error, unnoticed.get()))?;
        unnoticed.set(0);
        match step {
            Step::Within | Step::Document(Value::Null) if first.is_some() => {}
            Step::End if first.is_some() => return Ok(first.unwrap_or_default()),
            Step::Document(_) | Step::Lists | Step::List(_) | Step::Item(_) if first.is_some() => {
                return Err(YamlProblem::SecondDocument.at(documents.start()).into());
            }
            Step::Document(document) if is_only => first = Some(document),
            Step::Within => {}
            Step::Lists => each(ListPart::Lists)?,
            Step::List(name) => each(ListPart::List(name))?,
            Step::Item(item) => each(ListPart::Item(item))?,
            Step::Document(document) => return Ok(document),
            Step::End => return Ok(Value::Null),
        }
    }
}

/// Returns what is wrong: that the stream was not read on, or what the parser says.
fn limited(error: YamlError, unnoticed: usize) -> YamlError {
    if unnoticed > MOST_WITHOUT_EVENT {
        return YamlProblem::TooLong { limit: MOST_WITHOUT_EVENT }.at(error.position());
    }
    error
}

/// A stream that breaks off when too much of it was read without an event.
struct Paced<R> {
    stream: R,
    /// How much was read since the last event.
    unnoticed: Rc<Cell<usize>>,
}

impl<R: BufRead> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(available) {
            *to = *from;
        }
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Paced<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unnoticed.get() > MOST_WITHOUT_EVENT {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.stream.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.unnoticed.set(self.unnoticed.get().saturating_add(amount));
        self.stream.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use serde_json::json;

    use super::super::build::MAX_NAMES_MEMORY;
    use super::*;

    /// Returns what is handed out, as text, and the rest of the document.
    fn read(text: &str, most: usize) -> (Vec<String>, Result<Value, YamlError>) {
        let mut parts = Vec::new();
        // Small parts, so that characters are torn apart.
        let stream = BufReader::with_capacity(7, text.as_bytes());
        let rest = parse_lists(stream, "entries", most, |part| {
            parts.push(match part {
                ListPart::Lists => "lists".to_owned(),
                ListPart::List(name) => name,
                ListPart::Item(item) => item.to_string(),
            });
            Ok(())
        });
        (parts, rest)
    }

    #[test]
    fn items_are_handed_out_and_the_rest_is_a_tree() {
        let text = "\u{feff}kind: x\nentries:\n  a:\n  - {k: [1, {m: 2}]}\n  - é\n  b: []\n  c: 7\n  d:\n  - [1]\n\
                    other: {entries: {a: [1]}}\nlist: [1]";
        let (parts, rest) = read(text, 1 << 20);
        assert_eq!(parts, ["lists", "a", r#"{"k":[1,{"m":2}]}"#, r#""é""#, "b", "d", "[1]"]);
        let expected =
            json!({"kind": "x", "entries": {"c": 7}, "other": {"entries": {"a": [1]}}, "list": [1]});
        assert_eq!(rest.unwrap(), expected);
    }

    #[test]
    fn lists_of_anchors_and_aliases_come_as_a_whole() {
        let text = "x: &x [1]\nentries:\n  a: *x\n  b: &b [2]\n  c: [*x, 3]\n  <<: {d: [4]}\n";
        let (parts, rest) = read(text, 1 << 20);
        assert_eq!(parts, ["lists", "c", "[1]", "3"]);
        assert_eq!(rest.unwrap(), json!({"x": [1], "entries": {"a": [1], "b": [2], "d": [4]}}));
        let (parts, rest) = read("entries: &e {a: [1]}\n", 1 << 20);
        assert_eq!((parts, rest.unwrap()), (vec![], json!({"entries": {"a": [1]}})));
    }

    #[test]
    fn memory_is_limited_for_an_item_and_not_for_all() {
        let text = format!("entries: {{a: [{}]}}", "{b: c},".repeat(10_000));
        let (parts, rest) = read(&text, 20_000);
        assert_eq!((parts.len(), rest.unwrap()), (10_002, json!({"entries": {}})));
        let large = format!("entries: {{a: [[{}]]}}", "{b: c},".repeat(100));
        assert!(matches!(read(&large, 20_000).1.unwrap_err().problem, YamlProblem::TooLarge { .. }));
        let parts = |count: usize, part: fn(usize) -> String| -> String {
            (0..count).map(part).collect::<Vec<_>>().concat()
        };
        let anchors = format!("entries: {{a: [{}]}}", parts(100, |number| format!("&a{number} {{b: c}},")));
        assert!(matches!(read(&anchors, 20_000).1.unwrap_err().problem, YamlProblem::TooLarge { .. }));
        let names = format!("entries: {{{}}}", parts(1_000, |name| format!("a{name}: [],")));
        assert!(read(&names, 20_000).1.is_ok());
    }

    #[test]
    fn a_text_without_end_is_not_read_to_its_end() {
        for begin in ["a: ", "a: '", "a: |\n  ", "# ", "a: >\n\n  "] {
            let text = format!("{begin}{}", "long ".repeat(1 << 20));
            let problem = read(&text, usize::MAX).1.unwrap_err().problem;
            assert!(matches!(problem, YamlProblem::TooLong { .. }), "{begin}: {problem}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let (_, rest) = read("entries:\n  a: [b\n", 1 << 20);
        assert!(rest.unwrap_err().to_string().starts_with("line "));
        let mut stream: &[u8] = b"entries: {a: [b\xff]}";
        let rest: Result<Value, YamlError> = parse_lists(&mut stream, "entries", 1 << 20, |_| Ok(()));
        assert!(rest.is_err());
        assert_eq!(read("", 1).1, Ok(Value::Null));
    }

    #[test]
    fn a_stream_that_has_to_be_one_document_has_no_key_twice() {
        let only =
            |text: &str| parse_only_lists(text.as_bytes(), "entries", 1 << 20, |_| Ok::<(), YamlError>(()));
        for (text, line) in [
            ("entries: {a: [1]}\nentries: {}\n", 2),
            ("entries: &a {}\nkind: x\n\"entries\": [1]\n", 3),
            ("entries:\n  a: [1]\n  b: []\n  a: [2]\n", 4),
            ("entries:\n  a: &a [1]\n  b: *a\n  a: *a\n", 4),
            ("entries:\n  a:\n  - {k: 1}\n  - {k: 1, n: {m: 1, m: 1}}\n", 4),
            ("x:\n  y: 1\n  y: 1\nentries: {}\n", 3),
        ] {
            let error = only(text).unwrap_err();
            assert!(matches!(error.problem, YamlProblem::DuplicateKey { .. }), "{text}: {error}");
            assert_eq!(error.position().line, line, "{text}");
        }
        for text in ["entries: {a: [{a: 1}, {a: 1}], b: [{a: 1}]}", "entries: {a: {entries: 1}}\na: 1"] {
            assert!(only(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_of_lists_are_remembered_within_a_limit_of_their_own() {
        let only =
            |text: &str| parse_only_lists(text.as_bytes(), "entries", 20_000, |_| Ok::<(), YamlError>(()));
        let names = |count: usize| -> String {
            let names: Vec<String> =
                (0..count).map(|name| format!("a-name-of-some-length-{name}: []")).collect();
            format!("entries: {{{}}}", names.join(","))
        };
        assert!(only(&names(20_000)).is_ok());
        let error = only(&names(200_000)).unwrap_err();
        assert_eq!(error.problem, YamlProblem::TooLarge { limit: MAX_NAMES_MEMORY });
        // What an item has beside others is forgotten with it.
        let items = "{b: {c: 1, d: 2}},".repeat(10_000);
        assert!(only(&format!("entries: {{a: [{items}]}}")).is_ok());
    }

    #[test]
    fn a_stream_that_has_to_be_one_document_has_nothing_behind_it() {
        let only =
            |text: &str| parse_only_lists(text.as_bytes(), "entries", 1 << 20, |_| Ok::<(), YamlError>(()));
        for text in ["entries: {a: [1]}", "---\nentries: {}\n...\n", "entries: {}\n---\n# nothing\n", ""] {
            assert!(only(text).is_ok(), "{text}");
        }
        for second in ["entries: {}", "entries: {a: [1]}", "[1]", "a"] {
            let error = only(&format!("entries: {{}}\n---\n{second}\n")).unwrap_err();
            assert_eq!(
                (error.problem.clone(), error.position().line),
                (YamlProblem::SecondDocument, 2),
                "{second}: {error}"
            );
        }
    }
}
