//! Adapts the tokens of a filter: short forms of gojq become what jaq parses.

use std::iter::Peekable;

use jaq_core::load::lex::{StrPart, Tok, Token};

type Piece<'s> = Token<&'s str>;

/// Returns the tokens with `.5` as one number, and `{$a: [$b]}` in a pattern as `{$a, a: [$b]}`.
pub(super) fn fitted<'s>(text: &'s str, tokens: Vec<Piece<'s>>, in_pattern: bool) -> Vec<Piece<'s>> {
    let mut out: Vec<Piece<'s>> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(Token(part, kind)) = rest.next() {
        match kind {
            Tok::Sym if part == "." => out.push(fraction(text, part, &mut rest)),
            Tok::Block(inner) => {
                let takes_apart = !part.starts_with('(')
                    && (in_pattern || matches!(out.last(), Some(Token("as", Tok::Word))));
                out.push(Token(part, Tok::Block(fitted(text, inner, takes_apart))));
            }
            Tok::Str(parts) => {
                let parts = parts.into_iter().map(|part| match part {
                    StrPart::Term(Token(part, Tok::Block(inner))) => {
                        StrPart::Term(Token(part, Tok::Block(fitted(text, inner, false))))
                    }
                    other @ (StrPart::Term(_) | StrPart::Str(_) | StrPart::Char(_)) => other,
                });
                out.push(Token(part, Tok::Str(parts.collect())));
            }
            Tok::Var if in_pattern && matches!(rest.peek(), Some(Token(":", _))) => {
                out.extend([Token(part, Tok::Var), Token(",", Tok::Sym)]);
                out.push(Token(part.trim_start_matches('$'), Tok::Word));
            }
            Tok::Word | Tok::Var | Tok::Fmt | Tok::Num | Tok::Sym => out.push(Token(part, kind)),
        }
    }
    out
}

/// Returns how many tokens there are, with those in brackets and in texts.
pub(super) fn count(tokens: &[Piece<'_>]) -> usize {
    let inside = tokens.iter().map(|Token(_, kind)| match kind {
        Tok::Block(inner) => count(inner),
        Tok::Str(parts) => parts.iter().map(count_part).sum(),
        Tok::Word | Tok::Var | Tok::Fmt | Tok::Num | Tok::Sym => 0,
    });
    tokens.len() + inside.sum::<usize>()
}

fn count_part(part: &StrPart<&str, Piece<'_>>) -> usize {
    match part {
        StrPart::Term(Token(_, Tok::Block(inner))) => count(inner),
        StrPart::Term(_) | StrPart::Str(_) | StrPart::Char(_) => 0,
    }
}

/// Returns a point, together with the digits that follow it without a gap.
fn fraction<'s>(
    text: &'s str,
    point: &'s str,
    rest: &mut Peekable<impl Iterator<Item = Piece<'s>>>,
) -> Piece<'s> {
    let start = (point.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let digits = rest.next_if(|Token(digits, kind)| {
        matches!(kind, Tok::Num) && digits.as_ptr() as usize == point.as_ptr() as usize + 1
    });
    let number = digits.and_then(|Token(digits, _)| text.get(start..start + 1 + digits.len()));
    number.map_or(Token(point, Tok::Sym), |number| Token(number, Tok::Num))
}
