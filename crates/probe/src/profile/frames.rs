//! Names of functions and objects, and stacks of them, each stored once.

use std::collections::HashMap;

/// Suffix of kernel functions, as in perf(1) and flame graphs.
pub(super) const OF_KERNEL: &str = "_[k]";

/// Names by number.
#[derive(Default)]
pub(super) struct Frames {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Frames {
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    #[must_use]
    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// Most distinct stacks that are kept, of at most about 2 KB each, which limits the memory of any
/// recording.
const MOST_STACKS: usize = 40_000;

/// Stacks by number, each from the leaf to the root.
#[derive(Default)]
pub(super) struct Stacks {
    stacks: Vec<Box<[u32]>>,
    numbers: HashMap<Box<[u32]>, u32>,
}

impl Stacks {
    /// Number of a stack; `None` if there are too many.
    pub(super) fn intern(&mut self, stack: &[u32]) -> Option<u32> {
        if let Some(&number) = self.numbers.get(stack) {
            return Some(number);
        }
        if self.stacks.len() == MOST_STACKS {
            return None;
        }
        let number = self.stacks.len() as u32;
        self.stacks.push(stack.into());
        self.numbers.insert(stack.into(), number);
        Some(number)
    }

    #[must_use]
    pub(super) fn get(&self, number: u32) -> &[u32] {
        &self.stacks[number as usize]
    }
}

/// A stack as one line, from the root to the leaf, with frames separated by semicolons.
#[must_use]
pub(super) fn collapsed(stack: &[u32], frames: &Frames) -> String {
    let names: Vec<&str> = stack.iter().rev().map(|frame| frames.name(*frame)).collect();
    names.join(";")
}
