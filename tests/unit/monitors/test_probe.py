from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tare.errors import RunFailed
from tare.monitors import MonitorContext, WatchedProcess, why_unavailable
from tare.monitors.probe import Probe, probe_values, targets
from tare.sites import Completed
from tare.sites.binaries import PROBE, candidates
from tare.sites.fake import FakeHost

TRACE = Path(__file__).resolve().parents[2] / "data" / "monitors" / "trace.json"
"""Of a real run: both sides in containers on a bridge."""
OPTIONS = b"      --targets <FILE>\n"


def real() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(TRACE.read_text())
    return tree


def scene(host: FakeHost, *watched: WatchedProcess) -> MonitorContext:
    return MonitorContext(host, "/run/m", interval_s=0.1, most_s=100.0, watched=watched)


def host_with(*programs: str) -> FakeHost:
    return FakeHost(answers={(path, "record", "--help"): Completed((), 0, OPTIONS) for path in programs})


def test_a_host_with_the_program_in_either_place_lacks_nothing() -> None:
    for path in candidates(PROBE):
        assert why_unavailable(Probe(), host_with(path), 0.1, {}) is None


def test_a_host_without_it_or_with_one_too_old_is_told_how_to_get_it() -> None:
    old = FakeHost(answers={(next(candidates(PROBE)), "record", "--help"): Completed((), 0, b"--hz")})
    for host in (FakeHost(), old):
        assert "make setup" in (why_unavailable(Probe(), host, 0.1, {}) or "")


@pytest.mark.parametrize("interval_s", [0.0009, 11.0])
def test_an_interval_that_the_probe_cannot_keep_is_told(interval_s: float) -> None:
    assert "change interval_s" in (why_unavailable(Probe(), host_with(*candidates(PROBE)), interval_s, {}) or "")


def test_a_recording_names_host_targets_rate_and_its_longest_time() -> None:
    binary = list(candidates(PROBE))[1]
    (program,) = Probe().programs(
        scene(host_with(binary), WatchedProcess("sut", 7, own_cgroup=True), WatchedProcess("tare", 1))
    )
    assert program.argv[:4] == (binary, "record", "--out", "/run/m/trace")
    words = " ".join(program.argv)
    for wanted in ("--hz 10 ", "--host ", "--duration 100 ", "--cgroup sut=pid:7 ", "--pid sut=7 ", "--pid tare=1"):
        assert wanted in f"{words} "


@pytest.mark.parametrize(
    ("watched", "wanted"),
    [
        (WatchedProcess("a", 7), [("pid", "a=7")]),
        (WatchedProcess("a", 7, tree=True), [("pid", "a=7,tree")]),
        (WatchedProcess("a", 7, own_cgroup=True), [("cgroup", "a=pid:7"), ("pid", "a=7")]),
        (WatchedProcess("a", 7, own_network=True), [("pid", "a=7"), ("netns", "a=7")]),
    ],
)
def test_a_root_control_group_is_never_sampled_as_ones_own(
    watched: WatchedProcess, wanted: list[tuple[str, str]]
) -> None:
    assert list(targets(watched)) == wanted


def test_what_comes_later_is_handed_over_by_a_file_and_sighup() -> None:
    handed = Probe().update_targets(scene(FakeHost()), (WatchedProcess("client", 9, own_cgroup=True),))
    assert handed is not None
    assert (handed.content, handed.signal) == ("cgroup client=pid:9\npid client=9\n", "HUP")


def test_the_end_of_a_real_trace_is_read() -> None:
    values = probe_values(real(), "")
    assert values["block_source"] == "tp_btf/block_rq_complete"
    assert values["missed_samples"] == 0
    assert values["cpu_s"] == pytest.approx(0.05532, abs=1e-5)
    assert values["ended_monotonic_s"] - values["began_monotonic_s"] == pytest.approx(8.169, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"complete": False}, "not complete"),
        ({"footer": None}, "not complete"),
        ({"footer": {**real()["footer"], "ended_by": "duration"}}, "ended before the run"),
    ],
)
def test_a_trace_that_is_not_whole_is_no_trace(change: Mapping[str, Any], words: str) -> None:
    with pytest.raises(RunFailed, match=words):
        probe_values({**real(), **change}, "the disk is full")


def test_a_missing_trace_is_told_with_the_last_words_of_the_probe(tmp_path: Path) -> None:
    (tmp_path / "probe.stderr").write_text("tare-probe: x\ntare-probe: no space left on device\n")
    with pytest.raises(RunFailed, match=r"missing.*no space left"):
        Probe().read(scene(FakeHost()), tmp_path)
