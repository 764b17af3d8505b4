//! Communication between the threads of a run.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::connect::Reopened;
use super::turns::TurnFigures;
use crate::measure::Window;

/// Message of a thread during the run.
pub(super) enum Notice {
    Window {
        share: usize,
        window: Box<Window>,
    },
    /// A connection was lost, with the reason.
    Lost(String),
    /// What a thread counted in each turn.
    Turns(Vec<TurnFigures>),
    /// A thread has sent all its windows.
    Done {
        share: usize,
    },
}

/// A thread's ends of the channels.
pub(super) struct Channels<P> {
    /// Number of the thread.
    pub(super) share: usize,
    pub(super) notices: Sender<Notice>,
    /// Windows to reuse.
    pub(super) spare: Receiver<Window>,
    pub(super) lost: Sender<usize>,
    pub(super) found: Receiver<Reopened<P>>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    Interrupted,
    /// The server was lost, with the reason.
    Gone(String),
}

/// State that all threads read.
pub(super) struct Shared<'a> {
    stopped: AtomicBool,
    reason: Mutex<Option<String>>,
    failure: Mutex<Option<io::Error>>,
    interrupted: &'a AtomicBool,
}

impl<'a> Shared<'a> {
    pub(super) fn new(interrupted: &'a AtomicBool) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            reason: Mutex::new(None),
            failure: Mutex::new(None),
            interrupted,
        }
    }

    /// Ends the run early; the first reason is kept.
    pub(super) fn stop(&self, reason: String) {
        self.reason.lock().expect("no panic").get_or_insert(reason);
        self.stopped.store(true, Ordering::Release);
    }

    /// Ends the run early because this machine failed; the first failure is kept.
    pub(super) fn fail(&self, error: io::Error) {
        self.failure.lock().expect("no panic").get_or_insert(error);
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.failure.lock().expect("no panic").take()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) -> End {
        match self.reason.lock().expect("no panic").take() {
            Some(reason) => End::Gone(reason),
            None if self.interrupted.load(Ordering::Relaxed) => End::Interrupted,
            None => End::Complete,
        }
    }
}
