//! Which URLs are read, and what they mean.

use super::*;
use crate::index::Index;

fn read(text: &str) -> Result<IndexUrl, UrlError> {
    IndexUrl::parse(text, Protocols::default())
}

fn shown(text: &str) -> String {
    read(text).map_or_else(|error| format!("! {error}"), |url| url.to_string())
}

#[test]
fn urls_of_all_forms_are_read() {
    for (text, expected) in [
        ("https://h/i.yaml", "https://h/i.yaml"),
        ("HTTPS://Repo.Corp.:443", "https://repo.corp/"),
        ("https::https://h:8443/a%2Fb/i?x=1&y=%20", "https://h:8443/a%2Fb/i?x=1&y=%20"),
        ("https://joe:p%40w@h/i", "https://h/i"),
        ("https://[FD00::0:1]:444/i", "https://[fd00::1]:444/i"),
        ("https://10.1.2.3/i", "https://10.1.2.3/i"),
        (
            "git::https://h/o/r.git//d/i.yaml?ref=v1&depth=1",
            "git::https://h/o/r.git//d/i.yaml?ref=v1&depth=1",
        ),
        ("github.com/o/r//i.yaml", "git::https://github.com/o/r.git//i.yaml"),
        ("git::github.com/o/r.git//i.yaml?ref=a%2Fb", "git::https://github.com/o/r.git//i.yaml?ref=a/b"),
        ("bitbucket.org/o/r//d/i.yaml?depth=3", "git::https://bitbucket.org/o/r.git//d/i.yaml?depth=3"),
        ("GIT::https://h/r//i", "git::https://h/r//i"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
        let location = match read(text).unwrap() {
            IndexUrl::Http(url) => url,
            IndexUrl::Git(url) => url.repository().clone(),
        };
        assert!(location.to_string().parse::<http::Uri>().is_ok(), "what sends requests can read {location}");
    }
}

#[test]
fn what_is_not_supported_says_what_is() {
    for (text, expected) in [
        ("", UrlError::Empty),
        ("ftp://h/i", UrlError::Unsupported("ftp".to_owned())),
        ("file:///etc/passwd", UrlError::Unsupported("file".to_owned())),
        ("gcs::https://h/i", UrlError::Unsupported("gcs".to_owned())),
        ("git::git://h/r//i", UrlError::Unsupported("git".to_owned())),
        ("git::file:///r//i", UrlError::Unsupported("file".to_owned())),
        ("h/i.yaml", UrlError::NoScheme),
        ("http://h/i", UrlError::Http),
        ("git::http://h/r//i", UrlError::Http),
        ("https::http://h/i", UrlError::Http),
        ("s3::https://s3.amazonaws.com/b/i", UrlError::S3),
        ("hg::https://h/r//i", UrlError::Mercurial),
        ("git::ssh://git@h/r//i", UrlError::Ssh),
        ("git::git@github.com:o/r.git//i", UrlError::Ssh),
        ("git@github.com:o/r.git//i", UrlError::Ssh),
        ("git::git::https://h/r//i", UrlError::ProtocolTwice),
        ("git::https::https://h/r//i", UrlError::ProtocolTwice),
        ("git::https://h/r//i?sshkey=abc", UrlError::SshKey),
        ("git::https://h/r?sshkey=abc", UrlError::SshKey),
        ("git::https://h/r//i?rev=1", UrlError::Option("rev".to_owned())),
        ("git::https://h/r//i?ref=a&ref=b", UrlError::OptionTwice("ref")),
        ("git::https://h/r.git", UrlError::IndexPath),
        ("git::https://h/r.git//", UrlError::IndexPath),
        ("git::https://h/r.git//d/", UrlError::PathInRepository),
        ("git::https://h/r.git//s//index.yaml", UrlError::PathInRepository),
        ("git::https://h/r.git//s%5Cindex.yaml", UrlError::PathInRepository),
        ("github.com/o", UrlError::ShortForm),
        ("github.com/o/r/d//i", UrlError::ShortForm),
        ("github.com/o/r", UrlError::IndexPath),
    ] {
        assert_eq!(read(text), Err(expected), "{text}");
    }
}

#[test]
fn http_is_for_development() {
    let url = IndexUrl::parse("http://h/i", Protocols { has_http: true }).unwrap();
    assert_eq!(url.to_string(), "http://h/i");
}

#[test]
fn urls_that_could_mean_something_else_are_refused() {
    for (text, expected) in [
        ("https://h/a b", UrlError::Character(12)),
        ("https://h/é", UrlError::Character(11)),
        ("https://h/a\r\nHost: x", UrlError::Character(12)),
        ("https://h\\@evil/", UrlError::Character(10)),
        ("https:///i", UrlError::Host),
        ("https://joe@/i", UrlError::Host),
        ("https://h..x/i", UrlError::Host),
        ("https://127.1/i", UrlError::Host),
        ("https://2130706433/i", UrlError::Host),
        ("https://0x7f000001/i", UrlError::Host),
        ("https://h%2Ex/i", UrlError::Host),
        ("https://[::1/i", UrlError::Host),
        ("https://h:0/i", UrlError::Port),
        ("https://h:65536/i", UrlError::Port),
        ("https://h:+1/i", UrlError::Port),
        ("https://a@b@h/i", UrlError::Credentials),
        ("https://a%zz@h/i", UrlError::Credentials),
        ("https://h/%", UrlError::Escape),
        ("https://h/i#a", UrlError::Fragment),
        ("https://h/a/../i", UrlError::Dots),
        ("https://h/a/%2e%2E/i", UrlError::Dots),
        ("https://h/a/.%2e%2fi", UrlError::Dots),
        ("git::https://h/r//a/../../i", UrlError::Dots),
        ("git::https://h/r//i?ref=-x", UrlError::Ref),
        ("git::https://h/r//i?ref=a..b", UrlError::Ref),
        ("git::https://h/r//i?ref=a%20b", UrlError::Ref),
        ("git::https://h/r//i?ref=", UrlError::Ref),
        ("git::https://h/r//i?depth=0", UrlError::Depth),
        ("git::https://h/r//i?depth=2147483648", UrlError::Depth),
        ("git::https://h/r//i?depth=x", UrlError::Depth),
    ] {
        assert_eq!(read(text), Err(expected), "{text}");
    }
    assert_eq!(read(&format!("https://h/{}", "a".repeat(MAX_URL_BYTES))), Err(UrlError::Long));
}

#[test]
fn credentials_are_read_and_never_shown() {
    let url = read("https://jo%3Ae:hun%2Fter2@h/i").unwrap();
    let credentials = url.credentials().unwrap();
    assert_eq!((credentials.user(), credentials.password()), (b"jo:e".as_slice(), b"hun/ter2".as_slice()));
    assert_eq!(credentials.authorization(), "Basic am86ZTpodW4vdGVyMg==");
    for text in [url.to_string(), format!("{url:?}")] {
        assert!(!text.contains("hun"), "{text}");
    }
    assert!(read("git::https://joe:pw@h/r//i").unwrap().credentials().is_some());
    assert!(read("https://h/i").unwrap().credentials().is_none());
}

/// Returns where the bundle of an entry with these fields lies.
fn bundle(index: &str, fields: &str) -> String {
    let protocols = Protocols { has_http: index.starts_with("http:") };
    let lines = Index::parse(format!("entries: {{cache: [{{{fields}}}]}}").as_bytes()).unwrap();
    let entry = lines.lines()[0].outcome.clone().unwrap();
    match IndexUrl::parse(index, protocols).unwrap().bundle(
        "cache",
        entry.version.original(),
        entry.urls.first().map(String::as_str),
        protocols,
    ) {
        Ok(BundleUrl::Http(url)) => {
            let mark = if url.credentials().is_some() { " +credentials" } else { "" };
            format!("{url}{mark}")
        }
        Ok(BundleUrl::Directory(path)) => path,
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn a_service_lies_below_its_repository() {
    for (repository, expected) in [
        ("https://joe:pw@h:1/o/r.git", "https://h:1/o/r.git/info/refs?service=x"),
        ("https://h/o/r/", "https://h/o/r/info/refs?service=x"),
        ("https://h", "https://h/info/refs?service=x"),
    ] {
        let url = HttpUrl::parse(repository, Protocols::default()).unwrap();
        let below = url.below("/info/refs", Some("service=x"));
        assert_eq!(below.to_string(), expected);
        assert_eq!(below.credentials(), url.credentials());
        let above = below.above("/info/refs").unwrap();
        assert_eq!(above.below("/info/refs", Some("service=x")), below);
        assert_eq!(above.above("/info/refs"), None);
    }
}

#[test]
fn a_bundle_lies_next_to_its_index() {
    for (index, expected) in [
        ("https://h/a/i.yaml?token=1", "https://h/a/cache-v1.2.tgz"),
        ("https://joe:pw@h:1/", "https://h:1/cache-v1.2.tgz +credentials"),
        ("git::https://h/r//a/i.yaml", "a/cache-v1.2"),
        ("github.com/o/r//i.yaml", "cache-v1.2"),
    ] {
        assert_eq!(bundle(index, "version: v1.2"), expected, "{index}");
    }
}

#[test]
fn an_index_says_where_its_bundle_lies() {
    let [index, plain] = ["https://joe:pw@h/a/i", "http://h/i"];
    for (index, url, expected) in [
        (index, "b/c.tgz?x=1", "https://h/a/b/c.tgz?x=1 +credentials"),
        (index, "./c.tgz", "https://h/a/c.tgz +credentials"),
        (index, "/c.tgz", "https://h/c.tgz +credentials"),
        (index, "https://h/c.tgz", "https://h/c.tgz +credentials"),
        (index, "https://h:444/c.tgz", "https://h:444/c.tgz"),
        (index, "//other/c.tgz", "https://other/c.tgz"),
        (index, "https://other/c.tgz", "https://other/c.tgz"),
        (plain, "http://other/c.tgz", "http://other/c.tgz"),
        ("git::https://h/r//a/i", "b/c/", "a/b/c"),
    ] {
        assert_eq!(bundle(index, &format!("version: 1, urls: ['{url}']")), expected, "{url}");
    }
    for (index, url, error) in [
        (index, "http://h/c.tgz", UrlError::Downgrade),
        (index, "https://a:b@h/c.tgz", UrlError::CredentialsInIndex),
        (index, "../c.tgz", UrlError::Dots),
        (index, "ftp://h/c.tgz", UrlError::Unsupported("ftp".to_owned())),
        (index, "javascript:x", UrlError::NoScheme),
        (index, "c.tgz#a", UrlError::Fragment),
        (index, "c d.tgz", UrlError::Character(2)),
        ("git::https://h/r//a/i", "../b", UrlError::OutsideRepository),
        ("git::https://h/r//a/i", "/b", UrlError::OutsideRepository),
        ("git::https://h/r//a/i", "https://h/b", UrlError::OutsideRepository),
    ] {
        assert_eq!(bundle(index, &format!("version: 1, urls: ['{url}']")), format!("! {error}"), "{url}");
    }
}

#[test]
fn a_redirect_with_dots_leads_where_the_joined_path_does_and_never_off_the_server() {
    let from = HttpUrl::parse("https://a:b@h/x/y/index.yaml", Protocols::default()).unwrap();
    for (location, expected) in [
        ("../z/i.yaml?a=../b", Ok("https://h/x/z/i.yaml?a=../b")),
        ("./i", Ok("https://h/x/y/i")),
        ("../../../../i", Ok("https://h/i")),
        ("/a/../i", Ok("https://h/i")),
        ("/a/..", Ok("https://h/")),
        ("a/.", Ok("https://h/x/y/a/")),
        ("..", Ok("https://h/x/")),
        ("i", Ok("https://h/x/y/i")),
        ("..//other/i", Ok("https://h/x//other/i")),
        ("..//../i", Ok("https://h/x/i")),
        ("../%2e%2e/i", Err(UrlError::Dots)),
        ("../..%2fi", Err(UrlError::Dots)),
        ("../%zz", Err(UrlError::Escape)),
        ("../i\n", Err(UrlError::Character(5))),
    ] {
        let url = from.redirected(location, Protocols::default());
        assert_eq!(
            url.as_ref().map(ToString::to_string),
            expected.as_ref().map(|text| (*text).to_owned()),
            "{location}"
        );
        assert!(url.is_err() || url.is_ok_and(|url| url.is_same_server(&from)), "{location}");
    }
}
