//! Compiles the text of a filter.

use std::sync::LazyLock;

use jaq_core::compile::Undefined;
use jaq_core::load::lex::{Lexer, Token};
use jaq_core::load::parse::{Def, Parser, Term};
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, native};

use super::desugar::Desugarer;
use super::picking::only_picks;
use super::runtime::Runtime;
use super::{Filter, JqError, alternatives, builtins, folds, generators, inputs, regex, threads, tokens};

/// Definitions for all filters beside jaq's library.
static PRELUDE: LazyLock<Vec<Def<&'static str>>> = LazyLock::new(|| {
    let own = load::parse(include_str!("prelude.jq"), |parser| parser.defs()).unwrap_or_default();
    jaq_core::defs().chain(jaq_std::defs()).chain(own).collect()
});

/// Further definitions for the `jq` command, which has inputs and a standard error.
const PROGRAM_PRELUDE: &str = include_str!("command.jq");

/// The name of the filter itself, among the definitions beside it.
const MAIN: &str = "native_main";

/// How deep brackets may nest in the text of a filter.
const DEEPEST_FILTER: usize = 256;

/// How many parts a filter may have: words, numbers and signs. Its tree is as deep at most, and it is walked by functions
/// that call themselves.
const MOST_TOKENS: usize = 10_000;

impl Filter {
    /// Compiles a filter.
    pub fn compile(text: &str) -> Result<Self, JqError> {
        // Who asks for it may have a small stack, and the tree may be deep.
        let read = || Self::read(text, &[], jaq_core::funs::<Runtime>(), "");
        let none = || Err(JqError::Limit("no thread can be started to read the jq filter".to_owned()));
        threads::on_large_stack(read).unwrap_or_else(none)
    }

    /// Compiles a filter that can read inputs and sees variables with these names, written with their `$`.
    ///
    /// The program runs on a thread with a large stack, so that it starts no other one for this.
    pub(super) fn of_program(text: &str, names: &[&str]) -> Result<Self, JqError> {
        let functions = jaq_core::funs::<Runtime>().chain(inputs::functions());
        Self::read(text, names, functions, PROGRAM_PRELUDE)
    }

    fn read(
        text: &str,
        names: &[&str],
        functions: impl Iterator<Item = native::Fun<Runtime>>,
        definitions: &'static str,
    ) -> Result<Self, JqError> {
        if nesting(text) > DEEPEST_FILTER {
            return Err(JqError::Syntax(format!("its brackets nest deeper than {DEEPEST_FILTER}")));
        }
        let text = with_letters(text);
        let arena = Arena::default();
        let main = parse(&text)?;
        let only_picks = only_picks(&text, &main);
        let main = Desugarer::new(&arena).term(main);
        // Definitions that come later win over those of the library.
        let own = load::parse(definitions, |parser| parser.defs()).unwrap_or_default();
        let main = Def { name: MAIN, args: Vec::new(), body: main };
        let all = PRELUDE.iter().cloned().chain(own).chain([main]);
        let file = File { code: MAIN, path: () };
        let modules = Loader::new(all).load(&arena, file).map_err(|_| JqError::Syntax(String::new()))?;
        let functions = functions
            .chain(jaq_std::funs())
            .chain(builtins::functions())
            .chain(folds::functions())
            .chain(generators::functions())
            .chain(regex::functions());
        let globals = ["$ENV", "$__loc__"].into_iter().chain(names.iter().copied());
        let compiled = Compiler::default().with_funs(functions).with_global_vars(globals).compile(modules);
        let compiled = compiled.map_err(|errors| {
            let undefined = errors.into_iter().flat_map(|(_, errors)| errors).next();
            JqError::Syntax(undefined.map_or_else(String::new, |(name, kind)| {
                // One of that name may be defined with another number of arguments.
                let arity =
                    if let Undefined::Filter(arity) = kind { format!("/{arity}") } else { String::new() };
                format!("{} {name}{arity} is not defined{}", kind.as_str(), position(&text, name))
            }))
        })?;
        Ok(Self { compiled, text: text.into(), only_picks })
    }
}

/// Returns the tree of a filter, or what is wrong with its text and where.
fn parse(text: &str) -> Result<Term<&str>, JqError> {
    let tokens = Lexer::new(text).lex().map_err(|errors| {
        let error = errors.into_iter().next();
        error.map(|(expected, found)| format!("expected {}{}", expected.as_str(), position(text, found)))
    });
    let tokens = tokens.map_err(|error| JqError::Syntax(error.unwrap_or_default()))?;
    let tokens = tokens::fitted(text, tokens, false);
    if tokens::count(&tokens) > MOST_TOKENS {
        let problem = format!("it has more than {MOST_TOKENS} parts: words, numbers and signs");
        return Err(JqError::Syntax(problem));
    }
    Parser::new(&tokens).parse(Parser::term).map_err(|errors| {
        JqError::Syntax(match (alternatives::first(text), errors.into_iter().next()) {
            (Some(alternative), _) => format!(
                "alternatives of a destructuring, `?//`{}, are not supported: test the value with `type` and `if`",
                position_of(text, alternative)
            ),
            (None, Some((expected, found))) => {
                format!("expected {}{}", expected.as_str(), position(text, Token::opt_as_str(found, text)))
            }
            (None, None) => String::new(),
        })
    })
}

/// Returns the text with each letter that is written as a pair of escapes, `\ud83d\ude00`, as itself.
fn with_letters(text: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('\\') {
        let (before, escape) = rest.split_at(position);
        out.push_str(before);
        let pair = unit(escape).zip(escape.get(6..).and_then(unit));
        let letter = pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|letter| u32::from(*letter) > 0xffff)
        });
        let length = if let Some(letter) = letter {
            out.push(letter);
            12
        } else {
            // Two bytes, or less at the end: an escaped backslash begins no other escape.
            let length = escape.char_indices().nth(2).map_or(escape.len(), |(position, _)| position);
            out.push_str(escape.get(..length).unwrap_or_default());
            length
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns how deep brackets nest in a text. Those in strings and comments count: this is a limit, not a parser.
fn nesting(text: &str) -> usize {
    let mut depth = 0_usize;
    text.bytes()
        .map(|byte| {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth
        })
        .max()
        .unwrap_or(0)
}

/// Returns the position of `part`, a slice of `text`, as ` at line …, column …`.
fn position(text: &str, part: &str) -> String {
    position_of(text, (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize))
}

/// Returns the position of the byte `start` of a text.
fn position_of(text: &str, start: usize) -> String {
    let Some(before) = text.get(..start) else { return " at its end".to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    format!(" at line {line}, column {column}")
}
