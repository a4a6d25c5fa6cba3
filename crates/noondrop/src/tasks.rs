//! The one place where the program starts tasks. Few do: a connection, a runtime's desk, a buyer of a rehearsal.

use tokio::task::JoinHandle;

/// Starts a task on this thread.
#[expect(clippy::disallowed_methods, reason = "the one home of starting tasks")]
pub fn spawn_here<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    tokio::task::spawn_local(task)
}
