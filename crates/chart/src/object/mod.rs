//! The objects that templates find under the dot: `.Values`, `.Files`, `.Capabilities`, `.Chart`.

mod capabilities;
mod files;
mod glob;
mod metadata;
mod values;

pub use capabilities::{Capabilities, KubeVersion, KubeVersionError};
pub(crate) use files::files;
pub(crate) use metadata::ChartObject;
pub(crate) use values::VALUES;
