//! Module sources: what a repository sends is never held as a whole.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::source::allow::{AllowList, AllowedHost};
use ::source::index::MAX_INDEX_BYTES;
use ::source::url::Protocols;
use addon_operator::source::{Options, Sources, SystemLookup, Trust, TrustOptions};
use apiserver::ApiServer;
use engine::{Fetched, Include, RegisteredAddon, Registry, RepositorySpec, SourceKey, SourceSpec};
use flate2::Compression;
use flate2::write::GzEncoder;
use kube::Client;
use tempfile::TempDir;

use crate::{alone, grown_by};

/// How much a fetch may take at its peak, whatever is sent, in bytes.
const MOST: usize = 24 << 20;

/// Files that are served as they lie on the disk, so that the test itself holds nothing of them.
struct Site {
    dir: TempDir,
    address: SocketAddr,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, files) = (listener.local_addr().unwrap(), dir.path().to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = files.clone();
                std::thread::spawn(move || {
                    let _ = answer(&stream, &files);
                });
            }
        });
        Self { dir, address }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes an index by parts.
    fn index<'p>(&self, parts: impl IntoIterator<Item = &'p str>) {
        let mut file = io::BufWriter::new(File::create(self.path("index.yaml")).unwrap());
        parts.into_iter().for_each(|part| file.write_all(part.as_bytes()).unwrap());
    }

    /// Packs a bundle of the module `web` with these files, and one of zeros.
    fn bundle(&self, files: &[(&str, &[u8])], zeros: u64) {
        let meta = "id: web\nname: web\nversion: 1.0.0\ndescription: A test.\ndisplayName: Web\n";
        let files: Vec<(&str, &[u8])> =
            [("meta.yaml", meta.as_bytes())].iter().chain(files).copied().collect();
        fs::write(self.path("web-1.0.0.tgz"), pack(&files, zeros)).unwrap();
    }
}

