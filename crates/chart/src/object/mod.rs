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

/// Returns the path that a method is called with.
fn path_of(args: &[crate::value::Value]) -> String {
    let path = args.first().and_then(crate::value::Value::as_text);
    path.map(|text| text.lossy().into_owned()).unwrap_or_default()
}
