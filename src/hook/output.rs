//! Reads and checks all files that a hook wrote. See docs/hooks.md#what-a-hook-writes.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::hook::reconcile::{self, ReconcileResult};
use engine::hook::response;
use engine::object_patch::ObjectPatch;
use engine::{Failure, FailureKind, HookOutput, metric, object_patch};
use serde_json::{Map, Value};
use values::patch::{Patch, Root, Target};

/// How many bytes a file with patches of values may have.
const LONGEST_PATCH: usize = 32 << 20;

/// The files for the output of a hook.
#[derive(Debug)]
pub(super) struct OutputFiles {
    pub(super) config_patch: PathBuf,
    pub(super) values_patch: PathBuf,
    pub(super) metrics: PathBuf,
    pub(super) object_patches: PathBuf,
    /// The answers to the API server, of a hook that it may ask.
    pub(super) responses: Option<ResponseFiles>,
    /// Where the hook says what should be, if it runs for a reconcile binding.
    pub(super) reconcile: Option<PathBuf>,
}

/// What a hook wrote into all its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) bytes: u64,
    /// Whether all files are there and empty.
    pub(super) is_nothing: bool,
}

impl Written {
    /// What is there of files that are empty.
    pub(super) const NOTHING: Self = Self { bytes: 0, is_nothing: true };
}

/// The files for what a hook answers to the API server.
#[derive(Debug)]
pub(super) struct ResponseFiles {
    pub(super) admission: PathBuf,
    pub(super) conversion: PathBuf,
}

impl OutputFiles {
    /// Iterates over the files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let all = [&self.config_patch, &self.values_patch, &self.metrics, &self.object_patches];
        let responses = self.responses.iter().flat_map(|files| [&files.admission, &files.conversion]);
        all.into_iter().chain(responses).chain(&self.reconcile).map(PathBuf::as_path)
    }

    /// Returns what the hook wrote, in bytes.
    pub(super) fn written(&self) -> Written {
        self.paths().fold(Written::NOTHING, |written, path| {
            let found = std::fs::metadata(path);
            let bytes = found.as_ref().map_or(0, std::fs::Metadata::len);
            let is_empty = found.is_ok_and(|file| file.is_file() && file.len() == 0);
            Written { bytes: written.bytes.saturating_add(bytes), is_nothing: written.is_nothing && is_empty }
        })
    }

    /// Reads all files. The first one that is invalid makes the whole run a failure.
    ///
    /// `written` is what was found when the hook had ended: where nothing was written, nothing is looked at again.
    pub(super) fn read(&self, root: &Root, written: Written) -> Result<HookOutput, Failure> {
        if written.is_nothing && self.responses.is_none() {
            return Ok(HookOutput::default());
        }
        let read =
            |path: &Path, longest| if written.is_nothing { Ok(Vec::new()) } else { read(path, longest) };
        let patch = |path: &Path, target, what: &str| -> Result<Patch, Failure> {
            Patch::read(&read(path, LONGEST_PATCH)?, target, root).map_err(|error| wrong(what, &error))
        };
        let config_patch =
            patch(&self.config_patch, Target::ConfigValues, "got bad json patch for config values")?;
        let values_patch = patch(&self.values_patch, Target::Values, "got bad json patch for values")?;
        let metrics = metric::parse(&read(&self.metrics, metric::MAX_BYTES)?)
            .map_err(|error| wrong("got bad metrics", &error))?;
        let object_patches = object_patch::parse(&read(&self.object_patches, object_patch::MAX_BYTES)?)
            .map_err(|error| wrong("can't read object patch file", &error))?;
        let reconcile = match &self.reconcile {
            Some(file) => reconcile::parse(&read(file, reconcile::MAX_BYTES)?)
                .map_err(|error| wrong("got a bad result of reconcile", &error))?,
            None => ReconcileResult::default(),
        };
        let mut output = HookOutput {
            config_patch,
            values_patch,
            metrics,
            object_patches,
            reconcile: Box::new(reconcile),
            ..HookOutput::default()
        };
        if let Some(ResponseFiles { admission, conversion }) = &self.responses {
            let admission = read(admission, response::MAX_BYTES)?;
            output.admission = response::admission(&admission, read_patch)
                .map(|response| response.map(Box::new))
                .map_err(|error| wrong("got bad validating response", &error))?;
            let conversion = read(conversion, response::MAX_BYTES)?;
            output.conversion = response::conversion(&conversion)
                .map(|response| response.map(Box::new))
                .map_err(|error| wrong("got bad conversion response", &error))?;
        }
        Ok(output)
    }

    /// Returns the object patches that are applied although the hook failed. An unreadable file has none.
    pub(super) fn surviving_patches(&self) -> Vec<ObjectPatch> {
        let bytes = read(&self.object_patches, object_patch::MAX_BYTES).unwrap_or_default();
        let mut patches = object_patch::parse(&bytes).unwrap_or_default();
        patches.retain(ObjectPatch::survives_hook_error);
        patches
    }
}

/// Returns why a text is no JSON patch in base64, if it is none.
fn read_patch(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let bytes = STANDARD.decode(text.trim()).map_err(|error| error.to_string())?;
    serde_json::from_slice::<json_patch::Patch>(&bytes).map_err(|error| error.to_string())?;
    objects::patch::json::parse(&bytes).map_err(|error| error.to_string())
}

