//! What a hook answered.

use crate::event::HookOutput;
use crate::hook::response::{AdmissionResponse, ConversionResponse};

/// What a hook answered.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(super) admission: Option<Box<AdmissionResponse>>,
    pub(super) conversion: Option<Box<ConversionResponse>>,
}

impl Response {
    /// Takes the response out of what a hook wrote.
    pub(super) fn take(output: &mut HookOutput) -> Self {
        Self { admission: output.admission.take(), conversion: output.conversion.take() }
    }
}
