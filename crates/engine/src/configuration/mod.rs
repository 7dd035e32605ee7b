//! The values: of files, of the ConfigMap and of hooks.

pub(crate) mod config_map;
pub(crate) mod hook_output;
pub(crate) mod redaction;
pub(crate) mod sections;
