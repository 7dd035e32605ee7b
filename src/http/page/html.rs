//! Writes HTML. Text that comes from elsewhere is always escaped.

/// A document, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Html(String);

/// How many characters of one text are shown; the rest of a long error is on the socket.
const LONGEST: usize = 400;

impl Html {
    /// Adds markup of this program as it is.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a drawing in SVG, whose texts are escaped already.
    pub(super) fn drawing(&mut self, svg: &str) -> &mut Self {
        let harmless = |sign: char| sign == '\n' || !(sign.is_control() || changes_direction(sign));
        self.0.extend(svg.chars().map(|sign| if harmless(sign) { sign } else { '\u{fffd}' }));
        self
    }

    /// Adds untrusted text, escaped: as text or as the quoted value of an attribute.
    ///
    /// Control characters and those that change the direction of text become U+FFFD.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for (position, sign) in text.chars().enumerate() {
            if position == LONGEST {
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

    /// Adds untrusted text; parts between backticks become code.
    pub(super) fn coded(&mut self, text: &str) -> &mut Self {
        let is_even = text.matches('`').count().is_multiple_of(2);
        for (position, part) in text.split(|sign| is_even && sign == '`').enumerate() {
            if position.is_multiple_of(2) {
                self.text(part);
            } else {
                self.raw("<code>").text(part).raw("</code>");
            }
        }
        self
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push_str(&number.into().to_string());
        self
    }

    /// Adds a count.
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
            let mut html = Html::default();
            html.text(hostile);
            assert_eq!(html.finish(), shown);
        }
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let mut html = Html::default();
        html.text(&"<".repeat(1_000_000));
        assert_eq!(html.finish(), "&lt;".repeat(LONGEST) + "…");
    }
}
