//! Records of a sampling ring that are used here (`linux/perf_event.h`, `enum perf_event_type`).

/// One parsed record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// So many samples were lost, as the ring was full.
    Lost(u64),
    /// A process has a new name; `by_exec`: by execve(2), so it has new mappings, too.
    Named {
        pid: u32,
        tid: u32,
        by_exec: bool,
    },
    Sample(Sample<'a>),
    /// Forks, exits, throttling.
    Other,
}

/// What ran on a CPU at one time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    pub(super) pid: u32,
    pub(super) at_ns: u64,
    /// Addresses from the leaf to the root, with marks between the parts of kernel and user.
    chain: &'a [u64],
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_COMM_EXEC` in the header's upper half.
const MISC_COMM_EXEC: u64 = 1 << 13;
/// Smallest number that is not an address but a mark of the following part (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = (-4095_i64) as u64;
const MARK_KERNEL: u64 = (-128_i64) as u64;
const MARK_USER: u64 = (-512_i64) as u64;

/// An address of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Kernel(u64),
    User(u64),
}

impl<'a> Event<'a> {
    /// Parses the words of a record with its header; a record that is cut short is `Other`.
    #[must_use]
    pub(super) fn parse(words: &'a [u64]) -> Self {
        let Some((header, body)) = words.split_first() else { return Self::Other };
        match (*header as u32, body) {
            (LOST, [_, lost, ..]) => Self::Lost(*lost),
            (COMM, [ids, ..]) => {
                let by_exec = (header >> 32) & MISC_COMM_EXEC != 0;
                Self::Named { pid: *ids as u32, tid: (ids >> 32) as u32, by_exec }
            }
            (SAMPLE, [ids, at_ns, count, chain @ ..]) => {
                let chain = chain.get(..*count as usize).unwrap_or(chain);
                Self::Sample(Sample { pid: *ids as u32, at_ns: *at_ns, chain })
            }
            _ => Self::Other,
        }
    }
}

impl Sample<'_> {
    /// Addresses from the leaf to the root, without those before the first mark and those of guests.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let mut of = None::<fn(u64) -> Place>;
        self.chain.iter().filter_map(move |&word| {
            if word < FIRST_MARK {
                return of.map(|place| place(word));
            }
            of = match word {
                MARK_KERNEL => Some(Place::Kernel),
                MARK_USER => Some(Place::User),
                _ => None,
            };
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u64, misc: u64, words: u64) -> u64 {
        kind | misc << 32 | (words * 8) << 48
    }

    #[test]
    fn a_sample_has_its_kernel_part_before_the_users() {
        let words = [
            header(9, 1, 10),
            7 | 8 << 32,
            123,
            6,
            MARK_KERNEL,
            0xffff_ffff_8100_0000,
            0xffff_ffff_8200_0000,
            MARK_USER,
            0x40_0000,
            0x50_0000,
        ];
        let Event::Sample(sample) = Event::parse(&words) else { panic!("no sample") };
        assert_eq!((sample.pid, sample.at_ns), (7, 123));
        let places: Vec<Place> = sample.places().collect();
        assert_eq!(
            places,
            [
                Place::Kernel(0xffff_ffff_8100_0000),
                Place::Kernel(0xffff_ffff_8200_0000),
                Place::User(0x40_0000),
                Place::User(0x50_0000)
            ]
        );
    }

    #[test]
    fn a_chain_that_says_more_than_there_is_ends_with_the_record() {
        let words = [header(9, 1, 6), 7, 123, 60, MARK_USER, 0x40_0000];
        let Event::Sample(sample) = Event::parse(&words) else { panic!("no sample") };
        assert_eq!(sample.places().collect::<Vec<_>>(), [Place::User(0x40_0000)]);
    }

    #[test]
    fn lost_samples_and_new_programs_are_told() {
        assert_eq!(Event::parse(&[header(2, 0, 3), 5, 42]), Event::Lost(42));
        let words = [header(3, MISC_COMM_EXEC, 3), 7 | 7 << 32, 0];
        let named = Event::parse(&words);
        assert_eq!(named, Event::Named { pid: 7, tid: 7, by_exec: true });
        assert_eq!(Event::parse(&[header(9, 0, 2), 7]), Event::Other);
        assert_eq!(Event::parse(&[]), Event::Other);
    }
}
