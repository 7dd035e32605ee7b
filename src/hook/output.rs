//! What a hook wrote into its files, read and checked as a whole.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use engine::{Failure, FailureKind, HookOutput};
use values::patch::{Patch, Root, Target};

/// How many bytes an output file may have.
const LONGEST_FILE: u64 = 64 * 1024 * 1024;

/// Where a hook writes.
#[derive(Debug)]
pub(super) struct OutputFiles {
    pub(super) config_patch: PathBuf,
    pub(super) values_patch: PathBuf,
    pub(super) metrics: PathBuf,
    pub(super) object_patches: PathBuf,
}

impl OutputFiles {
    /// Reads all files. The first that can't be used makes the whole run a failure.
    pub(super) fn read(&self, root: &Root) -> Result<HookOutput, Failure> {
        let patch = |path: &Path, target, what: &str| -> Result<Patch, Failure> {
            Patch::read(&read(path)?, target, root).map_err(|error| wrong(what, &error))
        };
        let config_patch =
            patch(&self.config_patch, Target::ConfigValues, "got bad json patch for config values")?;
        let values_patch = patch(&self.values_patch, Target::Values, "got bad json patch for values")?;
        let metrics =
            engine::metric::parse(&read(&self.metrics)?).map_err(|error| wrong("got bad metrics", &error))?;
        let object_patches = engine::object_patch::parse(&read(&self.object_patches)?)
            .map_err(|error| wrong("can't read object patch file", &error))?;
        Ok(HookOutput { config_patch, values_patch, metrics, object_patches })
    }
}

fn wrong(what: &str, error: &dyn std::error::Error) -> Failure {
    let mut failure = Failure::of(FailureKind::HookOutput, error);
    let cause = std::mem::replace(&mut failure.message, what.to_owned());
    failure.chain.insert(0, cause);
    failure
}

/// Reads a file that a hook wrote. A file that the hook removed is empty.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |message: String| Failure::new(FailureKind::HookOutput, message);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(format!("can't read {name}: {error}"))),
    };
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    if size > LONGEST_FILE {
        return Err(failed(format!("{name} has {size} bytes; more than 64 MiB are not read")));
    }
    let mut bytes = Vec::new();
    // A hook's child may still be writing: what is read stays bounded.
    let read = file.take(LONGEST_FILE).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("can't read {name}: {error}")))?;
    Ok(bytes)
}
