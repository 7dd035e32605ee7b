//! The tags of a chart or a bundle, page by page, and the versions that they stand for.

use std::collections::BTreeSet;

use std::collections::BTreeMap;

use chart::semver::Version;
use serde_json::{Value, json};

use super::reference::version;
use crate::chart_repository::index;
use crate::digest::Digest;

/// The most bytes of a page.
pub const MAX_PAGE: u64 = 4 << 20;

/// The most pages.
pub const MAX_PAGES: usize = 100;

/// The most tags of a chart.
pub const MAX_TAGS: usize = 20_000;

/// Why tags can't be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TagsError {
    /// It is no list of tags.
    #[error("the answer is no list of tags: a registry answers with {{\"name\": …, \"tags\": […]}}")]
    Structure,
    /// There are too many.
    #[error("there are more than {MAX_TAGS} tags, or {MAX_PAGES} pages of them")]
    Many,
}

/// What the manifest of a tag says of its version.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TagFacts {
    /// The digest of the archive.
    pub digest: Option<Digest>,
    /// When it was pushed, as the manifest writes it.
    pub created: Option<String>,
}

/// The tags of a chart that are known so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tags {
    tags: Vec<String>,
    pages: usize,
}

impl Tags {
    /// Takes a page.
    ///
    /// # Errors
    ///
    /// If it is none, or there are too many.
    pub fn take(&mut self, page: &[u8]) -> Result<(), TagsError> {
        let page: Value = serde_json::from_slice(page).map_err(|_| TagsError::Structure)?;
        let tags = match page.get("tags") {
            Some(Value::Array(tags)) => tags.as_slice(),
            // Some registries write so that there is none.
            Some(Value::Null) => &[],
            _ => return Err(TagsError::Structure),
        };
        self.pages += 1;
        if self.pages > MAX_PAGES || self.tags.len() + tags.len() > MAX_TAGS {
            return Err(TagsError::Many);
        }
        self.tags.extend(tags.iter().filter_map(Value::as_str).map(str::to_owned));
        Ok(())
    }

    /// Returns the versions that the tags stand for, each once. Tags that are no versions are left out.
    pub fn whole_versions(&self) -> BTreeSet<String> {
        self.tags.iter().filter_map(|tag| version(tag)).collect()
    }

    /// Returns the same, the highest first.
    pub fn highest(&self) -> Vec<String> {
        let read = |tag: &String| {
            let version = version(tag)?;
            Some((Version::parse(&version).ok()?, version))
        };
        let mut versions: Vec<(Version, String)> = self.tags.iter().filter_map(read).collect();
        // Builds of one version differ in their names only.
        versions.sort_by(|(a, a_name), (b, b_name)| b.precedence(a).then_with(|| b_name.cmp(a_name)));
        versions.dedup_by(|(_, a), (_, b)| a == b);
        versions.into_iter().map(|(_, version)| version).collect()
    }

    /// Returns the versions of `chart`, as an index map has them, with what is `known` of some; `url` is the URL of the chart,
    /// without a tag. Tags that are no versions are left out.
    pub fn versions(self, chart: &str, url: &str, known: &BTreeMap<String, TagFacts>) -> Vec<u8> {
        // Of builds of one version Helm takes the one that the registry names first.
        let mut seen = BTreeSet::new();
        index::list(self.tags.iter().filter(|tag| seen.insert(*tag)).filter_map(|tag| {
            let version = version(tag)?;
            let facts = known.get(&version).cloned().unwrap_or_default();
            let mut entry = json!({"name": chart, "version": version, "urls": [format!("{url}:{tag}")]});
            if let Some(fields) = entry.as_object_mut() {
                fields.extend(facts.digest.map(|digest| ("digest".to_owned(), digest.to_string().into())));
                fields.extend(facts.created.map(|created| ("created".to_owned(), created.into())));
            }
            Some(entry)
        }))
    }
}

/// Returns the URL of the next page that a header `Link` names, relative or absolute.
pub fn next_page(link: &str) -> Option<&str> {
    link.split(",<").find_map(|link| {
        let (url, parameters) = link.trim().trim_start_matches('<').split_once('>')?;
        let is_next = |parameter: &str| {
            let Some((name, value)) = parameter.split_once('=') else { return false };
            name.trim().eq_ignore_ascii_case("rel")
                && value.trim().trim_matches('"').eq_ignore_ascii_case("next")
        };
        parameters.split(';').any(is_next).then_some(url)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_one_list_of_versions_the_highest_first() {
        let mut tags = Tags::default();
        tags.take(br#"{"name":"x","tags":["1.0.0","latest","1.10.0_3"]}"#).unwrap();
        tags.take(br#"{"tags":null}"#).unwrap();
        tags.take(br#"{"tags":["1.9.0","1.0.0",7]}"#).unwrap();
        assert!(tags.whole_versions().into_iter().eq(["1.0.0", "1.10.0+3", "1.9.0"]));
        assert_eq!(tags.highest(), ["1.10.0+3", "1.9.0", "1.0.0"]);
        let digest = Digest::of(b"");
        let facts =
            TagFacts { digest: Some(digest.clone()), created: Some("2026-01-01T00:00:00Z".to_owned()) };
        let known = BTreeMap::from([("1.9.0".to_owned(), facts)]);
        let list: Value = serde_json::from_slice(&tags.versions("web", "oci://a/web", &known)).unwrap();
        assert_eq!(
            list,
            json!([
                {"name": "web", "version": "1.10.0+3", "urls": ["oci://a/web:1.10.0_3"]},
                {"name": "web", "version": "1.9.0", "urls": ["oci://a/web:1.9.0"], "digest": digest.to_string(), "created": "2026-01-01T00:00:00Z"},
                {"name": "web", "version": "1.0.0", "urls": ["oci://a/web:1.0.0"]},
            ])
        );
    }

    #[test]
    fn what_is_no_page_or_too_much_is_refused() {
        for page in ["", "<html>", "{}", "[]", r#"{"tags":"x"}"#] {
            assert_eq!(Tags::default().take(page.as_bytes()), Err(TagsError::Structure), "{page}");
        }
        let many = json!({"tags": vec!["1.0.0"; MAX_TAGS + 1]}).to_string();
        assert_eq!(Tags::default().take(many.as_bytes()), Err(TagsError::Many));
        let mut tags = Tags::default();
        let mut take = || tags.take(br#"{"tags":[]}"#);
        assert!((0..MAX_PAGES).all(|_| take().is_ok()));
        assert_eq!(take(), Err(TagsError::Many));
    }

    #[test]
    fn the_next_page_is_the_one_that_the_link_calls_so() {
        for (link, next) in [
            (r#"</v2/x/tags/list?n=2&last=b>; rel="next""#, Some("/v2/x/tags/list?n=2&last=b")),
            ("<https://a/x>; rel=next", Some("https://a/x")),
            (r#"</a>; rel="prev",</b>; title="x"; REL="next""#, Some("/b")),
            (r#"</a>; rel="prev""#, None),
            ("", None),
            ("next", None),
        ] {
            assert_eq!(next_page(link), next, "{link}");
        }
    }
}
