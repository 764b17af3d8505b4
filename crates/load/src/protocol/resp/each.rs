//! A reply whose values each call for another request, as the keys that a scan finds do.

use std::sync::Arc;

use super::encode::Template;
use crate::protocol::{Reply, Status, Values};

/// The values of a reply, kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// More than this is no list of keys. Hundreds of connections may each keep one.
const MOST_BYTES: usize = 1 << 20;
/// Room that stays for the next list.
const KEPT_BYTES: usize = 64 << 10;

impl Kept {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.ends.clear();
        self.ends.shrink_to(KEPT_BYTES / size_of::<usize>());
    }

    /// Adds to the value that is coming in.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<(), &'static str> {
        // Keys without a letter take room, too.
        if self.bytes.len() + piece.len() + self.ends.len() * size_of::<usize>() > MOST_BYTES {
            return Err("more keys than 1 MiB");
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    pub(super) fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

/// Where such a request stands; nothing else is under way on its connection.
#[derive(Debug, Default)]
pub(super) struct Each {
    stage: Stage,
    template: Option<Arc<Template>>,
    pub(super) kept: Kept,
    next: usize,
    total: Reply,
    values: Values,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    /// The list of keys is to come.
    List,
    /// The next one is to be asked for.
    Ask,
    /// Its reply is to come.
    Answer,
}

impl Each {
    pub(super) fn begin(&mut self, template: &Arc<Template>) {
        self.template = Some(Arc::clone(template));
        self.stage = Stage::List;
        self.kept.clear();
        self.next = 0;
        self.total = Reply::default();
    }

    pub(super) fn keeps(&self) -> bool {
        self.stage == Stage::List
    }

    /// The whole reply, where `reply` ends it: how many keys had something, and how much.
    pub(super) fn take(&mut self, reply: Reply) -> Option<Reply> {
        match self.stage {
            Stage::Idle => return Some(reply),
            Stage::List if reply.status != Status::Done => {
                self.stage = Stage::Idle;
                return Some(reply);
            }
            Stage::List => {}
            Stage::Ask | Stage::Answer => {
                if reply.status == Status::Done {
                    self.total.rows = self.total.rows.saturating_add(1);
                } else if self.total.status == Status::Done {
                    self.total.status = reply.status;
                }
                self.total.bytes = self.total.bytes.saturating_add(reply.bytes);
                self.total.contents = self.total.contents.wrapping_add(reply.contents);
            }
        }
        if self.kept.get(self.next).is_some() {
            self.stage = Stage::Ask;
            return None;
        }
        self.stage = Stage::Idle;
        Some(self.total)
    }

    /// Appends the request for the next key.
    pub(super) fn ask(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::Ask {
            return;
        }
        if let (Some(key), Some(template)) = (self.kept.get(self.next), &self.template) {
            self.values.clear();
            self.values.text(|out| out.extend_from_slice(key));
            template.encode(&self.values, out);
        }
        self.next += 1;
        self.stage = Stage::Answer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_a_letter_are_bounded_too() {
        let mut kept = Kept::default();
        let number = (0_usize..10_000_000).find(|_| {
            let full = kept.add(b"").is_err();
            kept.end();
            full
        });
        assert_eq!(number, Some(MOST_BYTES / size_of::<usize>() + 1));
    }

    #[test]
    fn a_long_list_is_refused_and_its_room_given_back() {
        let mut kept = Kept::default();
        assert_eq!(kept.add(&vec![b'k'; MOST_BYTES]), Ok(()));
        assert_eq!(kept.add(b"k"), Err("more keys than 1 MiB"));
        for _ in 0..MOST_BYTES {
            kept.end();
        }
        kept.clear();
        assert!(kept.bytes.capacity() <= KEPT_BYTES);
        assert!(kept.ends.capacity() * size_of::<usize>() <= KEPT_BYTES);
    }
}
