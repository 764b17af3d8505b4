//! Requests that were sent and not answered yet, in memory that is allocated once.

use crate::measure::Parts;
use crate::measure::window::Outcome;
use crate::random::Random;
use crate::workload::{Expect, Operation};

/// An operation with a request in flight, or about to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) intended_ns: u64,
    /// How long this program itself kept it from being sent.
    pub(super) lag_ns: u64,
    /// When its first request was sent.
    pub(super) sent_ns: u64,
    /// When the request in flight was sent.
    pub(super) step_sent_ns: u64,
    /// When the reply to the previous request was read; 0 before the first one.
    pub(super) step_read_ns: u64,
    /// Time between a reply and the next request, which this program took.
    pub(super) between_ns: u64,
    pub(super) operation: Operation,
    pub(super) expect: Expect,
    pub(super) last: bool,
    /// Node to which the request in flight was sent.
    pub(super) node: u16,
    /// First failure among the answered requests.
    pub(super) outcome: Outcome,
}

const NONE: Pending = Pending {
    intended_ns: 0,
    lag_ns: 0,
    sent_ns: 0,
    step_sent_ns: 0,
    step_read_ns: 0,
    between_ns: 0,
    operation: Operation { kind: 0, step: 0, key: 0, random: Random::new(0) },
    expect: Expect { rows: 0, bytes: 0, contents: None, number: None, may_miss: false },
    last: false,
    node: 0,
    outcome: Outcome::Right,
};

impl Pending {
    /// Notes that its next request is sent now.
    pub(super) fn step(&mut self, now_ns: u64) {
        if self.step_read_ns > 0 {
            self.between_ns += now_ns.saturating_sub(self.step_read_ns);
        }
        self.step_sent_ns = now_ns;
    }

    /// How long it waited for a connection.
    pub(super) fn waiting_ns(&self) -> u64 {
        (self.sent_ns - self.intended_ns).saturating_sub(self.lag_ns)
    }

    /// Parts of its latency. The last reply was read at `read_ns`, `unread_ns` after the kernel had it.
    pub(super) fn parts(&self, read_ns: u64, unread_ns: u64) -> Parts {
        let service_ns = read_ns.saturating_sub(self.sent_ns);
        let own_ns = (unread_ns + self.between_ns).min(service_ns);
        Parts {
            lag_ns: self.lag_ns,
            waiting_ns: self.waiting_ns(),
            server_ns: service_ns - own_ns,
            unread_ns: own_ns,
        }
    }
}

/// Slots of one connection: a ring if replies arrive in order, else a list of free ones.
#[derive(Debug)]
pub(super) struct Flight {
    slots: Box<[Option<Pending>]>,
    order: Order,
}

#[derive(Debug)]
enum Order {
    Ring { head: u16, length: u16 },
    Free(Vec<u16>),
}

impl Flight {
    pub(super) fn new(depth: u16, ordered: bool) -> Self {
        let order = if ordered {
            Order::Ring { head: 0, length: 0 }
        } else {
            Order::Free((0..depth).rev().collect())
        };
        Self { slots: vec![None; usize::from(depth)].into(), order }
    }

    pub(super) fn len(&self) -> usize {
        match &self.order {
            Order::Ring { length, .. } => usize::from(*length),
            Order::Free(free) => self.slots.len() - free.len(),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == self.depth()
    }

    /// Slot for the next request; there must be a free one.
    pub(super) fn next_slot(&self) -> u16 {
        match &self.order {
            Order::Ring { head, length } => {
                ((u32::from(*head) + u32::from(*length)) % self.slots.len() as u32) as u16
            }
            Order::Free(free) => free.last().copied().unwrap_or(u16::MAX),
        }
    }

    pub(super) fn put(&mut self, pending: Pending) {
        let slot = self.next_slot();
        match &mut self.order {
            Order::Ring { length, .. } => *length += 1,
            Order::Free(free) => {
                free.pop();
            }
        }
        self.slots[usize::from(slot)] = Some(pending);
    }

    /// Operation that a reply of this node answers; `None` if this node was not asked.
    pub(super) fn take(&mut self, slot: u16, node: u16) -> Option<Pending> {
        match &mut self.order {
            Order::Ring { head, length } => {
                let slot = usize::from(*head);
                *length = length.checked_sub(1)?;
                *head = ((slot + 1) % self.slots.len()) as u16;
                self.slots[slot].take()
            }
            Order::Free(free) => {
                let place = self.slots.get_mut(usize::from(slot))?;
                let pending = place.take_if(|pending| pending.node == node)?;
                free.push(slot);
                Some(pending)
            }
        }
    }

    /// Removes all operations with requests to a lost node. If replies are in order, there is only one node.
    pub(super) fn drain(&mut self, node: u16) -> Vec<Pending> {
        if matches!(self.order, Order::Ring { .. }) {
            let fresh = Self::new(self.slots.len() as u16, true);
            return std::mem::replace(self, fresh).slots.into_iter().flatten().collect();
        }
        let went_there = |slot: &Option<Pending>| slot.is_some_and(|pending| pending.node == node);
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| went_there(slot));
        let slots: Vec<u16> = slots.map(|(slot, _)| slot as u16).collect();
        slots.into_iter().filter_map(|slot| self.take(slot, node)).collect()
    }

