//! Targets that are handed in while a recording runs.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use super::spec::Spec;

/// What was handed in last and not taken yet; cheap to clone, all clones are one.
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
    /// Puts these in the place of what was handed in before, and wakes who takes them.
    pub fn put(&self, specs: Vec<Spec>) {
        *self.inner.specs.lock().unwrap_or_else(PoisonError::into_inner) = Some(specs);
        if let Some(reader) = self.inner.reader.get() {
            reader.unpark();
        }
    }

    /// Who calls this is woken by each [`Mailbox::put`] from now on.
    pub(crate) fn wake_me(&self) {
        let _ = self.inner.reader.set(thread::current());
    }

    pub(crate) fn take(&self) -> Option<Vec<Spec>> {
        self.inner.specs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
