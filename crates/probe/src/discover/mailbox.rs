//! Targets that are added during a recording.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use super::spec::Spec;

/// The last added targets that were not taken yet; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Mailbox {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    specs: Mutex<Option<Vec<Spec>>>,
    reader: OnceLock<Thread>,
}

impl Mailbox {
    /// Replaces the added targets, and wakes the thread that takes them.
    pub fn put(&self, specs: Vec<Spec>) {
        *self.inner.specs.lock().unwrap_or_else(PoisonError::into_inner) = Some(specs);
        if let Some(reader) = self.inner.reader.get() {
            reader.unpark();
        }
    }

    /// Registers the calling thread, which each [`Mailbox::put`] then wakes.
    pub(crate) fn wake_me(&self) {
        let _ = self.inner.reader.set(thread::current());
    }

    pub(crate) fn take(&self) -> Option<Vec<Spec>> {
        self.inner.specs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
