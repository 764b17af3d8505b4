"""Which windows of a duet count: those in which both arms ran, on CPUs that did not change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import with_parts

from tare.errors import RunFailed
from tare.record.duet import DuetTimes, SwapHalf
from tare.record.load_time import Bounds
from tare.record.run_record import RunRecord
from tare.record.swap_halves import Swap, overlap_s, split_at_swap, throughput_of
from tare.run.duet.attempt import bytes_per_s, why_too_much_io
from tare.workloads import Window
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import read_output

YCSB = Path(__file__).resolve().parents[2] / "data" / "ycsb"


def windows(*rates: float) -> list[Window]:
    return [Window(end + 1.0, rate, None, 0.0, 0.0) for end, rate in enumerate(rates)]


def began(earliest_s: float, latest_s: float | None = None, seconds: float = 7.0) -> Bounds:
    return Bounds(earliest_s, earliest_s if latest_s is None else latest_s, seconds)


def test_windows_that_touch_the_start_or_the_swap_are_dropped_and_not_split() -> None:
    rates = windows(9999, 100, 100, 9999, 50, 50, 50)
    first, second = split_at_swap(rates, began(10.0), (10.1, 17.05), Swap(13.5, 13.51))
    assert (first.windows, first.throughput_per_s) == (2, 100)
    assert (second.windows, second.throughput_per_s) == (3, 50)


def test_an_even_number_of_windows_loses_the_two_at_the_swap_only_if_both_touch_it() -> None:
    one, other = (
        split_at_swap(windows(1, 1, 1, 1, 1, 1), began(0.0), (0.0, 6.1), Swap(at, at + 0.01)) for at in (2.99, 3.0)
    )
    assert [half.windows for half in one] == [2, 3], "the third ends after the swap has begun"
    assert [half.windows for half in other] == [3, 2], "the fourth begins before it is over"


def test_windows_in_which_one_ran_alone_are_dropped() -> None:
    both = overlap_s((began(0.0), began(0.4)))
    assert both == (0.4, 7.0)
    early, late = (split_at_swap(windows(*range(1, 8)), began(at), both, Swap(3.9, 3.91)) for at in (0.0, 0.4))
    assert [half.windows for half in early] == [2, 3]
    assert [half.windows for half in late] == [3, 2]


def test_a_window_counts_where_it_lies_in_a_half_whenever_the_generator_began() -> None:
    both = overlap_s((began(0.0, 0.3), began(0.1, 0.2)))
    assert both == (0.3, 7.0)
    split = split_at_swap(windows(*range(1, 8)), began(0.0, 0.3), both, Swap(3.2, 3.21))
    assert [half.windows for half in split] == [1, 2], "the third may have ended at 3.3, the last at 7.3"


def test_a_generator_that_began_late_by_its_own_word_is_cut_where_it_drove() -> None:
    """A real YCSB of 3 s whose JVM took 4 s to begin: by its process's start all windows lay before the swap."""
    text = [(YCSB / f"both.{stream}").read_text() for stream in ("stdout", "stderr")]
    split = measurement(read_output(*text), Expected(interval="both", window_s=1.0)).windows
    swap = Swap(105.3, 105.31)
    first, second = split_at_swap(split, began(104.0, seconds=3.6), (104.0, 107.6), swap)
    assert (first.windows, second.windows) == (1, 1), "of three the second spans the swap"
    assert (first.throughput_per_s, second.throughput_per_s) == (
        split[0].throughput_per_s,
        split[2].throughput_per_s,
    )
    with pytest.raises(RunFailed, match="no complete window"):
        split_at_swap(split, began(100.0, seconds=3.6), (100.0, 103.6), swap)


def test_a_window_that_lasted_longer_is_dropped_where_it_touches_the_swap() -> None:
    """cassandra-stress prints no line while its server stalls: the next one is of all the time since."""
    rates = [Window(end, 100.0, None, 0.0, None) for end in (1.0, 2.0, 5.0, 6.0, 7.0)]
    split = split_at_swap(rates, began(0.0), (0.0, 7.0), Swap(3.5, 3.51))
    assert [half.windows for half in split] == [2, 2]


def test_a_half_without_a_window_voids_the_run() -> None:
    with pytest.raises(RunFailed, match="no complete window"):
        split_at_swap(windows(1, 1, 1), began(0.2), (0.2, 3.1), Swap(1.1, 1.11))


def test_a_half_without_a_window_is_told_with_the_lengths_that_decide_it() -> None:
    words = r"no complete window with both arms, which are 1\.4 s and 4\.0 s long, .* start is known to 1\.6 s"
    with pytest.raises(RunFailed, match=words):
        split_at_swap(windows(*range(1, 8)), began(10.0, 11.6), (11.6, 17.0), Swap(13.0, 13.01))


def test_a_half_that_stood_still_voids_the_run() -> None:
    with pytest.raises(RunFailed, match=r"^the server did not answer in any complete window of one half"):
        split_at_swap(windows(1, 1, 1, 0, 0, 0, 0), began(0.0), (0.0, 7.1), Swap(3.5, 3.51))


def with_slot(arm: str, *rates: float) -> RunRecord:
    duet = DuetTimes("other", halves=tuple(SwapHalf(3, rate) for rate in rates))
    return synthetic.record(1, arm, 1900.0).model_copy(update={"duet": duet})


def test_neither_cpu_sets_nor_a_drift_are_in_the_ratio_of_two_arms() -> None:
    """One is a tenth slower; CPUs 1 are twice as fast, and second halves a fifth slower: means would say 3 %."""
    baseline, other = with_slot("bare", 100, 160), with_slot("bridge", 180, 72)
    ratio = (throughput_of(other) or 0) / (throughput_of(baseline) or 1)
    assert ratio == pytest.approx(0.9)


def test_a_run_of_a_duet_without_halves_has_no_rate_by_which_arms_are_compared() -> None:
    assert throughput_of(synthetic.record(1, "bare", 1900.0).model_copy(update={"duet": DuetTimes("x")})) is None


@pytest.mark.parametrize(("mib_per_s", "refused"), [(0.99, False), (1.01, True)])
def test_a_disk_is_shared_from_one_mebibyte_a_second_on(mib_per_s: float, refused: bool) -> None:
    usage = {"monotonic_s": 4.0, "sut_read_bytes": 3 * mib_per_s * 2**20, "sut_write_bytes": mib_per_s * 2**20}
    record = with_parts(synthetic.record(1, "bare", 1900.0), usage=usage)
    assert bytes_per_s(record) == pytest.approx(mib_per_s * 2**20)
    assert (why_too_much_io(record) is not None) is refused
