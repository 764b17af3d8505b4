//! `/proc/stat` (proc(5)).

use tare_record::ABSENT;
use tare_record::cell::from_option;
use tare_record::tables::{cpu, system};

use super::fields::{Words, lines};

/// A line of the file that a table wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// CPU times: of CPU `number`, or of all where it is `None`.
    Cpu {
        number: Option<u64>,
        words: &'a [u8],
    },
    Other {
        key: &'a [u8],
        words: &'a [u8],
    },
}

/// Splits the file into the lines that matter.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines(bytes).filter_map(|line| {
        let end = line.iter().position(|byte| *byte == b' ')?;
        let (key, words) = line.split_at(end);
        match key.strip_prefix(b"cpu") {
            Some(b"") => Some(Line::Cpu { number: None, words }),
            Some(digits) => {
                let number = super::fields::whole_number(digits)?;
                Some(Line::Cpu { number: Some(number), words })
            }
            None => Some(Line::Other { key, words }),
        }
    })
}

/// Fills the time columns of a row of table `cpu`.
pub fn cpu_times(words: &[u8], cells: &mut [u64; cpu::WIDTH]) {
    let mut words = Words::new(words);
    for cell in &mut cells[cpu::USER_TICKS..=cpu::GUEST_NICE_TICKS] {
        *cell = from_option(words.number());
    }
}

/// Fills the columns of table `system` that this line has.
pub fn system_line(key: &[u8], words: &[u8], cells: &mut [u64; system::WIDTH]) {
    let mut words = Words::new(words);
    let at = match key {
        b"intr" => system::INTERRUPTS,
        b"ctxt" => system::CONTEXT_SWITCHES,
        b"processes" => system::FORKS,
        b"procs_running" => system::RUNNING,
        b"procs_blocked" => system::BLOCKED,
        b"softirq" => {
            for cell in &mut cells[system::SOFTIRQS..=system::SOFTIRQ_RCU] {
                *cell = words.number().unwrap_or(ABSENT);
            }
            return;
        }
        _ => return,
    };
    cells[at] = from_option(words.number());
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = include_bytes!("../../tests/data/host/stat");

    #[test]
    fn the_first_line_is_the_sum_and_then_come_the_cpus() {
        let numbers: Vec<_> = entries(STAT)
            .filter_map(|line| match line {
                Line::Cpu { number, .. } => Some(number),
                Line::Other { .. } => None,
            })
            .collect();
        assert_eq!(numbers, [None, Some(0), Some(1)]);
    }

    #[test]
    fn steal_stands_after_softirq() {
        let Some(Line::Cpu { words, .. }) = entries(STAT).next() else { panic!("no cpu line") };
        let mut cells = [ABSENT; cpu::WIDTH];
        cpu_times(words, &mut cells);
        assert_eq!(cells[cpu::USER_TICKS], 9288);
        assert_eq!(cells[cpu::SOFTIRQ_TICKS], 84);
        assert_eq!(cells[cpu::STEAL_TICKS], 24);
        assert_eq!(cells[cpu::T0_NS], ABSENT, "windows are not the parser's");
    }

    #[test]
    fn a_kernel_without_guest_time_leaves_it_absent() {
        let mut cells = [0; cpu::WIDTH];
        cpu_times(b" 1 2 3 4 5 6 7 8", &mut cells);
        assert_eq!(cells[cpu::STEAL_TICKS], 8);
        assert_eq!(cells[cpu::GUEST_TICKS], ABSENT);
    }

    #[test]
    fn system_lines_fill_their_columns() {
        let mut cells = [ABSENT; system::WIDTH];
        for line in entries(STAT) {
            if let Line::Other { key, words } = line {
                system_line(key, words, &mut cells);
            }
        }
        assert_eq!(cells[system::INTERRUPTS], 292_216);
        assert_eq!(cells[system::CONTEXT_SWITCHES], 577_720);
        assert_eq!(cells[system::SOFTIRQS], 174_847);
        assert_eq!(cells[system::SOFTIRQ_RCU], 35_983);
        assert_eq!(cells[system::BLOCKED], 0);
    }
}
