//! Where in a text a value is written.

use libyaml_safer::{EventData, ScalarStyle};

use super::build::MAX_DEPTH;
use super::error::Position;
use super::events::Events;
use super::key::scalar_key;
use super::scalar::{Dialect, interpret};

/// Returns where the value at the JSON pointer `pointer` is written in the
/// first document of `text`: the place of its key, or of the list's item.
///
/// When the value is not written in the text (a property is missing, or comes
/// through an alias), it is the place of the innermost value around it. Returns
/// `None` when the text has no such document or cannot be read that far.
pub fn locate(text: &str, pointer: &str) -> Option<Position> {
    let wanted: Vec<String> =
        pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    let mut search = Search { wanted, stack: Vec::new(), best: None };
    let mut events = Events::new(text);
    loop {
        let Ok(event) = events.next() else {
            return search.found();
        };
        let position = Position::from(event.start_mark);
        match event.data {
            EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
            EventData::StreamEnd | EventData::DocumentEnd { .. } => return search.found(),
            EventData::Alias { .. } => search.visit(None, position),
            EventData::Scalar { tag, value, plain_implicit, style, .. } => {
                let implicit = plain_implicit && style == ScalarStyle::Plain;
                let key = interpret(Dialect::V2, tag.as_deref(), value.clone(), implicit, position)
                    .and_then(|(scalar, text)| scalar_key(&scalar, text, position))
                    .unwrap_or(value);
                search.visit(Some(key), position);
            }
            EventData::SequenceStart { .. } => search.enter(Level::List { index: 0 }, position),
            EventData::MappingStart { .. } => {
                search.enter(Level::Mapping { key: None }, position);
            }
            EventData::SequenceEnd | EventData::MappingEnd => search.leave(),
        }
        if search.stack.len() > MAX_DEPTH {
            return search.found();
        }
    }
}

/// An unfinished list or mapping.
enum Level {
    List { index: usize },
    Mapping { key: Option<(String, Position)> },
}

/// A walk through the events that compares each node's path with the wanted one.
struct Search {
    wanted: Vec<String>,
    stack: Vec<Level>,
    /// How many tokens fit, and where that value is.
    best: Option<(usize, Position)>,
}

impl Search {
    fn found(&self) -> Option<Position> {
        self.best.map(|(_, position)| position)
    }

    /// Takes in a node that is complete at once.
    fn visit(&mut self, key: Option<String>, position: Position) {
        if let Some(Level::Mapping { key: open @ None }) = self.stack.last_mut() {
            *open = Some((key.unwrap_or_default(), position));
            return;
        }
        self.compare(position);
        self.advance();
    }

    /// Takes in the beginning of a list or mapping.
    fn enter(&mut self, level: Level, position: Position) {
        self.compare(position);
        self.stack.push(level);
    }

    /// Takes in the end of a list or mapping.
    fn leave(&mut self) {
        self.stack.pop();
        self.advance();
    }

    /// Moves on to the next item or key.
    fn advance(&mut self) {
        match self.stack.last_mut() {
            Some(Level::List { index }) => *index += 1,
            Some(Level::Mapping { key }) => *key = None,
            None => {}
        }
    }

    /// Notes the node that begins at `position` if it is the wanted one or
    /// lies around it.
    fn compare(&mut self, position: Position) {
        let depth = self.stack.len();
        if depth > self.wanted.len() || self.best.is_some_and(|(best, _)| best > depth) {
            return;
        }
        let fits = self.stack.iter().zip(&self.wanted).all(|(level, token)| match level {
            Level::List { index } => *token == index.to_string(),
            Level::Mapping { key } => key.as_ref().is_some_and(|(key, _)| key == token),
        });
        if fits {
            let place = match self.stack.last() {
                Some(Level::Mapping { key: Some((_, place)) }) => *place,
                _ => position,
            };
            self.best = Some((depth, place));
        }
    }
}
