//! Rewrites the syntax tree of a filter so that jaq returns what gojq returns.
//!
//! Two things differ in jaq: where several operands have several results, the combinations come in another order; and a step
//! of `reduce` or `foreach` with no result, or with several, continues differently. Terms with one result stay as they are.

use jaq_core::load::Arena;
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};

use super::cardinality::{Cardinality, Scope, cardinality, is_among, of_part};

/// Functions of the library whose arguments are combined like operands: the last one changes last.
const COMBINING: &str = "atan2 copysign drem fdim fma fmax fmin fmod hypot jn ldexp nextafter nexttoward pow remainder scalb \
    scalbln setpath yn";

type Tree<'s> = Term<&'s str>;

/// Variables that no filter can name, because of their space.
const RIGHT: &str = "$ right";
const START: &str = "$ start";
const STATE: &str = "$ state";

/// Rewrites a filter.
pub(super) struct Desugarer<'s> {
    scope: Scope<'s>,
    /// Where names of variables are kept.
    names: &'s Arena,
    variables: usize,
}

fn boxed(term: Tree<'_>) -> Box<Tree<'_>> {
    Box::new(term)
}

fn pipe<'s>(left: Tree<'s>, right: Tree<'s>) -> Tree<'s> {
    Term::BinOp(boxed(left), BinaryOp::Pipe(None), boxed(right))
}

fn bind<'s>(value: Tree<'s>, name: &'s str, then: Tree<'s>) -> Tree<'s> {
    Term::BinOp(boxed(value), BinaryOp::Pipe(Some(Pattern::Var(name))), boxed(then))
}

impl<'s> Desugarer<'s> {
    pub(super) fn new(names: &'s Arena) -> Self {
        Self { scope: Scope::new(), names, variables: 0 }
    }

