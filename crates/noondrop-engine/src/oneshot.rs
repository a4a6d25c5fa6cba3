//! One answer from one thread to one future; and a future waited for by a thread. Only std: any
//! executor will do.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::queue::lock;

struct Inner<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// The side that answers. Dropped without an answer, the other side waits for ever: nobody here
/// does that.
pub(crate) struct Sender<T>(Arc<Mutex<Inner<T>>>);

/// The side that waits.
pub(crate) struct Receiver<T>(Arc<Mutex<Inner<T>>>);

pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let inner = Arc::new(Mutex::new(Inner { value: None, waker: None }));
    (Sender(Arc::clone(&inner)), Receiver(inner))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        let waker = {
            let mut inner = lock(&self.0);
            inner.value = Some(value);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut inner = lock(&self.0);
        if let Some(value) = inner.value.take() {
            return Poll::Ready(value);
        }
        inner.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker that unparks the thread that calls this.
pub(crate) fn waker_of_this_thread() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// Waits for a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = waker_of_this_thread();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}
