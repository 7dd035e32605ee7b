//! Programs in Python that are run by the interpreter of a virtual environment beside them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::run::Program;

/// The variable that tells Python where its standard library is.
const HOME: &str = "PYTHONHOME";

/// Returns the interpreter of a virtual environment, if it can be run.
pub fn interpreter(venv: &Path) -> Option<PathBuf> {
    let path = venv.join("bin/python3");
    let metadata = fs::metadata(&path).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}

impl Program {
    /// Returns the program, run by the interpreter of a virtual environment.
    #[must_use]
    pub fn run_by_python_of(mut self, venv: &Path) -> Self {
        let script = std::mem::replace(&mut self.path, venv.join("bin/python3"));
        self.args.insert(0, script.into_os_string());
        if is_bound_to_another(venv) {
            self.environment.remove(HOME);
        } else {
            self.environment.set(HOME, venv);
        }
        self
    }
}

/// Returns whether the standard library of a virtual environment is that of the Python that made it.
///
/// Python finds it by itself then, and would not find it in the environment.
fn is_bound_to_another(venv: &Path) -> bool {
    let libraries = fs::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let mut libraries = libraries.map(|entry| entry.path().join("os.py"));
    venv.join("pyvenv.cfg").is_file() && !libraries.any(|library| library.is_file())
}

#[cfg(test)]
mod tests {
    use engine::hook::HookLimits;

    use super::*;

    #[test]
    fn only_an_environment_with_a_library_of_its_own_is_pythons_home() {
        let dir = tempfile::tempdir().unwrap();
        let program = || Program {
            path: "/hooks/a.py".into(),
            args: vec!["--config".into()],
            environment: vec![(HOME.into(), "/elsewhere".into()), ("A".into(), "b".into())].into(),
            timeout: None,
            mark: None,
            limits: HookLimits::default(),
            outputs: Vec::new(),
            chroot: None,
        };
        let home = || {
            let made = program().run_by_python_of(dir.path());
            assert_eq!(made.path, dir.path().join("bin/python3"));
            assert_eq!(made.args, ["/hooks/a.py", "--config"]);
            made.environment.get(HOME).map(PathBuf::from)
        };
        assert_eq!(home().as_deref(), Some(dir.path()));
        fs::write(dir.path().join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        assert_eq!(home(), None);
        fs::create_dir_all(dir.path().join("lib/python3.11")).unwrap();
        fs::write(dir.path().join("lib/python3.11/os.py"), "").unwrap();
        assert_eq!(home().as_deref(), Some(dir.path()));
    }

    #[test]
    fn an_interpreter_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(interpreter(dir.path()), None);
        let path = dir.path().join("bin/python3");
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(interpreter(dir.path()), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(interpreter(dir.path()), Some(path));
    }
}