fn wrong(what: &str, error: &dyn std::error::Error) -> Failure {
    let mut failure = Failure::of(FailureKind::HookOutput, error);
    // Where little room is, what is said twice takes the place of the reason.
    if failure.message.starts_with(what) {
        return failure;
    }
    let cause = std::mem::replace(&mut failure.message, what.to_owned());
    failure.chain.insert(0, cause);
    failure
}

/// Reads a file of at most `longest` bytes that a hook wrote. A file that the hook removed is empty.
pub(super) fn read(path: &Path, longest: usize) -> Result<Vec<u8>, Failure> {
    let failed = |message: String| Failure::new(FailureKind::HookOutput, message);
    // Most hooks write into one of their files at most.
    if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Ok(Vec::new());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A hook can replace its file by a pipe. Opening must not wait for a writer.
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(format!("can't read {name}: {error}"))),
    };
    let metadata = file.metadata().map_err(|error| failed(format!("can't read {name}: {error}")))?;
    if !metadata.is_file() {
        return Err(failed(format!(
            "{name} is no regular file any more; the hook should write into the file"
        )));
    }
    let limit = u64::try_from(longest).unwrap_or(u64::MAX);
    if metadata.len() > limit {
        let message = format!("{name} has {} bytes, more than the {longest} that are read", metadata.len());
        return Err(failed(message).advise("write less in one run"));
    }
    let mut bytes = Vec::new();
    // A child of the hook may still be writing, so the length is limited again.
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("can't read {name}: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn outputs(directory: &Path) -> OutputFiles {
        let file = |name: &str| {
            let path = directory.join(name);
            File::create(&path).unwrap();
            path
        };
        OutputFiles {
            config_patch: file("config"),
            values_patch: file("values"),
            metrics: file("metrics"),
            object_patches: file("objects"),
            responses: Some(ResponseFiles { admission: file("admission"), conversion: file("conversion") }),
            reconcile: Some(file("reconcile")),
        }
    }

    fn refused(outputs: &OutputFiles) -> String {
        outputs.read(&Root::Global, outputs.written()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_any_length_is_refused_before_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let outputs = outputs(directory.path());
        for path in [&outputs.metrics, &outputs.object_patches, &outputs.values_patch, &outputs.config_patch]
        {
            File::options().write(true).open(path).unwrap().set_len(1 << 30).unwrap();
            let message = refused(&outputs);
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(message.starts_with(&format!("{name} has 1073741824 bytes, more than")), "{message}");
            fs::write(path, "").unwrap();
        }
        assert!(outputs.read(&Root::Global, outputs.written()).is_ok());
    }

    #[test]
    fn what_is_no_file_any_more_is_refused_and_what_is_gone_is_empty() {
        let directory = tempfile::tempdir().unwrap();
        let outputs = outputs(directory.path());
        fs::remove_file(&outputs.metrics).unwrap();
        assert_eq!(outputs.read(&Root::Global, outputs.written()).unwrap().metrics, []);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &outputs.metrics, mode).unwrap();
        assert!(refused(&outputs).contains("metrics is no regular file"));
        fs::remove_file(&outputs.metrics).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &outputs.metrics).unwrap();
        assert!(refused(&outputs).contains("metrics is no regular file"));
        fs::remove_file(&outputs.metrics).unwrap();
        fs::create_dir(&outputs.metrics).unwrap();
        assert!(refused(&outputs).contains("metrics is no regular file"));
    }

    #[test]
    fn one_bad_file_makes_all_of_them_worthless() {
        let directory = tempfile::tempdir().unwrap();
        let outputs = outputs(directory.path());
        let good = [
            (&outputs.config_patch, r#"{"op":"add","path":"/global/a","value":1}"#),
            (&outputs.values_patch, r#"{"op":"add","path":"/global/b","value":1}"#),
            (&outputs.metrics, r#"{"name":"a","set":1}"#),
            (&outputs.object_patches, r#"{"operation":"Delete","kind":"Pod","name":"a"}"#),
        ];
        for (path, text) in good {
            fs::write(path, text).unwrap();
        }
        let read = outputs.read(&Root::Global, outputs.written()).unwrap();
        assert_eq!((read.metrics.len(), read.object_patches.len()), (1, 1));
        for ((path, text), expected) in good.into_iter().zip([
            "got bad json patch for config values: ",
            "got bad json patch for values: ",
            "got bad metrics: ",
            "can't read object patch file: ",
        ]) {
            fs::write(path, "{\"broken\":").unwrap();
            let message = refused(&outputs);
            assert!(message.starts_with(expected), "{message}");
            assert_eq!(message.matches(expected).count(), 1, "{message}");
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn of_a_failed_run_only_patches_of_a_status_that_say_so_survive() {
        let directory = tempfile::tempdir().unwrap();
        let outputs = outputs(directory.path());
        let patch = |name: &str, more: &str| {
            format!(
                "{{\"operation\":\"MergePatch\",\"kind\":\"Pod\",\"name\":\"{name}\",\"mergePatch\":{{\"status\":{{}}}}{more}}}\n"
            )
        };
        let text = patch("plain", "")
            + &patch("status", ",\"subresource\":\"/status\",\"ignoreHookError\":true")
            + &patch("spec", ",\"ignoreHookError\":true");
        fs::write(&outputs.object_patches, &text).unwrap();
        let names: Vec<String> =
            outputs.surviving_patches().into_iter().map(|patch| patch.target.name).collect();
        assert_eq!(names, ["status"]);
        fs::write(&outputs.object_patches, text + "{").unwrap();
        assert!(outputs.surviving_patches().is_empty(), "a broken file is none");
    }
}