/// Packs these files, and one of zeros.
fn pack(files: &[(&str, &[u8])], zeros: u64) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut add = |name: &str, length: u64, content: &mut dyn io::Read| {
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content).unwrap();
    };
    for (name, content) in files {
        add(name, content.len() as u64, &mut &**content);
    }
    if zeros > 0 {
        add("web/files/zeros", zeros, &mut io::Read::take(io::repeat(0), zeros));
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Answers one request with a file.
fn answer(stream: &std::net::TcpStream, files: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    let mut stream = stream;
    match File::open(files.join(path)) {
        Err(_) => {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        }
        Ok(mut file) => {
            let length = file.metadata()?.len();
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")?;
            io::copy(&mut file, &mut stream).map(|_| ())
        }
    }
}

struct World {
    site: Site,
    dir: TempDir,
    server: ApiServer,
}

impl World {
    fn new() -> Self {
        let server = ApiServer::builder().seed(1).build().unwrap();
        Self { site: Site::new(), dir: tempfile::tempdir().unwrap(), server }
    }

    fn sources(&self) -> Sources {
        let allowed = AllowList {
            protocols: Protocols { has_http: true },
            hosts: vec![AllowedHost::parse("localhost").unwrap()],
            prefixes: Vec::new(),
        };
        let lookup = Arc::new(SystemLookup);
        let options = Options {
            directory: self.dir.path().join("sources"),
            namespace: "default".to_owned(),
            config_map: "addon-operator".to_owned(),
            secret_namespaces: Vec::new(),
            mirrors: ::source::mirror::Mirrors::default(),
            trust: Trust {
                allowed,
                authorities: None,
                api_server: None,
                lookup,
                options: TrustOptions::OPERATOR,
            },
            in_flight: 16,
            timeout: Duration::from_mins(5),
        };
        Sources::new(Client::new(self.server.service(), "default"), options).unwrap()
    }

    /// Fetches the addon `web`. Returns what came of it, and by how much the process grew meanwhile.
    fn fetch(&self) -> (Fetched, usize) {
        let repository = RepositorySpec {
            url: format!("http://localhost:{}/index.yaml", self.site.address.port()),
            secret: None,
            include: vec![Include { name: "web".to_owned(), version: None, digest: None }],
        };
        let spec = SourceSpec { repositories: vec![repository], ..SourceSpec::default() };
        let mut fetched = Fetched::default();
        let grown = grown_by(async {
            fetched = self.sources().fetch(&SourceKey::cluster("a"), &spec).await.unwrap();
        });
        (fetched, grown)
    }
}

/// Returns what is wrong with the one repository or addon; empty if nothing is.
fn problem(fetched: &Fetched) -> String {
    match &fetched.repositories.first().unwrap().outcome {
        Err(problem) => problem.message.clone(),
        Ok(addons) => {
            let outcome = addons.last().unwrap().outcome.as_ref();
            outcome.err().map(|problem| problem.message.clone()).unwrap_or_default()
        }
    }
}

fn check(what: &str, world: &World, expected: &str) {
    let (fetched, grown) = world.fetch();
    let problem = problem(&fetched);
    assert!(problem.contains(expected) && problem.is_empty() == expected.is_empty(), "{what}: {problem}");
    let [grown, most] = [grown, MOST].map(|bytes| bytes >> 10);
    assert!(grown <= most, "{what}: {grown} KiB, {most} KiB are allowed");
}

#[test]
fn an_index_is_parsed_as_a_stream() {
    let _alone = alone();
    let world = World::new();
    world.site.bundle(&[("crds/none.txt", b"")], 0);
    let long = format!("  - {{version: 0.0.1, description: '{}'}}\n", "x".repeat(99_000));
    let mut parts = vec!["entries:\n  other:\n"];
    parts.extend(std::iter::repeat_n(&*long, MAX_INDEX_BYTES / long.len() - 1));
    parts.push("  web: [{version: 1.0.0}]\n");
    world.site.index(parts);
    check("long descriptions", &world, "");

    let lines: Vec<String> =
        (0..19_000).map(|number| format!("  - {{version: 0.0.{number}, created: '2026-11-23'}}\n")).collect();
    let parts = ["entries:\n  other:\n"].into_iter().chain(lines.iter().map(String::as_str));
    world.site.index(parts.chain(["  web: [{version: 1.0.0}]\n"]));
    check("many versions", &world, "");

    let text = "long text ".repeat(10_000);
    for begin in ["entries: {a: [{version: '", "# ", "entries: {a: [{version: "] {
        world
            .site
            .index([begin].into_iter().chain(std::iter::repeat_n(&*text, MAX_INDEX_BYTES / text.len() - 1)));
        check(begin, &world, "without a value");
    }
    let small = "{},".repeat(10_000);
    let many = std::iter::repeat_n(&*small, MAX_INDEX_BYTES / small.len() - 1);
    world.site.index(["entries: {a: [["].into_iter().chain(many));
    check("one entry of small mappings", &world, "MiB of memory");
}

#[test]
fn a_bundle_is_never_held_as_a_whole() {
    let _alone = alone();
    let world = World::new();
    world.site.index(["entries:\n  web: [{version: 1.0.0}]\n"]);
    world.site.bundle(&[("crds/none.txt", b"")], 63 << 20);
    check("one large file", &world, "");

    let crd = format!("list:\n{}", "- {a: [b, {c: d}]}\n".repeat(30_000));
    let files: Vec<(String, &[u8])> =
        (0..12).map(|number| (format!("crds/{number}.yaml"), crd.as_bytes())).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, content)| (&**name, *content)).collect();
    world.site.bundle(&files, 0);
    let (fetched, grown) = world.fetch();
    assert!(grown <= MOST, "CRDs: {} KiB: {}", grown >> 10, problem(&fetched));

    let large = vec![b' '; 9 << 20];
    world.site.bundle(&[("crds/large.yaml", &large)], 0);
    check("a CRD that is too large", &world, "have more than 8 MiB together");

    // A packed chart of packed zeros.
    let packed = pack(&[("web/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\n")], 4 << 20);
    let chart: &[u8] = b"apiVersion: v2\nname: web\nversion: 1.0.0\n";
    let charts: Vec<(String, &[u8])> =
        (0..20).map(|number| (format!("charts/c{number}.tgz"), &*packed)).collect();
    let mut files: Vec<(&str, &[u8])> = vec![("Chart.yaml", chart)];
    files.extend(charts.iter().map(|(name, content)| (&**name, *content)));
    world.site.bundle(&files, 0);
    check("packed charts", &world, "too large together");
}

#[test]
fn bundles_are_restored_part_by_part() {
    let _alone = alone();
    let world = World::new();
    world.site.index(["entries:\n  web: [{version: 1.0.0}]\n"]);
    // What can't be packed any further.
    let mut noise = vec![0_u8; 7 << 20];
    let mut state = 1_u64;
    for byte in &mut noise {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    world.site.bundle(&[("crds/none.txt", b""), ("files/noise", &noise)], 0);
    drop(noise);
    let fetched = world.fetch().0;
    assert_eq!(problem(&fetched), "");
    let Ok(addons) = &fetched.repositories.first().unwrap().outcome else {
        unreachable!("there is no problem")
    };
    let bundle = addons.first().unwrap().outcome.clone().unwrap();
    let addon = RegisteredAddon::new(SourceKey::cluster("a"), String::new(), bundle);
    let registry = Registry { addons: [addon].into_iter().collect(), is_written: true };
    let kept = grown_by(async { world.sources().keep(&registry, &[]).await.unwrap() });
    // What the API server in this process keeps of it is not ours.
    let ours = kept.saturating_sub(10 << 20);
    assert!(ours <= MOST, "{} KiB to keep it", ours >> 10);
    fs::remove_dir_all(world.dir.path().join("sources")).unwrap();
    let restored = grown_by(async {
        assert_eq!(world.sources().restore().await.unwrap().problems.len(), 0);
    });
    assert!(restored <= MOST / 2, "{} KiB to restore it", restored >> 10);
}
