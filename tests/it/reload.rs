//! Files that change while the operator runs, in all the ways in which files change.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_operator::driver::{self, Channels};
use addon_operator::load::{self, FileWatch, Loader};
use engine::{Catalog, Event, Failure, Module};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::files::{load_options, write};
use crate::support::program::{Running, Workspace, get, hook};

const HOOK: &str = "#!/bin/bash\necho '{\"configVersion\":\"v1\",\"beforeHelm\":5}'\n";

/// How long after a change its catalog has to be there. The machine runs other tests, too.
const SOON: Duration = Duration::from_secs(5);

/// A directory that is watched.
struct Files {
    dir: TempDir,
    loader: Arc<Loader>,
    channels: Channels,
    _watched: Option<FileWatch>,
}

impl Files {
    /// Prepares files with `prepare`, loads them, and watches them.
    async fn new(prepare: impl FnOnce(&Path)) -> (Self, Catalog) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("global-hooks")).unwrap();
        prepare(dir.path());
        let _ = fs::create_dir(dir.path().join("modules"));
        let loader = Arc::new(Loader::new(load_options(dir.path())));
        let catalog = loader.load().await.unwrap();
        let (inbox, _, channels) = driver::channels();
        let watched = load::watch(Arc::clone(&loader), &inbox).unwrap();
        (Self { dir, loader, channels, _watched: Some(watched) }, catalog)
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    /// Waits for what comes of a change.
    async fn outcome(&mut self) -> Result<Catalog, Failure> {
        let event = timeout(SOON, self.channels.next_event())
            .await
            .unwrap_or_else(|_| panic!("the change was not noticed"))
            .unwrap();
        if let Event::CatalogChanged { catalog } = event {
            return Ok(catalog);
        }
        let Event::CatalogRejected { failure } = event else { panic!("{event:?}") };
        Err(failure)
    }

    /// Waits for the catalog after a change, and checks that it comes once and is that of the files.
    async fn changed(&mut self) -> Catalog {
        let catalog = self.outcome().await.unwrap();
        assert_eq!(catalog, self.loader.reload().await.unwrap());
        let again = timeout(Duration::from_millis(400), self.channels.next_event()).await;
        assert!(again.is_err(), "the change was told twice: {again:?}");
        catalog
    }
}

fn module(catalog: &Catalog, name: &str) -> Arc<Module> {
    Arc::clone(catalog.module(&name.into()).unwrap())
}

fn hooks(catalog: &Catalog, name: &str) -> Vec<String> {
    module(catalog, name).hooks.iter().map(|hook| hook.id.name.to_string()).collect()
}

/// Two modules with a hook each.
fn two(root: &Path) {
    write(&root.join("modules/010-a/hooks/a.sh"), HOOK);
    write(&root.join("modules/020-b/hooks/b.sh"), HOOK);
}