    /// Returns the filter as it is to be compiled.
    pub(super) fn term(&mut self, term: Tree<'s>) -> Tree<'s> {
        match term {
            Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => term,
            Term::Str(format, parts) => self.string(format, parts),
            Term::Arr(inner) => Term::Arr(inner.map(|inner| boxed(self.term(*inner)))),
            Term::Obj(entries) => Term::Obj(
                entries
                    .into_iter()
                    .map(|(key, value)| (self.term(key), value.map(|v| self.term(v))))
                    .collect(),
            ),
            Term::Neg(inner) => Term::Neg(boxed(self.term(*inner))),
            Term::Label(name, inner) => Term::Label(name, boxed(self.term(*inner))),
            Term::TryCatch(inner, catch) => {
                Term::TryCatch(boxed(self.term(*inner)), catch.map(|catch| boxed(self.term(*catch))))
            }
            Term::IfThenElse(cases, other) => Term::IfThenElse(
                cases.into_iter().map(|(condition, then)| (self.term(condition), self.term(then))).collect(),
                other.map(|other| boxed(self.term(*other))),
            ),
            Term::Fold(name, over, pattern, parts) => self.fold(name, *over, pattern, parts),
            Term::Def(definitions, inner) => self.definitions(definitions, *inner),
            Term::Call(name, arguments) => {
                let arguments = arguments.into_iter().map(|argument| self.term(argument)).collect();
                self.call(name, arguments)
            }
            Term::Path(term, path) => self.path(*term, path),
            Term::BinOp(left, op, right) => self.operation(*left, op, *right),
        }
    }

    fn cardinality(&self, term: &Tree<'s>) -> Cardinality {
        cardinality(term, &self.scope)
    }

    fn is_many(&self, term: &Tree<'s>) -> bool {
        self.cardinality(term) == Cardinality::Many
    }

    fn operation(&mut self, left: Tree<'s>, op: BinaryOp<&'s str>, right: Tree<'s>) -> Tree<'s> {
        let op = match op {
            BinaryOp::Pipe(Some(pattern)) => BinaryOp::Pipe(Some(self.pattern(pattern))),
            other => other,
        };
        let (left, right) = (self.term(left), self.term(right));
        if matches!(op, BinaryOp::Math(_) | BinaryOp::Cmp(_)) && self.is_many(&right) && self.is_many(&left) {
            bind(right, RIGHT, Term::BinOp(boxed(left), op, boxed(Term::Var(RIGHT))))
        } else {
            Term::BinOp(boxed(left), op, boxed(right))
        }
    }

    fn pattern(&mut self, pattern: Pattern<&'s str>) -> Pattern<&'s str> {
        match pattern {
            Pattern::Var(name) => Pattern::Var(name),
            Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(|item| self.pattern(item)).collect()),
            Pattern::Obj(entries) => {
                let entry = |(key, inner)| (self.term(key), self.pattern(inner));
                Pattern::Obj(entries.into_iter().map(entry).collect())
            }
        }
    }

    /// Replaces a term by a new variable and adds both to `bound`.
    fn take_out(&mut self, term: &mut Tree<'s>, bound: &mut Vec<(&'s str, Tree<'s>)>) {
        if self.is_many(term) {
            self.variables += 1;
            let name = self.names.alloc(format!("$ {}", self.variables)).as_str();
            bound.push((name, std::mem::replace(term, Term::Var(name))));
        }
    }

    /// Binds variables around a term: the first of them changes first.
    fn put_around(bound: Vec<(&'s str, Tree<'s>)>, term: Tree<'s>) -> Tree<'s> {
        bound.into_iter().fold(term, |term, (name, value)| bind(value, name, term))
    }

    fn string(&mut self, format: Option<&'s str>, parts: Vec<StrPart<&'s str, Tree<'s>>>) -> Tree<'s> {
        let mut many = 0;
        let mut parts: Vec<_> = parts
            .into_iter()
            .map(|part| match part {
                StrPart::Term(term) => {
                    let term = self.term(term);
                    many += usize::from(self.is_many(&term));
                    StrPart::Term(term)
                }
                StrPart::Str(text) => StrPart::Str(text),
                StrPart::Char(letter) => StrPart::Char(letter),
            })
            .collect();
        let mut bound = Vec::new();
        if many > 1 {
            for part in &mut parts {
                match part {
                    StrPart::Term(term) => self.take_out(term, &mut bound),
                    StrPart::Str(_) | StrPart::Char(_) => {}
                }
            }
        }
        Self::put_around(bound, Term::Str(format, parts))
    }

    fn call(&mut self, name: &'s str, mut arguments: Vec<Tree<'s>>) -> Tree<'s> {
        let arity = arguments.len();
        let is_own = self.scope.iter().any(|((other, count), _)| *other == name && *count == arity);
        let mut bound = Vec::new();
        if is_among(name, COMBINING) && !is_own && arguments.iter().filter(|a| self.is_many(a)).count() > 1 {
            for argument in &mut arguments {
                self.take_out(argument, &mut bound);
            }
        }
        Self::put_around(bound, Term::Call(name, arguments))
    }

    /// A later part of a path changes last; of a slice the start does.
    fn path(&mut self, term: Tree<'s>, path: Path<Tree<'s>>) -> Tree<'s> {
        let term = self.term(term);
        let mut is_many = self.is_many(&term);
        let mut bound = Vec::new();
        let mut parts = Vec::with_capacity(path.0.len());
        for (part, opt) in path.0 {
            let part = match part {
                Part::Index(index) => Part::Index(self.term(index)),
                Part::Range(from, to) => {
                    Part::Range(from.map(|from| self.term(from)), to.map(|to| self.term(to)))
                }
            };
            let mut part = (part, opt);
            let count = of_part(&part, &self.scope);
            if is_many {
                match &mut part.0 {
                    Part::Index(index) => self.take_out(index, &mut bound),
                    Part::Range(from, to) => {
                        for bound_of in to.iter_mut().chain(from) {
                            self.take_out(bound_of, &mut bound);
                        }
                    }
                }
            }
            is_many = is_many || count == Cardinality::Many;
            parts.push(part);
        }
        Self::put_around(bound, Term::Path(boxed(term), Path(parts)))
    }

    /// A step without result keeps the state, and of several the last becomes it.
    fn fold(
        &mut self,
        name: &'s str,
        over: Tree<'s>,
        pattern: Pattern<&'s str>,
        parts: Vec<Tree<'s>>,
    ) -> Tree<'s> {
        let over = self.term(over);
        let pattern = self.pattern(pattern);
        let mut parts: Vec<_> = parts.into_iter().map(|part| self.term(part)).collect();
        let is_one = parts.get(1).is_none_or(|update| self.cardinality(update) == Cardinality::One);
        match (name, parts.as_mut_slice()) {
            ("reduce", [_, update]) if !is_one => {
                let step = std::mem::take(update);
                *update = Term::Call("native_last_state", vec![step]);
                Term::Fold(name, boxed(over), pattern, parts)
            }
            ("foreach", [init, update, rest @ ..]) if !is_one && rest.len() < 2 => {
                let (init, update) = (std::mem::take(init), std::mem::take(update));
                let result = rest.first_mut().map(std::mem::take);
                foreach(over, pattern, init, update, result)
            }
            _ => Term::Fold(name, boxed(over), pattern, parts),
        }
    }

    fn definitions(&mut self, definitions: Vec<Def<&'s str>>, inner: Tree<'s>) -> Tree<'s> {
        let before = self.scope.len();
        let definitions = definitions.into_iter().map(|definition| self.definition(definition)).collect();
        let inner = self.term(inner);
        self.scope.truncate(before);
        Term::Def(definitions, boxed(inner))
    }

