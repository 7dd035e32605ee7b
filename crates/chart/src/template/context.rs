//! What a running function may use of the render it is part of.

use super::Limits;
use crate::call::CallError;
use crate::world::World;

/// The state of one render, handed to every function.
pub struct Context<'a> {
    /// What may be asked of the outside.
    pub world: &'a mut dyn World,
    limits: Limits,
    bytes: usize,
}

impl<'a> Context<'a> {
    /// Returns the state of a render that has not begun.
    pub fn new(world: &'a mut dyn World, limits: Limits) -> Self {
        Self { world, limits, bytes: 0 }
    }

    /// Counts `bytes` that a function is about to make, so that no function can
    /// fill the memory; to be called before results whose size an argument decides.
    pub fn charge(&mut self, bytes: usize) -> Result<(), CallError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            return Err(CallError::Limit(format!("rendering makes more than {} bytes", self.limits.bytes)));
        }
        Ok(())
    }
}
