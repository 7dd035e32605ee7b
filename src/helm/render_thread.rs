//! Threads with stacks that deep templates need.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::thread;

/// How much stack a render gets; more than [`chart::template::Limits`] allows it to use.
const STACK_BYTES: usize = 64 << 20;

/// Why work on a thread of its own gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RenderThreadError {
    /// The thread could not be started.
    #[error("can not start a thread for the render: {0}")]
    Start(#[source] io::Error),
    /// The work panicked.
    #[error("the render failed by a bug of the operator: {0}")]
    Panic(String),
}

/// Keeps panics of the YAML parser, each of which becomes an error where it is called,
/// from being printed. All others are printed as before.
pub fn quiet_yaml_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_caught = panic.location().is_some_and(|place| place.file().contains("libyaml-safer-"));
        if !is_caught {
            print(panic);
        }
    }));
}

/// How much memory a thread gets at once.
const MEMORY_BYTES: usize = 16 << 20;

/// Lets the allocator get its memory for this thread in one large piece.
///
/// That of glibc asks the system for four kilobytes each time, on every thread but the first. A
/// large block that was freed is what it takes as the sign that large blocks are usual here.
pub(super) fn reserve_thread_memory() {
    for _ in 0..2 {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(MEMORY_BYTES)));
    }
}

/// Does `work` on a thread with a large stack; a panic becomes an error.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, RenderThreadError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("render".to_owned()).stack_size(STACK_BYTES);
        let handle = thread
            .spawn_scoped(scope, || panic::catch_unwind(AssertUnwindSafe(work)))
            .map_err(RenderThreadError::Start)?;
        match handle.join() {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(cause)) | Err(cause) => {
                let text = cause
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Err(RenderThreadError::Panic(text.unwrap_or_else(|| "no message".to_owned())))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_a22_a_panic_in_a_render_becomes_an_error_and_the_process_lives() {
        let error = run(|| -> () { panic!("oh no") }).unwrap_err().to_string();
        assert_eq!(error, "the render failed by a bug of the operator: oh no");
        assert_eq!(run(|| 5).unwrap(), 5);
    }
}