    /// Puts the check of the limits at the beginning of each definition.
    fn definition(&mut self, definition: Def<&'s str>) -> Def<&'s str> {
        let Def { name, args, body } = definition;
        let before = self.scope.len();
        self.scope.push(((name, args.len()), Cardinality::Many));
        // An argument `$x` can be called as `x`, too.
        let mut values = Vec::new();
        for argument in args.iter().copied() {
            let count = match argument.strip_prefix('$') {
                Some(name) => {
                    values.push(Def { name, args: Vec::new(), body: Term::Var(argument) });
                    Cardinality::One
                }
                None => Cardinality::Many,
            };
            self.scope.push(((argument.trim_start_matches('$'), 0), count));
        }
        let body = self.term(body);
        let count = self.cardinality(&body);
        self.scope.truncate(before);
        self.scope.push(((name, args.len()), if args.is_empty() { count } else { Cardinality::Many }));
        let body = if values.is_empty() { body } else { Term::Def(values, boxed(body)) };
        Def { name, args, body: pipe(Term::Call("native_guard", Vec::new()), body) }
    }
}

/// `foreach` with a state of its own: each step begins with the last result of the one before.
fn foreach<'s>(
    over: Tree<'s>,
    pattern: Pattern<&'s str>,
    init: Tree<'s>,
    update: Tree<'s>,
    result: Option<Tree<'s>>,
) -> Tree<'s> {
    let state = || vec![Term::Var(STATE)];
    let step = pipe(update, Term::Call("native_put_state", state()));
    let step = match result {
        Some(result) => pipe(step, result),
        None => step,
    };
    let step = pipe(Term::Call("native_state", state()), step);
    let steps = Term::BinOp(boxed(over), BinaryOp::Pipe(Some(pattern)), boxed(step));
    let end = Term::Call("native_end_state", state());
    let all = Term::BinOp(boxed(steps), BinaryOp::Comma, boxed(end));
    let new = Term::Call("native_new_state", vec![Term::Var(START)]);
    bind(init, START, bind(new, STATE, all))
}
