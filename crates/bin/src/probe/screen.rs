//! The board as text for a terminal. An unknown value is a dash, never a zero.

use std::fmt::Write;

use tare_probe::sampler::PROBE_TARGET;
use tare_probe::sink::board::Board;
use tare_record::rate::Rate;
use tare_record::tables::{self, cgroup, cpu, disk, interface, memory, process, tick};

/// All sections that have rows.
pub(crate) fn picture(board: &Board) -> String {
    let mut page = String::new();
    own(board, &mut page);
    cpus(board, &mut page);
    host_memory(board, &mut page);
    cgroups(board, &mut page);
    processes(board, &mut page);
    disks(board, &mut page);
    interfaces(board, &mut page);
    if board.header.is_some() && page.lines().count() == 1 {
        page.push_str(
            "\nnothing to show yet: no target exists; new ones are added when they appear\n",
        );
    }
    plain(&page)
}

/// Removes terminal control sequences: anybody may name a process or a control group.
fn plain(page: &str) -> String {
    let harmless = |letter: char| if letter.is_control() && letter != '\n' { '?' } else { letter };
    page.chars().map(harmless).collect()
}

/// The part of a picture that fits the terminal, with a note of what is left out; no figure is cut in the middle.
pub(crate) fn fit(picture: &str, width: usize, height: usize) -> Vec<String> {
    let lines: Vec<_> = picture.lines().map(|line| clipped(line, width)).collect();
    if lines.len() <= height {
        return lines;
    }
    let shown = height.saturating_sub(1);
    let more = format!("… {} more lines: a taller terminal shows them", lines.len() - shown);
    lines.into_iter().take(shown).chain([clipped(&more, width)]).collect()
}

/// A line up to its last whole word that fits, and a mark if there was more.
fn clipped(line: &str, width: usize) -> String {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= width {
        return line.to_owned();
    }
    let room = width.saturating_sub(1);
    // A share stands apart from its bounds and goes with them.
    let is_end = |at: &usize| letters[*at] == ' ' && letters.get(at + 1) != Some(&'±');
    let end = (0..=room).rev().find(is_end).unwrap_or(0);
    let kept: String = letters[..end].iter().collect();
    format!("{}…", kept.trim_end())
}

/// A value that may be missing, right-aligned.
fn cell(value: Option<String>, width: usize) -> String {
    format!("{:>width$}", value.unwrap_or_else(|| "-".to_owned()))
}

/// A share of one CPU in percent with half the width of its bounds, from a rate of nanoseconds.
fn percent(rate: Option<Rate>, unit_per_s: f64) -> Option<String> {
    rate.map(|rate| {
        let half = (rate.high_per_s - rate.low_per_s) / 2.0;
        format!("{:.1} ±{:.1}", 100.0 * rate.per_s / unit_per_s, 100.0 * half / unit_per_s)
    })
}

#[allow(clippy::cast_precision_loss)] // for people
fn bytes(value: Option<u64>) -> Option<String> {
    value.map(|value| scaled(value as f64))
}

fn per_s(rate: Option<Rate>, factor: f64) -> Option<String> {
    rate.map(|rate| scaled(rate.per_s * factor))
}

