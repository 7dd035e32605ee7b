//! What must hold for every URL of a source.

use source::url::{BundleUrl, GitUrl, HttpUrl, IndexUrl, Protocols};

/// Returns the server of a repository.
fn server(url: &HttpUrl) -> (&'static str, &str, u16) {
    (url.scheme().name(), url.host(), url.port())
}

fn is_path_below(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn check(index: &IndexUrl, given: Option<&str>, protocols: Protocols) {
    let shown = index.to_string();
    if let Some(credentials) = index.credentials() {
        let server = shown.split_once("://").map_or(&*shown, |(_, rest)| rest);
        let server = server.split(['/', '?']).next().unwrap_or_default();
        assert!(!server.contains('@'), "the URL is shown with what is before its host");
        assert!(credentials.authorization().starts_with("Basic "));
    }
    match (index, index.bundle("web", "1.0.0", given, protocols)) {
        (IndexUrl::Http(index), Ok(BundleUrl::Http(bundle))) => {
            assert!(bundle.scheme().name() == "https" || protocols.has_http);
            if bundle.credentials().is_some() && bundle.credentials() == index.credentials() {
                assert_eq!(server(index), server(&bundle), "credentials go to another server");
            }
        }
        (IndexUrl::Git(_), Ok(BundleUrl::Directory(path))) => assert!(is_path_below(&path), "{path:?}"),
        (IndexUrl::Http(_), Ok(BundleUrl::Directory(_))) | (IndexUrl::Git(_), Ok(BundleUrl::Http(_))) => {
            unreachable!("a bundle lies where its index does")
        }
        (_, Err(error)) => {
            assert!(!tells_a_password(given.unwrap_or_default(), &error.to_string()), "{error}");
        }
    }
    if let IndexUrl::Git(git) = index {
        let _: &GitUrl = git;
        assert!(server(git.repository()).0 == "https" || protocols.has_http);
    }
}

/// Returns whether a message shows what stands before an @ behind a colon, and nowhere else in the URL.
fn tells_a_password(url: &str, message: &str) -> bool {
    url.contains(":hunter2@") && url.matches("hunter2").count() == 1 && message.contains("hunter2")
}

/// Reads the URL of an index in the first line and that of a bundle in the second, with and without plain http.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (index, given) = text.split_once('\n').map_or((text, None), |(index, given)| (index, Some(given)));
    for has_http in [false, true] {
        let protocols = Protocols { has_http };
        match IndexUrl::parse(index, protocols) {
            Ok(index) => check(&index, given, protocols),
            // A password in a message would end in a status.
            Err(error) => assert!(!tells_a_password(index, &error.to_string()), "{error}"),
        }
    }
}
