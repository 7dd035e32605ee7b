//! Threads for filters: a filter that hangs or overflows stops nothing but itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::limits::{DEADLINE, use_stack};

/// The stack of a filter thread, in bytes, and what has to do where a limit of memory leaves no room for that. Most of it is never touched;
/// only reading deep filters and dropping deep values needs much.
pub(super) const LARGE_STACKS: [usize; 2] = [512 * 1024 * 1024, 64 * 1024 * 1024];

/// How much of its stack a filter may use for recursion.
const RECURSION: usize = 48 * 1024 * 1024;

/// How long a thread may be without progress. Filters end themselves at their deadline.
const TIMEOUT: Duration = Duration::from_secs(DEADLINE.as_secs() + 5);

/// How many idle threads are kept.
const RESTING: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that run filters. Clones share them.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Those that rest; `None` where filters run on the thread of those who ask.
    resting: Option<Arc<Mutex<Vec<Sender<Work>>>>>,
}

impl Default for Threads {
    fn default() -> Self {
        Self { resting: Some(Arc::default()) }
    }
}

/// Counts the steps of work that is done on a thread.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Records that a step is done. The next one has the full time again.
    pub fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn steps(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Starts a thread that runs until its sender is dropped.
fn start() -> Option<Sender<Work>> {
    let (sender, receiver): (_, Receiver<Work>) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    LARGE_STACKS.into_iter().find_map(|size| {
        let receiver = Arc::clone(&receiver);
        let thread = std::thread::Builder::new().name("filter".to_owned()).stack_size(size);
        let started = thread.spawn(move || {
            use_stack(RECURSION);
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
            for work in receiver.iter() {
                work();
            }
        });
        started.ok()
    })?;
    Some(sender)
}

/// Does `work` on a thread with a large stack and waits for it. Returns nothing where no thread can be started.
pub(super) fn on_large_stack<T: Send>(work: impl Fn() -> T + Sync) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = LARGE_STACKS.into_iter().find_map(|size| {
            let thread = std::thread::Builder::new().name("filter".to_owned()).stack_size(size);
            thread.spawn_scoped(scope, &work).ok()
        })?;
        thread.join().ok()
    })
}

impl Threads {
    /// Returns no threads: who asks waits for the filter, whatever that does. A simulation runs so, since its time
    /// stands still only while its own thread works.
    pub fn none() -> Self {
        Self { resting: None }
    }

    fn put_back(resting: &Mutex<Vec<Sender<Work>>>, thread: Sender<Work>) {
        let mut resting = resting.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.len() < RESTING {
            resting.push(thread);
        }
    }

    /// Runs `work` on a thread. Returns its result, or why there is none.
    ///
    /// The second part of the result of `work` is whether a filter has passed a limit. Its thread then ends, so that
    /// the stack is given back.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Progress) -> (T, bool) + Send + 'static,
    ) -> Result<T, String> {
        let Some(resting) = &self.resting else { return Ok(work(&Progress::default()).0) };
        let idle = resting.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let thread = idle.or_else(start).ok_or("no thread can be started for filters")?;
        let (answer, mut result) = oneshot::channel();
        let progress = Progress::default();
        let inner = progress.clone();
        let work: Work = Box::new(move || drop(answer.send(work(&inner))));
        thread.send(work).map_err(|_| "a filter thread has died")?;
        let mut steps = 0;
        loop {
            match tokio::time::timeout(TIMEOUT, &mut result).await {
                Ok(Ok((result, is_spent))) => {
                    if !is_spent {
                        Self::put_back(resting, thread);
                    }
                    return Ok(result);
                }
                Ok(Err(_)) => return Err("the filter ran into a defect".to_owned()),
                Err(_) if progress.steps() != steps => steps = progress.steps(),
                // A single function takes too long. Its thread is given up and replaced by another.
                Err(_) => {
                    return Err(format!(
                        "the filter took longer than {} s for one object",
                        TIMEOUT.as_secs()
                    ));
                }
            }
        }
    }
}
