//! References to other URLs.

use super::parts::Url;

impl Url {
    /// Returns the URL that `reference` means where this is the base.
    #[must_use]
    pub fn resolve(&self, reference: &Self) -> Self {
        let mut url = reference.clone();
        if !reference.scheme.is_empty() {
            if reference.opaque.is_empty() {
                url.path = without_dots(&reference.path);
            }
            return url;
        }
        url.scheme.clone_from(&self.scheme);
        if !reference.host.is_empty() || reference.user.is_some() {
            url.path = without_dots(&reference.path);
            return url;
        }
        if !self.opaque.is_empty() {
            url.opaque.clone_from(&self.opaque);
            url.path.clear();
            return url;
        }
        url.host.clone_from(&self.host);
        url.user.clone_from(&self.user);
        url.omit_host = self.omit_host;
        if reference.path.is_empty() {
            url.path.clone_from(&self.path);
            if reference.query.is_empty() && !reference.force_query {
                url.query.clone_from(&self.query);
            }
            return url;
        }
        let path = if reference.path.starts_with('/') {
            reference.path.clone()
        } else {
            let folder = self.path.rfind('/').and_then(|slash| self.path.get(..=slash)).unwrap_or_default();
            format!("{folder}{}", reference.path)
        };
        url.path = without_dots(&path);
        url
    }
}

/// Returns a path from the root on with its `.` and `..` resolved, as RFC 3986 says (5.2.4): they never lead above the root.
/// One that ends with them is a directory.
pub fn without_dots(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut last_is_dots = false;
    for part in path.strip_prefix('/').unwrap_or(path).split('/') {
        last_is_dots = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    if last_is_dots {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}
