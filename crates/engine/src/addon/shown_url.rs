//! URLs of repositories as people may read them.

use std::borrow::Cow;

/// Query parameters that say where something is, and never who asks.
const OPEN: [&str; 3] = ["depth", "ref", "rev"];

/// What stands for what is not shown.
const HIDDEN: &str = "***";

/// Returns the URL of a repository as it is in a spec, without passwords and keys that were written into it. Placeholders
/// stay: what fills them is nowhere in it.
pub(crate) fn shown_url(url: &str) -> Cow<'_, str> {
    let (address, query) = url.split_once('?').map_or((url, None), |(address, query)| (address, Some(query)));
    let start = match (address.find("://"), address.find("::")) {
        (Some(scheme), _) => scheme + 3,
        (None, Some(protocol)) => protocol + 2,
        (None, None) => 0,
    };
    let (before, rest) = address.split_at(start);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let user = host.rsplit_once('@').filter(|(user, _)| !is_template(user));
    let secret = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !OPEN.contains(&name) && !is_template(value)
    };
    let has_secrets = query.is_some_and(|query| query.split('&').any(secret));
    if user.is_none() && !has_secrets {
        return Cow::Borrowed(url);
    }
    let host = user.map_or_else(|| host.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let query = query.map(|query| {
        let shown = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if secret(pair) => format!("{name}={HIDDEN}"),
            Some(_) | None => pair.to_owned(),
        };
        format!("?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"))
    });
    Cow::Owned(format!("{before}{host}{path}{}", query.unwrap_or_default()))
}

/// Returns whether a text is made of placeholders only.
fn is_template(text: &str) -> bool {
    let mut is_inside = false;
    text.chars().all(|char| {
        let was_inside = is_inside;
        is_inside = (was_inside || char == '{') && char != '}';
        was_inside || matches!(char, '{' | '}' | ':')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_keys_are_hidden_and_placeholders_are_not() {
        for (url, shown) in [
            ("https://repo/index.yaml", "https://repo/index.yaml"),
            ("https://{user}:{pass}@repo/index.yaml", "https://{user}:{pass}@repo/index.yaml"),
            ("https://me:hunter2@repo:8443/a@b/index.yaml", "https://***@repo:8443/a@b/index.yaml"),
            ("https://hunter2@repo", "https://***@repo"),
            ("https://{user}:hunter2@repo/", "https://***@repo/"),
            (
                "git::https://me:hunter2@repo/a.git//i.yaml?ref=v3&depth=1",
                "git::https://***@repo/a.git//i.yaml?ref=v3&depth=1",
            ),
            ("git::git@repo:a.git//i.yaml?sshkey=hunter2", "git::***@repo:a.git//i.yaml?sshkey=***"),
            ("git::https://repo/a//i.yaml?sshkey={key}", "git::https://repo/a//i.yaml?sshkey={key}"),
            ("https://repo/i.yaml?token=hunter2&ref=x&flag", "https://repo/i.yaml?token=***&ref=x&flag"),
            ("", ""),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
