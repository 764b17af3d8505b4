//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst).

use tare_record::cell::from_option;
use tare_record::tables::disk;

use super::fields::{Words, lines};

/// Name and fields of each device.
pub fn devices(bytes: &[u8]) -> impl Iterator<Item = (&[u8], Words<'_>)> {
    lines(bytes).filter_map(|line| {
        let mut words = Words::new(line);
        words.number()?;
        words.number()?;
        let name = words.word();
        (!name.is_empty()).then_some((name, words))
    })
}

/// Fills a row; kernels before 4.18 and 5.5 have no discards and flushes, which stay absent.
pub fn counters(mut words: Words<'_>, cells: &mut [u64; disk::WIDTH]) {
    for cell in &mut cells[disk::READS..=disk::FLUSH_MS] {
        *cell = from_option(words.number());
    }
}

/// Whether a device ever did anything: `loop`, `ram` and `zram` devices mostly did not.
#[must_use]
pub fn was_used(mut words: Words<'_>) -> bool {
    (0..8).any(|_| words.number().is_some_and(|value| value > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::ABSENT;

    const DISKSTATS: &[u8] = include_bytes!("../../tests/data/host/diskstats");

    #[test]
    fn only_the_disk_was_used() {
        let used: Vec<&[u8]> = devices(DISKSTATS)
            .filter(|(_, words)| was_used(*words))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(used, [b"vda"]);
    }

    #[test]
    fn fields_stand_where_the_kernel_documents_them() {
        let (_, words) = devices(DISKSTATS).find(|(name, _)| *name == b"vda").expect("vda");
        let mut cells = [ABSENT; disk::WIDTH];
        counters(words, &mut cells);
        assert_eq!(cells[disk::READS], 57_817);
        assert_eq!(cells[disk::READ_SECTORS], 5_442_546);
        assert_eq!(cells[disk::WRITTEN_SECTORS], 4_408_240);
        assert_eq!(cells[disk::IN_FLIGHT], 0);
        assert_eq!(cells[disk::BUSY_MS], 9088);
        assert_eq!(cells[disk::DISCARDED_SECTORS], 727_672);
        assert_eq!(cells[disk::FLUSHES], 1289);
        assert_eq!(cells[disk::FLUSH_MS], 90);
    }

    #[test]
    fn an_old_kernel_has_no_flushes() {
        let (_, words) = devices(b"   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n").next().expect("sda");
        let mut cells = [0; disk::WIDTH];
        counters(words, &mut cells);
        assert_eq!(cells[disk::WEIGHTED_MS], 11);
        assert_eq!(cells[disk::FLUSHES], ABSENT);
    }
}
