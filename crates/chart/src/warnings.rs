//! Warnings about a chart that works all the same.

/// Warnings in the order in which they came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    texts: Vec<String>,
    places: Vec<&'static str>,
}

impl Warnings {
    /// Adds `text`, if the last one does not say the same.
    pub fn add(&mut self, text: String) {
        self.add_from("", text);
    }

    /// Adds `text`, if the last one does not say the same. `place` is where Helm says that
    /// its warning comes from.
    pub fn add_from(&mut self, place: &'static str, text: String) {
        if self.texts.last() != Some(&text) {
            self.texts.push(text);
            self.places.push(place);
        }
    }

    /// Adds those of `others`.
    pub fn extend(&mut self, others: &Self) {
        for (place, text) in others.places.iter().zip(&others.texts) {
            self.add_from(place, text.clone());
        }
    }

    /// Returns the texts.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the lines that Helm prints, each with the place that it comes from.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.places.iter().zip(&self.texts).map(|(place, text)| match *place {
            "" => text.clone(),
            place => format!("{place}: {text}"),
        })
    }
}