/// A new version of the directory behind a volume of a ConfigMap, and the swap of its link.
fn swap(root: &Path, version: &str, text: &str) {
    let volume = root.join("modules");
    let hook = format!("modules/..{version}/010-a/hooks/a.sh");
    write(&root.join(hook), text);
    write(&root.join(format!("modules/..{version}/020-b/hooks/b.sh")), HOOK);
    symlink(format!("..{version}"), volume.join("..data_tmp")).unwrap();
    let old = fs::read_link(volume.join("..data")).ok();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    match old {
        Some(old) => fs::remove_dir_all(volume.join(old)).unwrap(),
        None => {
            for name in ["010-a", "020-b"] {
                symlink(format!("..data/{name}"), volume.join(name)).unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_a_volume_of_a_config_map_that_is_swapped_is_loaded_once() {
    let (mut files, before) = Files::new(|root| swap(root, "2026_1", HOOK)).await;
    swap(files.dir.path(), "2026_2", &format!("{HOOK}# new\n"));
    let after = files.changed().await;
    assert_eq!(module(&after, "b"), module(&before, "b"), "a module that did not change is another one");
    assert_ne!(module(&after, "a"), module(&before, "a"));
    assert!(Path::new(&*module(&after, "a").path).ends_with("modules/010-a"));
    swap(files.dir.path(), "2026_3", &format!("{HOOK}# newer\n"));
    assert_ne!(module(&files.changed().await, "a"), module(&after, "a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_a_modules_directory_that_is_a_link_may_be_replaced() {
    let (mut files, before) = Files::new(|root| {
        for revision in ["one", "two"] {
            write(&root.join(format!("{revision}/010-a/hooks/a.sh")), HOOK);
            write(&root.join(format!("{revision}/020-b/hooks/{revision}.sh")), HOOK);
        }
        symlink("one", root.join("modules")).unwrap();
    })
    .await;
    symlink("two", files.at("next")).unwrap();
    fs::rename(files.at("next"), files.at("modules")).unwrap();
    let after = files.changed().await;
    assert_eq!(module(&after, "a"), module(&before, "a"));
    assert_eq!(hooks(&after, "b"), ["hooks/two.sh"]);
    write(&files.at("two/010-a/hooks/a.sh"), &format!("{HOOK}# new\n"));
    assert_ne!(module(&files.changed().await, "a"), module(&before, "a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_drafts_of_editors_change_nothing() {
    let (mut files, before) = Files::new(two).await;
    for draft in
        [".a.sh.swp", ".a.sh.swx", "a.sh~", "#a.sh#", "4913", "a.sh___jb_tmp___", ".goutputstream-X1"]
    {
        write(&files.at(&format!("modules/010-a/hooks/{draft}")), HOOK);
    }
    assert_eq!(files.changed().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_a_file_that_is_replaced_as_editors_do_is_loaded_once() {
    let (mut files, before) = Files::new(two).await;
    let hook = files.at("modules/010-a/hooks/a.sh");
    // As vim does: a backup, a new file under the old name, written and made executable in steps.
    fs::rename(&hook, files.at("modules/010-a/hooks/a.sh~")).unwrap();
    let mut file = fs::File::create(&hook).unwrap();
    file.write_all(HOOK.as_bytes()).unwrap();
    file.write_all(b"# new\n").unwrap();
    drop(file);
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(files.at("modules/010-a/hooks/a.sh~")).unwrap();
    let after = files.changed().await;
    assert_eq!(hooks(&after, "a"), ["hooks/a.sh"]);
    assert_eq!(
        (module(&after, "a") == module(&before, "a"), module(&after, "b") == module(&before, "b")),
        (false, true)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_a_half_written_hook_is_not_told_to_be_broken() {
    let (mut files, _) = Files::new(two).await;
    let path = files.at("modules/010-a/hooks/new.sh");
    let mut file = fs::File::create(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    file.write_all(b"#!/bin/bash\nif [[ ").unwrap();
    // Longer than the files have to be quiet: it is loaded as it is, and found broken.
    tokio::time::sleep(Duration::from_millis(180)).await;
    file.write_all(b"a == a ]]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":5}'; fi\n").unwrap();
    drop(file);
    let after = files.changed().await;
    assert_eq!(module(&after, "a").broken, None);
    assert_eq!(hooks(&after, "a"), ["hooks/a.sh", "hooks/new.sh"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_a_hook_that_its_writer_keeps_open_is_loaded_when_it_is_closed() {
    let (mut files, _) = Files::new(two).await;
    let path = files.at("modules/010-a/hooks/new.sh");
    let mut file = fs::File::create(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    file.write_all(HOOK.as_bytes()).unwrap();
    // The system starts no program that somebody is writing.
    let catalog = files.outcome().await.unwrap();
    assert!(module(&catalog, "a").broken.is_some(), "{:?}", module(&catalog, "a"));
    drop(file);
    let after = files.changed().await;
    assert_eq!(module(&after, "a").broken, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_an_execute_bit_makes_and_unmakes_a_hook() {
    let (mut files, _) = Files::new(two).await;
    let hook = files.at("modules/010-a/hooks/a.sh");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    let after = files.changed().await;
    assert_eq!(hooks(&after, "a"), Vec::<String>::new());
    assert!(after.warnings.iter().any(|warning| warning.contains("chmod +x")), "{:?}", after.warnings);
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(hooks(&files.changed().await, "a"), ["hooks/a.sh"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_links_in_a_circle_and_links_to_elsewhere_are_followed_as_far_as_they_go() {
    let (mut files, _) = Files::new(|root| {
        two(root);
        write(&root.join("elsewhere/hooks/c.sh"), HOOK);
    })
    .await;
    symlink(files.at("modules"), files.at("modules/010-a/hooks/again")).unwrap();
    symlink(files.at("elsewhere"), files.at("modules/030-c")).unwrap();
    let after = files.changed().await;
    assert_eq!(
        (hooks(&after, "a"), hooks(&after, "c")),
        (vec!["hooks/a.sh".into()], vec!["hooks/c.sh".to_owned()])
    );
    write(&files.at("elsewhere/hooks/d.sh"), HOOK);
    assert_eq!(hooks(&files.changed().await, "c"), ["hooks/c.sh", "hooks/d.sh"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h3_ten_thousand_files_are_loaded_once() {
    let (mut files, before) = Files::new(two).await;
    for number in 0..10_000 {
        write(&files.at(&format!("modules/010-a/templates/{}/{number}.yaml", number % 100)), "a: b\n");
    }
    let written = Instant::now();
    // On a busy machine writing pauses longer than files have to be quiet; then there is more than one catalog.
    let mut loads = 1;
    let mut after = files.outcome().await.unwrap();
    while after != files.loader.reload().await.unwrap() {
        after = files.outcome().await.unwrap();
        loads += 1;
    }
    eprintln!("10,000 files: loaded {loads} times, right {:?} after the last was written", written.elapsed());
    assert!(loads <= 20, "loaded {loads} times");
    assert!(module(&after, "a").has_chart);
    assert_eq!(module(&after, "b"), module(&before, "b"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_global_hook_does_not_keep_other_changes_back() {
    let (mut files, before) = Files::new(|root| {
        two(root);
        write(
            &root.join("global-hooks/g.sh"),
            "#!/bin/bash\necho '{\"configVersion\":\"v1\",\"beforeAll\":5}'\n",
        );
    })
    .await;
    write(&files.at("global-hooks/g.sh"), "#!/bin/bash\necho no luck >&2; exit 3\n");
    write(&files.at("modules/010-a/hooks/a.sh"), &format!("{HOOK}# new\n"));
    let after = files.changed().await;
    assert_ne!(module(&after, "a"), module(&before, "a"));
    let broken = after.global.broken.first().unwrap();
    assert_eq!(broken.hook.as_ref().unwrap().as_str(), "g.sh");
    assert!(broken.failure.to_string().contains("no luck"), "{}", broken.failure);
    write(&files.at("modules/values.yaml"), "a: [\n");
    let failure = files.outcome().await.unwrap_err();
    assert!(failure.to_string().contains("modules/values.yaml"), "{failure}");
}

/// A hook that says what it is.
fn saying(word: &str) -> String {
    hook("\"beforeHelm\":1", &format!("echo \"{word}\""))
}

#[test]
fn start_takes_up_changed_files_tells_broken_ones_everywhere_and_purges_on_command() {
    let world = Workspace::new();
    world.write("modules/values.yaml", "webEnabled: true\ndbEnabled: true\n");
    for (module, word) in [("010-web", "web one"), ("020-db", "db one")] {
        world.write(&format!("modules/{module}/hooks/a.sh"), &saying(word));
        world.write(&format!("modules/{module}/Chart.yaml"), "apiVersion: v2\nname: x\nversion: 0.1.0\n");
        let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{module}\"}}\n");
        world.write(&format!("modules/{module}/templates/a.yaml"), &object);
    }
    let arguments = ["apiserver", "--listen", "127.0.0.1:0", "--kubeconfig-out", "kubeconfig"];
    let mut server = Running::start(world.command(&arguments));
    server.wait_for_file(&world.path().join("kubeconfig"));
    let start = ["start", "--kube-config", "kubeconfig", "--namespace", "default"];
    let places = ["--debug-unix-socket", "socket", "--tmp-dir", "tmp", "--log-type", "text"];
    let port = ["--prometheus-listen-port", "0", "--prometheus-listen-address", "127.0.0.1"];
    let all: Vec<&str> = start.iter().chain(&places).chain(&port).copied().collect();
    let mut running = Running::start(world.command(&all));
    let line = running.wait("listening on 127.0.0.1:");
    let port = line.rsplit("127.0.0.1:").next().unwrap().split_whitespace().next().unwrap().to_owned();
    running.wait("Operator is ready now");

    world.write("modules/010-web/hooks/a.sh", &saying("web two"));
    running.wait("web two");
    world.write("modules/010-web/hooks/a.sh", "#!/bin/bash\necho broken on purpose >&2; exit 9\n");
    running.wait("the new version of module web can't be used, the old one stays in force");
    let metrics = get(&port, "/metrics");
    assert!(metrics.contains("addon_operator_broken_files{module=\"web\"} 1"), "{metrics}");
    for path in ["/queue", "/"] {
        let shown = get(&port, path);
        assert!(shown.contains("broken on purpose"), "{path}: {shown}");
    }
    world.write("global-hooks/g.sh", "#!/bin/bash\necho just as broken >&2; exit 9\n");
    running.wait("the new version of global hook g.sh can't be used");
    assert!(get(&port, "/").contains("just as broken"));
    assert!(get(&port, "/metrics").contains("addon_operator_broken_files{module=\"\"} 1"));
    fs::remove_file(world.path().join("global-hooks/g.sh")).unwrap();
    world.write("modules/010-web/hooks/a.sh", &saying("web three"));
    running.wait("web three");
    assert!(!get(&port, "/metrics").contains("addon_operator_broken_files{"));

    let socket = ["--debug-unix-socket", "socket"];
    let ask = |words: &[&str]| world.ask(&words.iter().chain(&socket).copied().collect::<Vec<_>>());
    let (code, text) = ask(&["module", "purge", "db"]);
    assert!(code != 0 && text.contains("module db is enabled"), "{text}");
    fs::remove_dir_all(world.path().join("modules/020-db")).unwrap();
    running.wait("module db is orphaned");
    assert!(ask(&["module", "releases"]).1.contains("db"), "the release of a vanished module is gone");
    assert!(get(&port, "/").contains("orphaned"));
    let (code, text) = ask(&["module", "purge", "db"]);
    assert!(code == 0, "{text}");
    running.wait("ModulePurge");
    assert!(!ask(&["module", "releases"]).1.contains("db"));
    assert!(!running.seen().iter().any(|line| line.contains("db two")));
    assert_eq!(running.stop(), 0);
    let _ = server.stop();
}
