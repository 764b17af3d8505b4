//! Running requests and unacknowledged answers, by id, so that a repeated request is carried out once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::answer::Answer;
use crate::program::Cancel;

enum Outcome {
    Underway(Cancel),
    Done(Answer),
}

/// What to do with an arrived request.
pub(crate) enum Arrived {
    New,
    /// It is running; its answer is sent at its end.
    Underway,
    Done(Answer),
    /// Everything is being removed.
    Closed,
}

#[derive(Default)]
struct All {
    outcomes: HashMap<u64, Outcome>,
    closed: bool,
}

#[derive(Default)]
pub(crate) struct Outcomes(Mutex<All>);

impl Outcomes {
    pub(crate) fn arrive(&self, id: u64, cancel: &Cancel) -> Arrived {
        let mut all = self.all();
        match all.outcomes.get(&id) {
            _ if all.closed => Arrived::Closed,
            Some(Outcome::Underway(_)) => Arrived::Underway,
            Some(Outcome::Done(answer)) => Arrived::Done(answer.clone()),
            None => {
                all.outcomes.insert(id, Outcome::Underway(cancel.clone()));
                Arrived::New
            }
        }
    }

    /// `answer`: kept until it is acknowledged.
    pub(crate) fn finish(&self, id: u64, answer: Option<Answer>) {
        let mut all = self.all();
        match answer {
            Some(answer) => all.outcomes.insert(id, Outcome::Done(answer)),
            None => all.outcomes.remove(&id),
        };
    }

    pub(crate) fn acknowledge(&self, ids: &[u64]) {
        let mut all = self.all();
        all.outcomes
            .retain(|id, outcome| matches!(outcome, Outcome::Underway(_)) || !ids.contains(id));
    }

    pub(crate) fn cancel(&self, id: u64) {
        if let Some(Outcome::Underway(cancel)) = self.all().outcomes.get(&id) {
            cancel.now();
        }
    }

    /// Ends all programs, forgets all answers, and lets nothing begin until `open`.
    pub(crate) fn close(&self) {
        let mut all = self.all();
        all.closed = true;
        for (_, outcome) in all.outcomes.drain() {
            if let Outcome::Underway(cancel) = outcome {
                cancel.now();
            }
        }
    }

    pub(crate) fn open(&self) {
        self.all().closed = false;
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_until_it_is_acknowledged() {
        let outcomes = Outcomes::default();
        let cancel = Cancel::new().unwrap();
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::New));
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::Underway));
        outcomes.acknowledge(&[1]);
        outcomes.finish(1, Some(Answer::done()));
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::Done(_)));
        outcomes.acknowledge(&[1]);
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::New));
    }

    #[test]
    fn nothing_begins_while_everything_is_removed() {
        let outcomes = Outcomes::default();
        let cancel = Cancel::new().unwrap();
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::New));
        outcomes.close();
        assert!(matches!(outcomes.arrive(2, &cancel), Arrived::Closed));
        outcomes.open();
        assert!(matches!(outcomes.arrive(1, &cancel), Arrived::New), "its answer was forgotten");
    }
}
