//! A row from the sampling thread to the journal: two key words, then the cells.

use crate::Cell;

/// Words in front of a row's cells: table and target, tick.
pub const KEY_WORDS: usize = 2;

/// The keys of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Position of the table in [`crate::tables::ALL`].
    pub table: u32,
    pub target: u32,
    pub tick: u64,
}

impl Key {
    #[must_use]
    pub fn words(self) -> [u64; KEY_WORDS] {
        [(u64::from(self.table) << 32) | u64::from(self.target), self.tick]
    }

    #[must_use]
    pub fn from_words(words: [u64; KEY_WORDS]) -> Self {
        #[allow(clippy::cast_possible_truncation)] // two halves of one word
        let (table, target) = ((words[0] >> 32) as u32, words[0] as u32);
        Self { table, target, tick: words[1] }
    }
}

/// A row that borrows its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub key: Key,
    pub cells: &'a [Cell],
}
