//! YCSB's core workloads from its own property files, with the same keys, fields and tables.

mod binding;
mod keys;
mod layout;
mod properties;
mod settings;
mod store;
mod unparsed;
mod values;

use self::keys::Inserted;
use self::layout::{Ask, Layout, layout};
pub use self::properties::Properties;
pub use self::settings::{Client, Phase, Settings};
pub use self::store::Store;
use self::store::Verb;
use super::{Operation, Request, Stream, Workload};
use crate::protocol::{Statement, Values};
use crate::random::Random;

/// Statements that make the table, if the load phase is asked to.
#[must_use]
pub fn preparations(settings: &Settings, store: Store) -> Vec<String> {
    if settings.phase == Phase::Load && settings.binding.creates_table {
        layout::preparations(store, settings)
    } else {
        Vec::new()
    }
}

/// Kind of an operation of `CoreWorkload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }

    /// Calls of the binding that it consists of.
    const fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Read => &[Verb::Read],
            Self::Update => &[Verb::Update],
            Self::Insert => &[Verb::Insert],
            Self::Scan => &[Verb::Scan],
            Self::ReadModifyWrite => &[Verb::Read, Verb::Update],
        }
    }
}

/// A kind with its cumulative share.
struct Part {
    kind: Kind,
    up_to: f64,
}

pub struct Ycsb {
    settings: Settings,
    layout: Box<dyn Layout>,
    mix: Vec<Part>,
    kinds: Vec<String>,
    inserted: Inserted,
}

// Random numbers of an operation beside those of its fields, which are their places.
const WHICH_FIELD_IS_READ: u64 = 1 << 32;
const WHICH_FIELD_IS_WRITTEN: u64 = WHICH_FIELD_IS_READ + 1;
const HOW_MANY_RECORDS: u64 = WHICH_FIELD_IS_READ + 2;

impl Ycsb {
    #[must_use]
    pub fn new(settings: Settings, store: Store) -> Self {
        let shares = settings.shares;
        let parts = match settings.phase {
            Phase::Load => vec![(Kind::Insert, 1.0)],
            Phase::Run => vec![
                (Kind::Read, shares.read),
                (Kind::Update, shares.update),
                (Kind::Insert, shares.insert),
                (Kind::Scan, shares.scan),
                (Kind::ReadModifyWrite, shares.read_modify_write),
            ],
        };
        let mut sum = 0.0;
        let mut part = |(kind, share): (Kind, f64)| {
            sum += share;
            Part { kind, up_to: sum }
        };
        let there = parts.into_iter().filter(|&(_, share)| share > 0.0);
        let mix: Vec<Part> = there.map(&mut part).collect();
        Self {
            layout: layout(store, &settings),
            kinds: mix.iter().map(|part| part.kind.name().to_owned()).collect(),
            mix,
            inserted: Inserted::new(settings.records),
            settings,
        }
    }

    fn ask<'a>(&'a self, verb: Verb, step: u8, key: &'a [u8], random: Random) -> Ask<'a> {
        let settings = &self.settings;
        let one_of = |part| {
            let count = settings.fields.names.len() as u64;
            random.apart(part).below(count) as usize
        };
        let field = match verb {
            Verb::Read | Verb::Scan if settings.read_all_fields => None,
            Verb::Read | Verb::Scan => Some(one_of(WHICH_FIELD_IS_READ)),
            Verb::Update if settings.write_all_fields => None,
            Verb::Update => Some(one_of(WHICH_FIELD_IS_WRITTEN)),
            Verb::Insert => None,
        };
        let length = match verb {
            Verb::Scan => {
                let mut random = random.apart(HOW_MANY_RECORDS);
                settings.scan_lengths.least + settings.scan_lengths.numbers.draw(&mut random) as u32
            }
            _ => 0,
        };
        let by_name = settings.read_by_name || settings.fields.known;
        Ask { verb, step, key, field, by_name, length, fields: &settings.fields, random }
    }

    fn drawn(&self, stream: &mut Stream, kind: Option<u8>) -> Operation {
        let turn = stream.next_turn();
        let mut random = stream.next_random();
        if self.settings.phase == Phase::Load {
            let key = self.settings.insert_start + turn;
            return Operation { kind: 0, step: 0, key, random };
        }
        let share = random.unit();
        let drawn = self.mix.iter().position(|part| share < part.up_to).unwrap_or(0);
        let kind = kind.map_or(drawn, usize::from);
        let key = match self.mix[kind].kind {
            Kind::Insert => self.inserted.next(),
            _ => self.settings.chooser.choose(&mut random, turn, self.inserted.there()),
        };
        Operation { kind: kind as u8, step: 0, key, random }
    }
}

impl Workload for Ycsb {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        self.layout.statements()
    }

    fn has_steps(&self) -> bool {
        let mut verbs = self.mix.iter().flat_map(|part| part.kind.verbs());
        verbs.any(|&verb| self.layout.is_alone(verb))
    }

    fn draw(&self, stream: &mut Stream) -> Operation {
        self.drawn(stream, None)
    }

    fn draw_of(&self, kind: u8, stream: &mut Stream) -> Operation {
        self.drawn(stream, Some(kind))
    }

    fn request(&self, operation: &mut Operation, values: &mut Values) -> Request {
        let verbs = self.mix[usize::from(operation.kind)].kind.verbs();
        let mut step = operation.step;
        let mut verb = verbs[0];
        for &next in verbs {
            verb = next;
            match step.checked_sub(self.layout.steps(verb)) {
                Some(beyond) => step = beyond,
                None => break,
            }
        }
        operation.step += 1;
        let steps: u8 = verbs.iter().map(|&verb| self.layout.steps(verb)).sum();
        let key = self.settings.keys.key(operation.key);
        let ask = self.ask(verb, step, key.as_bytes(), operation.random);
        let sent = self.layout.request(&ask, values);
        let last = operation.step == steps;
        Request { statement: sent.statement, expect: sent.expect, last }
    }

    fn ended(&self, operation: &Operation) {
        let inserts = self.mix[usize::from(operation.kind)].kind == Kind::Insert;
        if inserts && self.settings.phase == Phase::Run {
            self.inserted.acknowledge(operation.key);
        }
    }
}

#[cfg(test)]
mod tests;
