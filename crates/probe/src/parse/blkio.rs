//! `blkio.*.io_service_bytes_recursive` and `io_serviced_recursive` of control groups v1.

use super::fields::{Words, lines};

/// Sums over all devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWrite {
    pub read: u64,
    pub write: u64,
}

/// Sums the `Read` and `Write` lines; `Sync`, `Async` and `Total` count the same bytes again.
///
/// `None` where no device has a line: since blk-throttle became lazy (kernel commit a3166c51702b)
/// the file shows only `Total 0` until a rule exists, whatever the group did.
#[must_use]
pub fn sums(bytes: &[u8]) -> Option<ReadWrite> {
    let mut sums: Option<ReadWrite> = None;
    for line in lines(bytes) {
        let mut words = Words::new(line);
        words.word();
        let (operation, value) = (words.word(), words.number());
        let Some(value) = value else { continue };
        let sums = sums.get_or_insert(ReadWrite { read: 0, write: 0 });
        match operation {
            b"Read" => sums.read = sums.read.saturating_add(value),
            b"Write" => sums.write = sums.write.saturating_add(value),
            _ => {}
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_not_zero() {
        assert_eq!(sums(include_bytes!("../../tests/data/v1/throttle_empty")), None);
        assert_eq!(sums(b""), None);
    }

    #[test]
    fn devices_are_added_and_totals_left_out() {
        let text = include_bytes!("../../tests/data/v1/throttle_bytes");
        let sums = sums(text).expect("a device");
        assert_eq!(sums.read, 131_072);
        assert_eq!(sums.write, 8_388_608);
    }

    #[test]
    fn two_devices_are_one_sum() {
        let text =
            b"254:0 Read 5\n254:0 Write 7\n254:0 Total 12\n8:0 Read 1\n8:0 Write 2\nTotal 15\n";
        assert_eq!(sums(text), Some(ReadWrite { read: 6, write: 9 }));
    }
}
