//! HTML that is being written: what others wrote gets into it only through escaping.

/// A document, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Markup(String);

/// How many characters of one text are shown; the rest of a long error is on the socket.
const LONGEST: usize = 400;

impl Markup {
    /// Puts in what this program wrote itself.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Puts in a drawing that this program made; it escapes its own texts.
    pub(super) fn drawing(&mut self, svg: &str) -> &mut Self {
        let harmless = |sign: char| sign == '\n' || !(sign.is_control() || changes_direction(sign));
        self.0.extend(svg.chars().map(|sign| if harmless(sign) { sign } else { '\u{fffd}' }));
        self
    }

    /// Puts in a text that anybody may have written: as text or as the value of an attribute in quotes.
    ///
    /// Signs that change the direction of text or control terminals become a replacement sign.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for (place, sign) in text.chars().enumerate() {
            if place == LONGEST {
                self.0.push('…');
                break;
            }
            match sign {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(' '),
                sign if sign.is_control() || changes_direction(sign) => self.0.push('\u{fffd}'),
                sign => self.0.push(sign),
            }
        }
        self
    }

    /// Puts in a text in which what stands between backticks is to be typed.
    pub(super) fn coded(&mut self, text: &str) -> &mut Self {
        let is_even = text.matches('`').count().is_multiple_of(2);
        for (place, part) in text.split(|sign| is_even && sign == '`').enumerate() {
            if place.is_multiple_of(2) {
                self.text(part);
            } else {
                self.raw("<code>").text(part).raw("</code>");
            }
        }
        self
    }

    /// Puts in a number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push_str(&number.into().to_string());
        self
    }

    /// Puts in how many there are of something.
    pub(super) fn count(&mut self, count: usize) -> &mut Self {
        self.0.push_str(&count.to_string());
        self
    }

    /// Returns the document.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn changes_direction(sign: char) -> bool {
    matches!(sign, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_text() {
        for (hostile, shown) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("\" onclick='x' a=\"", "&quot; onclick=&#39;x&#39; a=&quot;"),
            ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
            ("a\u{202e}txt.sh\u{0}\u{1b}[31m", "a\u{fffd}txt.sh\u{fffd}\u{fffd}[31m"),
            ("two\nlines", "two lines"),
            ("]]><!--", "]]&gt;&lt;!--"),
            ("дом 家 🏠", "дом 家 🏠"),
        ] {
            let mut markup = Markup::default();
            markup.text(hostile);
            assert_eq!(markup.finish(), shown);
        }
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let mut markup = Markup::default();
        markup.text(&"<".repeat(1_000_000));
        assert_eq!(markup.finish(), "&lt;".repeat(LONGEST) + "…");
    }
}
