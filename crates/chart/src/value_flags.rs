//! Values as a command line gives them: files and `--set` flags.

use serde_json::{Map, Value};

use crate::coalesce::overlay;
use crate::strvals::{self, Form, SetError};
use crate::yaml::{self, FileError};

/// The flags that give values, each with its arguments in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueFlags {
    /// `--values`: paths of files.
    pub files: Vec<String>,
    /// `--set-json`
    pub set_json: Vec<String>,
    /// `--set`
    pub set: Vec<String>,
    /// `--set-string`
    pub set_string: Vec<String>,
    /// `--set-file`
    pub set_file: Vec<String>,
    /// `--set-literal`
    pub set_literal: Vec<String>,
}

/// Why the flags give no values.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// A file can't be read.
    #[error("{0}")]
    Read(String),
    /// A file is not what it should be.
    #[error("failed to parse {path}: {source}")]
    File {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        source: FileError,
    },
    /// An argument of `--set-json` is malformed.
    #[error(transparent)]
    Json(SetError),
    /// An argument of another flag is malformed.
    #[error("failed parsing --{flag} data: {source}")]
    Set {
        /// The flag.
        flag: &'static str,
        /// What is wrong.
        source: SetError,
    },
}

impl ValueFlags {
    /// Returns the values, those of later kinds of flags above those of earlier ones.
    ///
    /// `read` returns the content of a file, or the error to report.
    pub fn merged(
        &self,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Map<String, Value>, FlagError> {
        let mut values = Map::new();
        for path in &self.files {
            let data = read(path).map_err(FlagError::Read)?;
            let file =
                yaml::read_map(&data).map_err(|source| FlagError::File { path: path.clone(), source })?;
            overlay(&mut values, file);
        }
        for text in &self.set_json {
            strvals::set_json(text, &mut values).map_err(FlagError::Json)?;
        }
        each("set", &self.set, || Form::Typed, &mut values)?;
        each("set-string", &self.set_string, || Form::Text, &mut values)?;
        let mut text_of = |path: &str| read(path).map(|data| String::from_utf8_lossy(&data).into_owned());
        for text in &self.set_file {
            strvals::set(text, Form::File(&mut text_of), &mut values)
                .map_err(|source| FlagError::Set { flag: "set-file", source })?;
        }
        each("set-literal", &self.set_literal, || Form::Literal, &mut values)?;
        Ok(values)
    }
}

fn each(
    flag: &'static str,
    texts: &[String],
    form: fn() -> Form<'static>,
    values: &mut Map<String, Value>,
) -> Result<(), FlagError> {
    for text in texts {
        strvals::set(text, form(), values).map_err(|source| FlagError::Set { flag, source })?;
    }
    Ok(())
}
