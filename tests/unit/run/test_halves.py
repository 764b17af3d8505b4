"""Which windows of a duet count: those in which both arms ran, on CPUs that did not change."""

from __future__ import annotations

import pytest
from tests.unit.analyze import synthetic

from tare.errors import RunFailed
from tare.run.halves import halves, throughput_of
from tare.run.record import RunRecord
from tare.run.rendezvous import Swap
from tare.run.shared_disk import bytes_per_s, too_much
from tare.workloads import Window


def windows(*rates: float) -> list[Window]:
    return [Window(end + 1.0, rate, None, 0.0, 0.0) for end, rate in enumerate(rates)]


def test_windows_that_touch_the_start_or_the_swap_are_dropped_and_not_split() -> None:
    rates = windows(9999, 100, 100, 9999, 50, 50, 50)
    first, second = halves(rates, 1.0, 10.0, (10.0, 17.05), Swap(13.5, 13.51))
    assert (first.windows, first.throughput_per_s) == (2, 100)
    assert (second.windows, second.throughput_per_s) == (3, 50)


def test_an_even_number_of_windows_loses_the_two_at_the_swap_only_if_both_touch_it() -> None:
    first, second = halves(windows(1, 1, 1, 1, 1, 1), 1.0, 0.0, (0.0, 6.1), Swap(3.0, 3.01))
    assert (first.windows, second.windows) == (1, 2), "the third ends at the swap, the fourth begins before it ends"


def test_windows_in_which_one_ran_alone_are_dropped() -> None:
    early = halves(windows(*range(1, 8)), 1.0, 0.0, (0.4, 7.1), Swap(3.9, 3.91))
    late = halves(windows(*range(1, 8)), 1.0, 0.4, (0.4, 7.1), Swap(3.9, 3.91))
    assert [half.windows for half in early] == [2, 3]
    assert [half.windows for half in late] == [2, 2]


def test_a_half_without_a_window_voids_the_run() -> None:
    with pytest.raises(RunFailed, match="no whole window"):
        halves(windows(1, 1, 1), 1.0, 0.0, (0.0, 3.1), Swap(1.5, 1.51))


def test_a_half_that_stood_still_voids_the_run() -> None:
    with pytest.raises(RunFailed):
        halves(windows(1, 1, 1, 0, 0, 0, 0), 1.0, 0.0, (0.0, 7.1), Swap(3.5, 3.51))


def seated(arm: str, *rates: float) -> RunRecord:
    told = {"halves": [{"windows": 3, "throughput_per_s": rate} for rate in rates]}
    return synthetic.record(1, arm, 1900.0).model_copy(update={"duet": told})


def test_neither_cpu_sets_nor_a_drift_are_in_the_ratio_of_two_arms() -> None:
    """One is a tenth slower; CPUs 1 are twice as fast, and second halves a fifth slower: means would say 3 %."""
    baseline, other = seated("bare", 100, 160), seated("bridge", 180, 72)
    ratio = (throughput_of(other) or 0) / (throughput_of(baseline) or 1)
    assert ratio == pytest.approx(0.9)


def test_a_run_of_a_duet_without_halves_has_no_rate_by_which_arms_are_compared() -> None:
    assert throughput_of(synthetic.record(1, "bare", 1900.0).model_copy(update={"duet": {"partner": "x"}})) is None


@pytest.mark.parametrize(("mib_per_s", "refused"), [(0.99, False), (1.01, True)])
def test_a_disk_is_shared_from_one_mebibyte_a_second_on(mib_per_s: float, refused: bool) -> None:
    usage = {"monotonic_s": 4.0, "sut_read_bytes": 3 * mib_per_s * 2**20, "sut_write_bytes": mib_per_s * 2**20}
    record = synthetic.record(1, "bare", 1900.0).model_copy(update={"usage": usage})
    assert bytes_per_s(record) == pytest.approx(mib_per_s * 2**20)
    assert (too_much(record) is not None) is refused
