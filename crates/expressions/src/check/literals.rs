//! Texts in expressions that can never be read: expressions of regular languages, times.

use golang::regexp::Regexp;

use crate::library;
use crate::times;
use crate::tree::{Kind, Node};
use crate::types::Type;
use crate::value::Value;

/// Adds the places of texts that can never be read.
pub(super) fn problems(node: &Node, of: &dyn Fn(&Node) -> Type, problems: &mut Vec<(usize, String)>) {
    if let Kind::Call { function, target, args } = &node.kind {
        let text = match (&**function, target, args.as_slice()) {
            ("matches", Some(_), [text])
            | ("matches", None, [_, text])
            | ("duration" | "timestamp", None, [text]) => Some(text),
            _ => None,
        };
        // There are durations of numbers, and none of a number that can be read.
        if let (Some(Node { at, kind: Kind::Literal(Value::Int(_)), .. }), "duration") = (text, &**function) {
            problems.push((*at, "invalid duration argument".to_owned()));
        }
        if let Some(Node { at, kind: Kind::Literal(Value::String(text)), .. }) = text {
            let is_readable = match &**function {
                "matches" => Regexp::compile(text).is_ok(),
                "duration" => times::parse_duration(text).is_some(),
                _ => times::parse_timestamp(text).is_some(),
            };
            if !is_readable {
                problems.push((*at, format!("invalid {function} argument")));
            }
        }
        if let ("format", Some(target), [list]) = (&**function, target, args.as_slice())
            && let Kind::Literal(Value::String(format)) = &target.kind
            && let Kind::List { items, .. } = &list.kind
        {
            let types: Vec<Type> = items.iter().map(of).collect();
            if let Err((place, problem)) = formats(format, &types) {
                let at = place.and_then(|place| items.get(place)).map_or(node.at, |item| item.at);
                problems.push((at, problem));
            }
        }
    }
    for part in parts(node) {
        self::problems(part, of, problems);
    }
}

/// Adds the places of items of lists and maps that have another type than those before them. Values of formats may differ.
pub(super) fn mixed(node: &Node, of: &dyn Fn(&Node) -> Type, problems: &mut Vec<(usize, String)>) {
    let mut compare = |items: &mut dyn Iterator<Item = &Node>| {
        let mut known: Option<Type> = None;
        for item in items {
            let found = of(item);
            match &known {
                Some(known) if !is_alike(known, &found) => {
                    problems.push((item.at, format!("expected type '{known}' but found '{found}'")));
                    return;
                }
                _ => known = Some(found),
            }
        }
    };
    match &node.kind {
        Kind::List { items, optional } => {
            let is_plain = |place: &usize| !optional.contains(place);
            compare(&mut items.iter().enumerate().filter(|(place, _)| is_plain(place)).map(|(_, item)| item));
        }
        Kind::Map(entries) => {
            compare(&mut entries.iter().map(|entry| &entry.key));
            compare(&mut entries.iter().filter(|entry| !entry.is_optional).map(|entry| &entry.value));
        }
        Kind::Call { function, target: Some(target), .. } if &**function == "format" => {
            return mixed(target, of, problems);
        }
        _ => {}
    }
    for part in parts(node) {
        mixed(part, of, problems);
    }
}

fn is_alike(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Param(_), _) | (_, Type::Dyn | Type::Param(_)) => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_alike(a, b),
        (Type::Map(a, b), Type::Map(c, d)) => is_alike(a, c) && is_alike(b, d),
        (a, b) => a == b,
    }
}

/// Checks what a format is given. An error has the place of the value, if it is about one.
fn formats(format: &str, types: &[Type]) -> Result<(), (Option<usize>, String)> {
    let mut taken = 0;
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' || rest.next_if_eq(&'%').is_some() {
            continue;
        }
        if rest.next_if_eq(&'.').is_some() {
            while rest.next_if(char::is_ascii_digit).is_some() {}
        }
        let Some(clause) = rest.next() else { return Err((None, "unexpected end of string".to_owned())) };
        if !"sdfebxXo".contains(clause) {
            let problem =
                format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
            return Err((None, problem));
        }
        let Some(of) = types.get(taken) else { return Err((None, format!("index {taken} out of range"))) };
        if let Some(problem) = misfit(clause, of) {
            let name = of.to_string();
            let name = name.split('(').next().unwrap_or_default();
            return Err((Some(taken), format!("error during formatting: {problem}, was given {name}")));
        }
        taken += 1;
    }
    if taken < types.len() {
        let count = types.len();
        let problem = format!("too many arguments supplied to string.format (expected {taken}, got {count})");
        return Err((None, problem));
    }
    Ok(())
}

/// Returns what a clause of a format takes, if it does not take this type.
fn misfit(clause: char, of: &Type) -> Option<&'static str> {
    let is_known = !matches!(of, Type::Dyn | Type::Param(_) | Type::Error);
    let (fits, problem) = match clause {
        's' => (
            !matches!(of, Type::Optional(_) | Type::Opaque(_) | Type::Object(_)),
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
        ),
        'd' => (matches!(of, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
        'f' => (matches!(of, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
        'e' => (matches!(of, Type::Double | Type::String), "scientific clause can only be used on doubles"),
        'b' => (
            matches!(of, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'o' => (matches!(of, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        _ => (
            matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    (is_known && !fits).then_some(problem)
}

/// Returns why an expression can never be run: the real server converts literals before.
pub(crate) fn unusable(node: &Node) -> Option<String> {
    const CONVERSIONS: [&str; 8] =
        ["bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"];
    if let Kind::Call { function, target, args } = &node.kind {
        let literal = |node: &Node| match &node.kind {
            Kind::Literal(value) => Some(value.clone()),
            _ => None,
        };
        let value = match (&**function, target, args.as_slice()) {
            ("find" | "findAll", Some(_), [expression, ..]) => {
                match literal(expression).unwrap_or(Value::Null) {
                    Value::String(text) => Regexp::compile(&text).err().map(|error| error.to_string()),
                    _ => None,
                }
            }
            (function, None, [value]) if CONVERSIONS.contains(&function) => constant(value)
                .and_then(|value| library::converted(function, &value).err())
                .map(|failure| failure.text),
            _ => None,
        };
        if value.is_some() {
            return value;
        }
    }
    parts(node).into_iter().find_map(unusable)
}

/// Returns the value of a node that is the same in each run; `None` if it may differ.
fn constant(node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::Literal(value) => Some(value.clone()),
        Kind::List { items, optional } if optional.is_empty() => {
            items.iter().map(constant).collect::<Option<_>>().map(Value::list)
        }
        Kind::Call { function, target: None, args } if &**function == "dyn" => constant(args.first()?),
        _ => None,
    }
}

/// Returns the parts of a node.
pub(crate) fn parts(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
        Kind::Select { operand, .. } => vec![operand],
        Kind::Call { target, args, .. } => target.iter().map(|target| &**target).chain(args).collect(),
        Kind::List { items, .. } => items.iter().collect(),
        Kind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
        Kind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
        Kind::Fold(fold) => {
            vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
        }
    }
}