fn scaled(mut value: f64) -> String {
    for unit in ["", "k", "M", "G"] {
        if value < 1000.0 {
            return format!("{value:.1}{unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1}T")
}

#[allow(clippy::cast_precision_loss)] // for people
fn own(board: &Board, page: &mut String) {
    let at = |column| board.value(tables::TICK, PROBE_TARGET, column);
    let late = at(tick::WOKE_NS).zip(at(tick::DUE_NS)).map(|(woke, due)| (woke - due) as f64 / 1e3);
    let cost = percent(board.rate(tables::TICK, PROBE_TARGET, tick::PROBE_CPU_NS), 1e9);
    let scheduler = board.header.as_ref().map_or("-", |header| header.scheduler.as_str());
    let _ = writeln!(
        page,
        "tare-probe  CPU {} %  resident {}B  late {} µs  {scheduler}  events {}{}",
        cell(cost, 1),
        cell(bytes(at(tick::RESIDENT_BYTES)), 1),
        cell(late.map(|late| format!("{late:.0}")), 1),
        board.events,
        board.last_event.as_ref().map_or(String::new(), |event| format!(
            "  last: {} {}",
            event.what.word(),
            event.detail
        )),
    );
}

fn cpus(board: &Board, page: &mut String) {
    let Some(header) = &board.header else { return };
    let columns = [
        // The rarer, the further to the right, which narrow terminals leave out.
        ("user", cpu::USER_TICKS),
        ("system", cpu::SYSTEM_TICKS),
        ("idle", cpu::IDLE_TICKS),
        ("iowait", cpu::IOWAIT_TICKS),
        ("steal", cpu::STEAL_TICKS),
        ("softirq", cpu::SOFTIRQ_TICKS),
        ("nice", cpu::NICE_TICKS),
    ];
    heading(board, tables::CPU, "CPU % of one", &columns.map(|(name, _)| name), page);
    #[allow(clippy::cast_precision_loss)] // 100
    let hz = header.ticks.user_hz as f64;
    for target in board.targets_in(tables::CPU) {
        let cells =
            columns.map(|(_, at)| cell(percent(board.rate(tables::CPU, target.id, at), hz), 13));
        let _ = writeln!(page, "{:<24}{}", target.name, cells.concat());
    }
}

fn host_memory(board: &Board, page: &mut String) {
    let columns = [
        ("total", memory::TOTAL_BYTES),
        ("available", memory::AVAILABLE_BYTES),
        ("cached", memory::CACHED_BYTES),
        ("dirty", memory::DIRTY_BYTES),
        ("anon", memory::ANON_BYTES),
    ];
    heading(board, tables::MEMORY, "memory B", &columns.map(|(name, _)| name), page);
    for target in board.targets_in(tables::MEMORY) {
        let cells =
            columns.map(|(_, at)| cell(bytes(board.value(tables::MEMORY, target.id, at)), 13));
        let _ = writeln!(page, "{:<24}{}", target.name, cells.concat());
    }
}

fn cgroups(board: &Board, page: &mut String) {
    let names = ["CPU %", "throttled %", "memory B", "no cache B", "read B/s", "write B/s", "pids"];
    heading(board, tables::CGROUP, "control group", &names, page);
    for target in board.targets_in(tables::CGROUP) {
        let rate = |at| board.rate(tables::CGROUP, target.id, at);
        let value = |at| board.value(tables::CGROUP, target.id, at);
        let used = value(cgroup::MEMORY_BYTES);
        let inactive = value(cgroup::INACTIVE_FILE_BYTES);
        let working = used.zip(inactive).map(|(used, inactive)| used.saturating_sub(inactive));
        let io = |block, file| per_s(rate(block).or_else(|| rate(file)), 1.0);
        let cells = [
            percent(rate(cgroup::USAGE_NS), 1e9),
            percent(rate(cgroup::THROTTLED_NS), 1e9),
            bytes(used),
            bytes(working),
            io(cgroup::BLOCK_READ_BYTES, cgroup::READ_BYTES),
            io(cgroup::BLOCK_WRITTEN_BYTES, cgroup::WRITTEN_BYTES),
            value(cgroup::PIDS).map(|pids| pids.to_string()),
        ];
        let _ =
            writeln!(page, "{:<24}{}", target.name, cells.map(|value| cell(value, 13)).concat());
    }
}

fn processes(board: &Board, page: &mut String) {
    let names = ["CPU %", "resident B", "read B/s", "write B/s", "threads"];
    heading(board, tables::PROCESS, "process", &names, page);
    for target in board.targets_in(tables::PROCESS) {
        let rate = |at| board.rate(tables::PROCESS, target.id, at);
        let value = |at| board.value(tables::PROCESS, target.id, at);
        let cells = [
            percent(rate(process::CPU_NS), 1e9),
            bytes(value(process::RESIDENT_BYTES)),
            per_s(rate(process::READ_BYTES), 1.0),
            per_s(rate(process::WRITTEN_BYTES), 1.0),
            value(process::THREADS).map(|threads| threads.to_string()),
        ];
        let name = format!("{} {}", target.name, target.detail);
        let _ = writeln!(page, "{name:<24.24}{}", cells.map(|value| cell(value, 13)).concat());
    }
}

fn disks(board: &Board, page: &mut String) {
    let names = ["read B/s", "write B/s", "reads/s", "writes/s", "busy %"];
    heading(board, tables::DISK, "disk", &names, page);
    for target in board.targets_in(tables::DISK) {
        let rate = |at| board.rate(tables::DISK, target.id, at);
        let cells = [
            per_s(rate(disk::READ_SECTORS), 512.0),
            per_s(rate(disk::WRITTEN_SECTORS), 512.0),
            per_s(rate(disk::READS), 1.0),
            per_s(rate(disk::WRITES), 1.0),
            percent(rate(disk::BUSY_MS), 1e3),
        ];
        let _ =
            writeln!(page, "{:<24}{}", target.name, cells.map(|value| cell(value, 13)).concat());
    }
}

fn interfaces(board: &Board, page: &mut String) {
    let columns = [
        ("in B/s", interface::RX_BYTES),
        ("out B/s", interface::TX_BYTES),
        ("in p/s", interface::RX_PACKETS),
        ("out p/s", interface::TX_PACKETS),
        ("drops in/s", interface::RX_DROPPED),
    ];
    heading(board, tables::INTERFACE, "interface", &columns.map(|(name, _)| name), page);
    for target in board.targets_in(tables::INTERFACE) {
        let cells = columns
            .map(|(_, at)| cell(per_s(board.rate(tables::INTERFACE, target.id, at), 1.0), 13));
        let _ = writeln!(page, "{:<24}{}", target.name, cells.concat());
    }
}

/// A heading, if the section has rows.
fn heading(board: &Board, table: u32, title: &str, names: &[&str], page: &mut String) {
    if board.targets_in(table).next().is_some() {
        let _ = write!(page, "\n{title:<24}");
        for name in names {
            let _ = write!(page, "{name:>13}");
        }
        page.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(cell(percent(None, 1e9), 6), "     -");
        assert_eq!(cell(bytes(None), 3), "  -");
    }

    #[test]
    fn a_share_carries_half_the_width_of_its_bounds() {
        let rate = Rate { per_s: 5e8, low_per_s: 4.96e8, high_per_s: 5.04e8 };
        assert_eq!(percent(Some(rate), 1e9).as_deref(), Some("50.0 ±0.4"));
    }

    #[test]
    fn large_numbers_are_scaled() {
        assert_eq!(scaled(999.0), "999.0");
        assert_eq!(scaled(1_500_000.0), "1.5M");
    }

    #[test]
    fn a_narrow_terminal_cuts_no_figure_and_says_that_there_is_more() {
        let line = "all    160.0 ±1.3     29.3 ±1.3";
        assert_eq!(clipped(line, 31), line);
        assert_eq!(clipped(line, 30), "all    160.0 ±1.3…");
        assert_eq!(clipped(line, 18), "all    160.0 ±1.3…");
        assert_eq!(clipped(line, 16), "all…");
        assert_eq!(clipped("process", 3), "…");
    }

    #[test]
    fn a_short_terminal_says_how_much_it_leaves_out() {
        assert_eq!(fit("a\nb\nc\n", 80, 3), ["a", "b", "c"]);
        assert_eq!(
            fit("a\nb\nc\nd\n", 80, 3),
            ["a", "b", "… 2 more lines: a taller terminal shows them"]
        );
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(plain("a\x1b[2J\u{9b}\rb\n"), "a?[2J??b\n");
    }

    #[test]
    fn an_empty_board_draws_no_sections() {
        assert_eq!(picture(&Board::default()).lines().count(), 1);
    }
}
