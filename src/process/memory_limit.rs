//! How much memory the container of this process may use, and how much it uses.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Where the system keeps its control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// A limit that is larger stands for none.
const NO_LIMIT: u64 = 1 << 60;

/// The files of a control group for memory, in both versions of control groups.
#[derive(Clone, Copy, Debug)]
struct Names {
    /// The controller in a line of `/proc/self/cgroup`, and the directory below the root.
    controller: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The line of `memory.stat` with what the system takes back when it needs it.
    reclaimable: &'static str,
}

const VERSIONS: [Names; 2] = [
    Names { controller: "", limit: "memory.max", used: "memory.current", reclaimable: "inactive_file " },
    Names {
        controller: "memory",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        reclaimable: "total_inactive_file ",
    },
];

/// The control group that limits the memory of this process.
#[derive(Clone, Debug)]
pub struct MemoryLimit {
    directory: PathBuf,
    names: Names,
    limit: u64,
    /// The file with what is used. It is read before and behind each run of a hook, so it stays open.
    used: Arc<OnceLock<File>>,
}

impl MemoryLimit {
    /// Returns the limit of this process; `None` if there is none.
    pub fn of_process() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        VERSIONS.into_iter().find_map(|names| Self::find(Path::new(ROOT), &groups, names))
    }

    /// Returns the limit that holds in the nearest group, of those that the lines of `groups` name and those above.
    fn find(root: &Path, groups: &str, names: Names) -> Option<Self> {
        let root = root.join(names.controller);
        let path = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == names.controller).then_some(path)
        });
        // In a container the group is often the root itself, whatever its path outside is.
        let own = root.join(path.unwrap_or_default().trim_start_matches('/'));
        own.ancestors().take_while(|dir| dir.starts_with(&root)).find_map(|dir| {
            let limit = fs::read_to_string(dir.join(names.limit)).ok()?.trim().parse().ok()?;
            (limit < NO_LIMIT).then(|| Self { directory: dir.to_owned(), names, limit, used: Arc::default() })
        })
    }

    /// Returns how many bytes may be used.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns how many bytes are used. Caches that the system takes back when it needs memory don't count.
    ///
    /// # Errors
    ///
    /// When the group can't be read any more.
    pub fn used(&self) -> io::Result<u64> {
        let file = if let Some(file) = self.used.get() {
            file
        } else {
            let opened = File::open(self.directory.join(self.names.used))?;
            self.used.get_or_init(|| opened)
        };
        let mut buffer = [0; 32];
        let length = file.read_at(&mut buffer, 0)?;
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
        let used: u64 = text.trim().parse().map_err(io::Error::other)?;
        // Caches make a difference only when much is used.
        if used < self.limit / 10 * 8 {
            return Ok(used);
        }
        let stat = fs::read_to_string(self.directory.join("memory.stat"))?;
        let caches =
            stat.lines().find_map(|line| line.strip_prefix(self.names.reclaimable)?.parse::<u64>().ok());
        Ok(used.saturating_sub(caches.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_h6_the_nearest_limit_counts_and_caches_do_not() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let [new, old] = VERSIONS;
        let groups = "4:cpu,memory:/a/b\n0::/pod/container\n";
        let find = |names| MemoryLimit::find(root.path(), groups, names);
        assert!(find(new).is_none() && find(old).is_none());
        write("pod/memory.max", "1000\n");
        write("pod/memory.current", "950\n");
        write("pod/memory.stat", "anon 1\nactive_file 7\ninactive_file 200\n");
        write("pod/container/memory.max", "max\n");
        let limit = find(new).unwrap();
        assert_eq!((limit.limit(), limit.used().unwrap()), (1000, 750));
        write("pod/memory.current", "100\n");
        assert_eq!(limit.used().unwrap(), 100);
        fs::remove_file(root.path().join("pod/memory.current")).unwrap();
        find(new).unwrap().used().unwrap_err();
        // The path outside of a container does not exist inside.
        write("memory/memory.limit_in_bytes", "2000\n");
        write("memory/memory.usage_in_bytes", "1900\n");
        write("memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
        let limit = find(old).unwrap();
        assert_eq!((limit.limit(), limit.used().unwrap()), (2000, 1800));
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert!(find(old).is_none());
    }
}
