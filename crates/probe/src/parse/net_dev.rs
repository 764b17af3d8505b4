//! `/proc/PID/net/dev`.

use tare_record::cell::from_option;
use tare_record::tables::interface;

use super::fields::{Words, lines};

/// Name and fields of each interface; the two heading lines have no colon after a name and fall out.
pub fn interfaces(bytes: &[u8]) -> impl Iterator<Item = (&[u8], Words<'_>)> {
    lines(bytes).skip(2).filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        let name = line[..colon].trim_ascii();
        Some((name, Words::new(&line[colon + 1..])))
    })
}

/// Fills a row: eight received columns, then eight sent ones, of which the first four each are kept.
pub fn counters(mut words: Words<'_>, cells: &mut [u64; interface::WIDTH]) {
    for cell in &mut cells[interface::RX_BYTES..=interface::RX_DROPPED] {
        *cell = from_option(words.number());
    }
    for _ in 0..4 {
        words.number();
    }
    for cell in &mut cells[interface::TX_BYTES..=interface::TX_DROPPED] {
        *cell = from_option(words.number());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::ABSENT;

    const NET_DEV: &[u8] = include_bytes!("../../tests/data/host/net_dev");

    #[test]
    fn headings_are_no_interfaces() {
        let names: Vec<&[u8]> = interfaces(NET_DEV).map(|(name, _)| name).collect();
        assert_eq!(names, [b"lo".as_slice(), b"ifb0", b"ifb1", b"eth0", b"docker0"]);
    }

    #[test]
    fn sent_bytes_stand_after_eight_received_columns() {
        let (_, words) = interfaces(NET_DEV).find(|(name, _)| *name == b"eth0").expect("eth0");
        let mut cells = [ABSENT; interface::WIDTH];
        counters(words, &mut cells);
        assert_eq!(cells[interface::RX_BYTES], 578_772_072);
        assert_eq!(cells[interface::RX_PACKETS], 14_062);
        assert_eq!(cells[interface::TX_BYTES], 815_329);
        assert_eq!(cells[interface::TX_PACKETS], 9216);
    }

    #[test]
    fn a_full_column_may_touch_the_colon() {
        let text = b"h\nh\n  eth0:578772072 14062 0 0 0 0 0 0 815329 9216 0 3 0 0 0 0\n";
        let (_, words) = interfaces(text).next().expect("eth0");
        let mut cells = [ABSENT; interface::WIDTH];
        counters(words, &mut cells);
        assert_eq!(cells[interface::RX_BYTES], 578_772_072);
        assert_eq!(cells[interface::TX_DROPPED], 3);
    }
}