    pub(super) fn oldest(&self) -> Option<&Pending> {
        self.slots.iter().flatten().min_by_key(|pending| pending.step_sent_ns)
    }
}

impl Default for Pending {
    fn default() -> Self {
        NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(intended_ns: u64) -> Pending {
        Pending { intended_ns, ..Pending::default() }
    }

    #[test]
    fn time_between_the_steps_is_the_clients() {
        let mut pending = Pending { intended_ns: 100, lag_ns: 10, sent_ns: 130, ..NONE };
        pending.step(130);
        pending.step_read_ns = 200;
        pending.step(250);
        pending.step_read_ns = 300;
        pending.step(305);
        let parts = Parts { lag_ns: 10, waiting_ns: 20, server_ns: 208, unread_ns: 62 };
        assert_eq!(pending.parts(400, 7), parts);
        assert_eq!(parts.total_ns(), 300);
        assert_eq!(pending.parts(400, 9_000).server_ns, 0, "another clock has the kernel's time");
    }

    #[test]
    fn a_ring_gives_back_in_order() {
        let mut flight = Flight::new(3, true);
        for round in 0..5 {
            (0..3).for_each(|number| flight.put(at(round * 3 + number)));
            assert!(flight.is_full());
            for number in 0..3 {
                let pending = flight.take(99, 0).expect("in flight");
                assert_eq!(pending.intended_ns, round * 3 + number);
            }
            assert!(flight.take(0, 0).is_none(), "nothing was asked");
        }
    }

    #[test]
    fn what_went_to_a_lost_node_is_drained_alone() {
        let mut flight = Flight::new(4, false);
        for number in 0..4 {
            flight.put(Pending { node: number % 2, ..at(number.into()) });
        }
        let lost = flight.drain(1);
        assert_eq!(lost.iter().map(|pending| pending.intended_ns).sum::<u64>(), 1 + 3);
        assert_eq!(flight.len(), 2);
        flight.put(at(9));
        flight.put(at(10));
        assert!(flight.is_full());
        assert_eq!(flight.drain(0).len(), 4);
    }

    #[test]
    fn a_reply_of_another_node_than_was_asked_answers_nothing() {
        let mut flight = Flight::new(2, false);
        let slot = flight.next_slot();
        flight.put(Pending { node: 1, ..at(1) });
        assert!(flight.take(slot, 0).is_none());
        assert_eq!(flight.len(), 1, "it is still waited for");
        assert_eq!(flight.take(slot, 1).map(|pending| pending.intended_ns), Some(1));
    }

    #[test]
    fn slots_are_found_by_their_number() {
        let mut flight = Flight::new(2, false);
        let first = flight.next_slot();
        flight.put(at(1));
        let second = flight.next_slot();
        flight.put(at(2));
        assert_eq!(flight.take(second, 0).map(|pending| pending.intended_ns), Some(2));
        assert!(flight.take(second, 0).is_none(), "answered twice");
        assert!(flight.take(999, 0).is_none(), "never asked");
        assert_eq!(flight.next_slot(), second);
        assert_eq!(flight.take(first, 0).map(|pending| pending.intended_ns), Some(1));
        assert_eq!(flight.len(), 0);
    }
}
