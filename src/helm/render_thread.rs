//! Threads with stacks that deep templates need.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

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

/// How long a thread waits for the next render before it ends and gives its stack back.
const REST: Duration = Duration::from_secs(10);

/// How many threads wait for a render.
const RESTING: usize = 4;

/// Work that calls what it is given when the thread may have more, and only then answers.
type Work = Box<dyn FnOnce(&dyn Fn()) + Send>;

/// The threads that wait for a render, each by a number. The one that waits for the shortest time comes last.
static WAITING: Mutex<Vec<(u64, Sender<Work>)>> = Mutex::new(Vec::new());

/// The number of the next thread.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Does `work` on a thread with a large stack; a panic becomes an error.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, RenderThreadError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("render".to_owned()).stack_size(STACK_BYTES);
        let handle = thread
            .spawn_scoped(scope, || panic::catch_unwind(AssertUnwindSafe(work)))
            .map_err(RenderThreadError::Start)?;
        handle.join().flatten().map_err(|cause| told(&*cause))
    })
}

/// Does the same for who must not be blocked. The thread is used again: to make one for each render takes longer than most renders.
pub(super) async fn run_aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RenderThreadError> {
    let (answer, result) = channel();
    let work: Work = Box::new(move |rest: &dyn Fn()| {
        let done = panic::catch_unwind(AssertUnwindSafe(work));
        rest();
        // Who asked may have gone away.
        let _ = answer.send(done);
    });
    let waiting = waiting().pop();
    let thread = match waiting {
        Some((_, thread)) => thread,
        None => start().map_err(RenderThreadError::Start)?,
    };
    let ended = || RenderThreadError::Panic("its thread has ended".to_owned());
    thread.send(work).map_err(|_| ended())?;
    // On a thread for blocking work: while one waits there, a clock that stands still in a test does not go on.
    let result = tokio::task::spawn_blocking(move || result.recv()).await;
    result.map_err(|_| ended())?.map_err(|_| ended())?.map_err(|cause| told(&*cause))
}

fn waiting() -> MutexGuard<'static, Vec<(u64, Sender<Work>)>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that works until there was nothing to do for a while.
fn start() -> io::Result<Sender<Work>> {
    let (sender, receiver) = channel();
    let (number, own) = (NEXT.fetch_add(1, Ordering::Relaxed), sender.clone());
    let thread = thread::Builder::new().name("render".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || work_on(number, &own, &receiver))?;
    Ok(sender)
}

fn work_on(number: u64, own: &Sender<Work>, works: &Receiver<Work>) {
    let rest = || waiting().push((number, own.clone()));
    loop {
        let work = works.recv_timeout(REST);
        let is_idle = work.is_err();
        if let Ok(work) = work {
            work(&rest);
        }
        let mut waiting = waiting();
        let place = waiting.iter().position(|(other, _)| *other == number);
        // Whoever has taken it out is about to send work.
        let Some(place) = place else { continue };
        if is_idle || waiting.len() > RESTING {
            waiting.remove(place);
            return;
        }
    }
}

fn told(cause: &(dyn Any + Send)) -> RenderThreadError {
    let text = cause
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    RenderThreadError::Panic(text.unwrap_or_else(|| "no message".to_owned()))
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

    #[tokio::test]
    async fn renders_one_after_the_other_are_done_by_one_thread_also_behind_a_panic() {
        let of_thread = || (thread::current().name().map(str::to_owned), thread::current().id());
        let (name, first) = run_aside(of_thread).await.unwrap();
        assert_eq!(name.as_deref(), Some("render"));
        // Other tests may take it in between.
        let mut again = Vec::new();
        for _ in 0..20 {
            again.push(run_aside(of_thread).await.unwrap().1);
        }
        assert!(again.contains(&first), "{first:?} {again:?}");
        let error = run_aside(|| -> () { panic!("oh no") }).await.unwrap_err().to_string();
        assert_eq!(error, "the render failed by a bug of the operator: oh no");
        assert_eq!(run_aside(|| 5).await.unwrap(), 5);
    }
}
