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
}

#[derive(Default)]
pub(crate) struct Outcomes(Mutex<HashMap<u64, Outcome>>);

impl Outcomes {
    pub(crate) fn arrive(&self, id: u64, cancel: &Cancel) -> Arrived {
        let mut all = self.all();
        match all.get(&id) {
            Some(Outcome::Underway(_)) => Arrived::Underway,
            Some(Outcome::Done(answer)) => Arrived::Done(answer.clone()),
            None => {
                all.insert(id, Outcome::Underway(cancel.clone()));
                Arrived::New
            }
        }
    }

    /// `answer`: kept until it is acknowledged.
    pub(crate) fn finish(&self, id: u64, answer: Option<Answer>) {
        let mut all = self.all();
        match answer {
            Some(answer) => all.insert(id, Outcome::Done(answer)),
            None => all.remove(&id),
        };
    }

    pub(crate) fn acknowledge(&self, ids: &[u64]) {
        let mut all = self.all();
        all.retain(|id, outcome| matches!(outcome, Outcome::Underway(_)) || !ids.contains(id));
    }

    pub(crate) fn cancel(&self, id: u64) {
        if let Some(Outcome::Underway(cancel)) = self.all().get(&id) {
            cancel.now();
        }
    }

    /// Ends all programs, and forgets all answers.
    pub(crate) fn clear(&self) {
        for (_, outcome) in self.all().drain() {
            if let Outcome::Underway(cancel) = outcome {
                cancel.now();
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Outcome>> {
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
}
