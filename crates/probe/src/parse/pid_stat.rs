//! `/proc/PID/stat` (`proc_pid_stat(5)`).

use tare_record::cell::from_option;
use tare_record::tables::process;

use super::fields::Words;

/// Fields after the command's closing parenthesis are counted from 3 (`state`).
const FIRST_AFTER_COMMAND: usize = 3;

/// Field number in the manual page → cell of the table.
const FIELDS: [(usize, usize); 10] = [
    (10, process::MINOR_FAULTS),
    (12, process::MAJOR_FAULTS),
    (14, process::USER_TICKS),
    (15, process::SYSTEM_TICKS),
    (16, process::CHILD_USER_TICKS),
    (17, process::CHILD_SYSTEM_TICKS),
    (20, process::THREADS),
    (23, process::VIRTUAL_BYTES),
    (24, process::RESIDENT_BYTES),
    (42, process::IO_DELAY_TICKS),
];

/// Fills a row. The command may hold blanks and parentheses, so fields count from its *last* `)`.
pub fn counters(bytes: &[u8], page_bytes: u64, cells: &mut [u64; process::WIDTH]) {
    let Some(after) = after_command(bytes) else { return };
    let mut words = Words::new(after);
    let mut at = FIRST_AFTER_COMMAND;
    for (field, cell) in FIELDS {
        while at < field {
            words.word();
            at += 1;
        }
        cells[cell] = from_option(words.number());
        at += 1;
    }
    let pages = &mut cells[process::RESIDENT_BYTES];
    *pages = pages.checked_mul(page_bytes).unwrap_or(tare_record::ABSENT);
}

/// Parent's process id (field 4).
#[must_use]
pub fn parent(bytes: &[u8]) -> Option<u64> {
    let mut words = Words::new(after_command(bytes)?);
    words.word();
    words.number()
}

/// The kernel's `PF_` flags (field 9).
#[must_use]
pub fn flags(bytes: &[u8]) -> Option<u64> {
    let mut words = Words::new(after_command(bytes)?);
    for _ in FIRST_AFTER_COMMAND..9 {
        words.word();
    }
    words.number()
}

/// The command, as the kernel cuts it.
#[must_use]
pub fn command(bytes: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'(', bytes)?;
    let close = memchr::memrchr(b')', bytes)?;
    bytes.get(open + 1..close)
}

/// Whether the process has ended and waits to be reaped (state `Z` or `X`).
#[must_use]
pub fn has_ended(bytes: &[u8]) -> bool {
    after_command(bytes).is_some_and(|after| matches!(Words::new(after).word(), b"Z" | b"X" | b"x"))
}

fn after_command(bytes: &[u8]) -> Option<&[u8]> {
    memchr::memrchr(b')', bytes).map(|at| &bytes[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::ABSENT;

    const STAT: &[u8] = include_bytes!("../../tests/data/process/stat");

    #[test]
    fn fields_are_those_of_the_manual_page() {
        let mut cells = [ABSENT; process::WIDTH];
        counters(STAT, 4096, &mut cells);
        assert_eq!(cells[process::THREADS], 9);
        assert_eq!(cells[process::VIRTUAL_BYTES], 1_418_616_832);
        assert_eq!(cells[process::RESIDENT_BYTES], 19_061 * 4096);
        assert_eq!(parent(STAT), Some(1));
        assert_eq!(flags(b"17 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0"), Some(69_238_848));
        assert_eq!(command(STAT), Some(b"dockerd".as_slice()));
        assert!(!has_ended(STAT));
    }

    #[test]
    fn a_command_may_hold_blanks_and_parentheses() {
        let text = b"7 (a) R 1 (b) Z 5 0 0 0 0 0 11 0 12 0 13 14 15 16 20 0 2 0 9 4096 3 0";
        let mut cells = [ABSENT; process::WIDTH];
        counters(text, 4096, &mut cells);
        assert_eq!(cells[process::USER_TICKS], 13);
        assert_eq!(cells[process::THREADS], 2);
        assert_eq!(cells[process::IO_DELAY_TICKS], ABSENT);
        assert_eq!(parent(text), Some(5));
        assert!(has_ended(text));
    }

    #[test]
    fn a_kernel_thread_has_no_memory() {
        let text = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 5 0 0 18446744073709551615";
        let mut cells = [ABSENT; process::WIDTH];
        counters(text, 4096, &mut cells);
        assert_eq!(cells[process::RESIDENT_BYTES], 0);
    }
}
