//! What must hold for every state file and its logs: they are refused with their line, or they are a cluster that works and can be kept again.

use std::fs;

use apiserver::{ApiServer, StartError, kind};
use serde_json::Value;

use super::server::{block_on, builder, get};

/// The first line of a state file.
const HEAD: &str = "{\"format\":\"addon-operator apiserver state 1\",\"revision\":4000}\n";

/// What stands between the state file, the older log and the log.
const NEXT: &[u8] = b"=====\n";

/// Starts a server with `bytes` as its files, and another one with what that server keeps. What has no first line is taken
/// for the lines of objects.
pub(crate) fn run(bytes: &[u8]) {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while parts.len() < 2
        && let Some(at) = rest.windows(NEXT.len()).position(|window| window == NEXT)
    {
        parts.push(&rest[..at]);
        rest = &rest[at + NEXT.len()..];
    }
    parts.push(rest);
    let bytes = parts.remove(0);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let mut file = bytes.to_vec();
    if !bytes.starts_with(b"{\"format") {
        let count = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        file = HEAD.as_bytes().to_vec();
        lines.for_each(|line| file.extend([line, b"\n"].concat()));
        file.extend(format!("{{\"objects\":{count}}}\n").bytes());
    }
    fs::write(&path, &file).unwrap();
    for (log, ending) in parts.iter().zip(["log.1", "log"]) {
        fs::write(path.with_extension(ending), log).unwrap();
    }
    let everything = [&[file.as_slice()], parts.as_slice()].concat().concat();
    block_on(async {
        let server = match builder().state(&path).build() {
            Ok(server) => server,
            Err(StartError::State(error)) => {
                assert!(error.to_string().contains("state file"), "{error}");
                assert_eq!(fs::read(&path).unwrap(), file, "a broken file is left as it is");
                for (log, ending) in parts.iter().zip(["log.1", "log"]) {
                    assert_eq!(&fs::read(path.with_extension(ending)).unwrap(), log, "and so are its logs");
                }
                return;
            }
            Err(error) => panic!("{error}"),
        };
        answers(&server, &everything).await;
        server.shutdown().await.unwrap();
        let again = builder().state(&path).build().unwrap_or_else(|error| panic!("what was kept: {error}"));
        answers(&again, &everything).await;
        again.shutdown().await.unwrap();
    });
}

/// Reads all objects of the kinds that the file names, and what is said of all kinds.
async fn answers(server: &ApiServer, file: &[u8]) {
    let text = String::from_utf8_lossy(file);
    for kind in kind::builtin() {
        if !text.contains(&format!("{}/{}\"", kind.group, kind.plural)) {
            continue;
        }
        let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let path = format!("{root}/{}/{}", kind.version, kind.plural);
        let answer = get(server, &path).await;
        if answer.status != 404 && answer.status != 405 {
            let list: Value = serde_json::from_slice(&answer.body)
                .unwrap_or_else(|error| panic!("{path}: {error}: {}", String::from_utf8_lossy(&answer.body)));
            assert_eq!(answer.status, 200, "{path}: {list}");
        }
    }
    for path in ["/apis", "/openapi/v2", "/openapi/v3", "/metrics"] {
        assert_eq!(get(server, path).await.status, 200, "{path}");
    }
}
