//! URLs and host names.

use golang::url::{Url, UserInfo};

use super::args::{Answer, MAP, STRING, map, string};
use crate::value::{CallError, Context, Function, Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("getHostByName", &[STRING], STRING, |context, args| {
        let address = context.environment().resolve(&string(args, 0));
        address.map(Value::from).map_err(|error| error.to_string().into())
    }),
    Function::new("urlJoin", &[MAP], STRING, join),
    Function::new("urlParse", &[STRING], MAP, parse),
];

fn parse(_: &mut dyn Context, args: &[Value]) -> Answer {
    let url = Url::parse(&string(args, 0)).map_err(|error| format!("unable to parse url: {error}"))?;
    let userinfo = url.user.as_ref().map(UserInfo::to_string).unwrap_or_default();
    Ok(Value::map([
        ("fragment", url.fragment.as_str().into()),
        ("host", url.host.as_str().into()),
        ("hostname", url.hostname().into()),
        ("opaque", url.opaque.as_str().into()),
        ("path", url.path.as_str().into()),
        ("query", url.query.as_str().into()),
        ("scheme", url.scheme.as_str().into()),
        ("userinfo", userinfo.into()),
    ]))
}

fn join(_: &mut dyn Context, args: &[Value]) -> Answer {
    let map = map(args, 0);
    let mut url = Url {
        scheme: part(&map, "scheme")?,
        host: part(&map, "host")?,
        path: part(&map, "path")?,
        query: part(&map, "query")?,
        opaque: part(&map, "opaque")?,
        fragment: part(&map, "fragment")?,
        ..Url::default()
    };
    let userinfo = part(&map, "userinfo")?;
    if !userinfo.is_empty() {
        let with_user = Url::parse(&format!("proto://{userinfo}@host"))
            .map_err(|error| format!("unable to parse userinfo in dict: {error}"))?;
        url.user = with_user.user;
    }
    Ok(url.to_string().into())
}

/// Returns one part of the URL; it must be a text if it is there.
fn part(map: &Map, key: &str) -> Result<String, CallError> {
    match map.get(key) {
        None => Ok(String::new()),
        Some(Value::Text(text)) => Ok(text.lossy().into_owned()),
        Some(Value::Nil) => Err(super::args::nil_dereference()),
        Some(other) => Err(CallError::new(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind().name()
        ))),
    }
}
