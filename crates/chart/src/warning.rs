//! What is worth telling about a chart that works all the same.

/// Warnings in the order in which they came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Adds `text`, if the last one does not say the same.
    pub fn add(&mut self, text: String) {
        if self.0.last() != Some(&text) {
            self.0.push(text);
        }
    }

    /// Returns the texts.
    pub fn texts(&self) -> &[String] {
        &self.0
    }
}
