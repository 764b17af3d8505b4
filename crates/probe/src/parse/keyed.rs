//! Files of `key value` lines: `memory.stat`, `cpu.stat`, `/proc/meminfo`, `/proc/vmstat`, `PID/io`.

use memchr::memchr;

use super::fields::leading_number;

/// A wanted key, the cell for its value, and the factor of the value (kB → bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Includes the separator, as `b"total_rss "` or `b"MemFree:"`, so that no key is another's prefix.
    pub key: &'static [u8],
    pub cell: usize,
    pub scale: u64,
}

/// The wanted keys in the order of this kernel's file.
///
/// The order is found once, outside of the hot path. A read is then one pass that compares each
/// line only with the next wanted key; if the order has changed, keys are searched from the start.
#[derive(Clone, Debug)]
pub struct Plan {
    wanted: Vec<Wanted>,
}

impl Plan {
    /// Sorts `wanted` by a first reading of the file, and leaves out keys that this kernel does not have.
    #[must_use]
    pub fn learn(wanted: &[Wanted], sample: &[u8]) -> Self {
        let mut found: Vec<(usize, Wanted)> =
            wanted.iter().filter_map(|want| Some((line_of(sample, want.key)?, *want))).collect();
        found.sort_by_key(|(offset, _)| *offset);
        Self { wanted: found.into_iter().map(|(_, want)| want).collect() }
    }

    /// Writes each value found into its cell; other cells are not changed.
    pub fn read(&self, bytes: &[u8], cells: &mut [u64]) {
        let mut left = self.wanted.iter();
        let mut next = left.next();
        let mut rest = bytes;
        while let Some(want) = next {
            if rest.is_empty() {
                return self.read_out_of_order(want, bytes, cells);
            }
            if rest.starts_with(want.key) {
                store(want, &rest[want.key.len()..], cells);
                next = left.next();
            }
            rest = memchr(b'\n', rest).map_or(&[], |end| &rest[end + 1..]);
        }
    }

    /// Reads the remaining keys after the file has changed its order, by searching from the start.
    fn read_out_of_order(&self, first: &Wanted, bytes: &[u8], cells: &mut [u64]) {
        for want in self.wanted.iter().skip_while(|want| want.key != first.key) {
            if let Some(offset) = line_of(bytes, want.key) {
                store(want, &bytes[offset + want.key.len()..], cells);
            }
        }
    }
}

fn store(want: &Wanted, after_key: &[u8], cells: &mut [u64]) {
    let blanks = after_key.iter().take_while(|byte| **byte == b' ').count();
    if let Some((value, _)) = leading_number(&after_key[blanks..])
        && let Some(scaled) = value.checked_mul(want.scale)
    {
        cells[want.cell] = scaled;
    }
}

/// Offset of the line that begins with `key`.
fn line_of(bytes: &[u8], key: &[u8]) -> Option<usize> {
    let mut offset = 0;
    while offset < bytes.len() {
        if bytes[offset..].starts_with(key) {
            return Some(offset);
        }
        offset += memchr(b'\n', &bytes[offset..])? + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::ABSENT;

    const WANTED: [Wanted; 3] = [
        Wanted { key: b"total_cache ", cell: 0, scale: 1 },
        Wanted { key: b"cache ", cell: 1, scale: 1 },
        Wanted { key: b"hierarchical_memory_limit ", cell: 2, scale: 1 },
    ];
    const STAT: &[u8] = include_bytes!("../../tests/data/v1/memory.stat");

    #[test]
    fn keys_are_found_in_whatever_order_they_were_asked_for() {
        let mut cells = [ABSENT; 3];
        Plan::learn(&WANTED, STAT).read(STAT, &mut cells);
        assert_eq!(cells, [1_509_527_552, 9_281_536, 9_223_372_036_854_771_712]);
    }

    #[test]
    fn a_key_that_the_kernel_lacks_stays_absent() {
        let wanted = [Wanted { key: b"zswap ", cell: 0, scale: 1 }];
        let mut cells = [ABSENT; 1];
        Plan::learn(&wanted, STAT).read(STAT, &mut cells);
        assert_eq!(cells, [ABSENT]);
    }

    #[test]
    fn a_file_that_changed_its_order_is_still_read() {
        let plan = Plan::learn(&WANTED[..2], b"cache 1\ntotal_cache 2\n");
        let mut cells = [ABSENT; 2];
        plan.read(b"total_cache 20\nother 3\ncache 10\n", &mut cells);
        assert_eq!(cells, [20, 10]);
    }

    #[test]
    fn values_are_scaled() {
        let wanted = [Wanted { key: b"MemFree:", cell: 0, scale: 1024 }];
        let mut cells = [ABSENT; 1];
        let text = b"MemTotal:       24684084 kB\nMemFree:        23496284 kB\n";
        Plan::learn(&wanted, text).read(text, &mut cells);
        assert_eq!(cells, [23_496_284 * 1024]);
    }
}
