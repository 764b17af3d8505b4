"""Costs of single events of the kernel: measured in two ways, kept per machine, and shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError
from tests.unit.knowledge.test_prediction import cost, costs

from tare.cli.study.weigh import render
from tare.errors import RunFailed
from tare.knowledge.event_costs import EventCost, bare_events, costs_of, event_lines, filter_cost, measured_events
from tare.knowledge.kept_costs import keep, read_costs
from tare.knowledge.unit_costs import UnitCosts
from tare.sites import Completed
from tare.sites.layout import Layout
from tare.sites.local import LocalHost

PRINTED: Mapping[str, Any] = {
    "events": {
        "syscall": {"": {"first": [100.0, 110.0, 120.0], "second": [108.0, 110.0, 112.0]}},
        "fsync": {"host": {"first": [1e6, 2e6, 3e6], "second": [9e6, 9e6, 9e6]}},
    },
    "lacks": ["wakeup: one CPU alone"],
}


class Printing:
    """A host whose programs all print the same."""

    name = "printing"

    def __init__(self, output: bytes) -> None:
        self.output = output
        self.ran: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], **_: Any) -> Completed:
        self.ran.append(argv)
        return Completed(tuple(argv), 0, self.output, b"")


def of(seccomp: str | None, ns: float, *, second: float | None = None, event: str = "syscall") -> EventCost:
    tree = {
        "events": {event: {"": {"first": [ns, ns + 2], "second": [second or ns, (second or ns) + 2]}}},
        "lacks": [],
    }
    costs, _ = costs_of(json.dumps(tree).encode(), "bare" if seccomp is None else "container", seccomp)  # type: ignore[arg-type]  # one of both
    return costs[0]


def test_means_have_intervals_over_repeats_and_what_is_lacking_is_told() -> None:
    (call, sync), lacks = costs_of(json.dumps(PRINTED).encode(), "bare", None)
    assert (call.ns, call.n, call.second_ns) == (110.0, 3, 110.0)
    assert call.high - call.ns == pytest.approx(4.3027 * 10 / 3**0.5, rel=1e-3)
    assert sync.storage == "host"
    assert lacks == ("bare: wakeup: one CPU alone",)


def test_two_ways_agree_where_intervals_overlap_or_a_factor_is_small() -> None:
    (call, sync), _ = costs_of(json.dumps(PRINTED).encode(), "bare", None)
    assert call.agree
    assert not sync.agree
    assert of(None, 100.0, second=140.0).agree
    assert not of(None, 100.0, second=170.0).agree
    assert "differs" in "\n".join(event_lines([sync]))


@pytest.mark.parametrize(
    "printed",
    [
        b"{}",
        b"",
        b"[]",
        b'{"events": 1}',
        b'{"events": {"syscall": {"": {"first": [1.0], "second": []}}}, "lacks": []}',
    ],
)
def test_output_that_is_not_whole_is_refused(printed: bytes) -> None:
    with pytest.raises(RunFailed, match="is incomplete"):
        costs_of(printed, "bare", None)


def test_an_engine_that_takes_no_image_is_lacking_and_what_was_measured_is_kept() -> None:
    def refuse(_: bytes) -> str:
        raise APIError("no space left on device")

    engine: Any = SimpleNamespace(api=SimpleNamespace(import_image_from_data=refuse))
    costs, lacks = measured_events(Printing(json.dumps(PRINTED).encode()), engine, Path("/data"))  # type: ignore[arg-type]  # all that is used of it
    assert len(costs) == 2
    assert "the engine cannot load the image: no space left on device" in lacks[-1]


def test_the_filter_s_cost_is_what_unconfined_containers_do_without() -> None:
    costs = [of(None, 90.0), of("default", 160.0, second=170.0), of("unconfined", 100.0)]
    assert filter_cost(costs) == (60.0, 70.0)
    assert filter_cost(costs[:2]) is None
    shown = list(event_lines(costs))
    assert shown[-1] == "the default seccomp filter adds 60 ns to a system call, in the second way 70 ns"
    apart = of("unconfined", 1_234_567.0, second=5_000_000.0)
    assert max(map(len, [*shown, *event_lines([apart])])) <= 80


def test_the_program_is_run_by_the_host_s_python_on_each_storage() -> None:
    host = Printing(json.dumps(PRINTED).encode())
    costs, lacks = measured_events(host, None, Path("/data"))  # type: ignore[arg-type]  # all that is used of it
    assert len(costs) == 2
    assert lacks[-1] == "container: no engine answers"
    assert host.ran[0][0] == sys.executable
    assert "host=/data" in host.ran[0]


def test_this_machine_s_events_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.knowledge.event_costs.REPEATS", 2)
    costs, _ = bare_events(LocalHost(), {"host": str(tmp_path)})
    by_event = {each.event: each for each in costs}
    assert 20 < by_event["syscall"].ns < 20_000
    assert 50 < by_event["fault"].ns < 200_000
    assert list(tmp_path.iterdir()) == []


def test_events_are_kept_with_the_machine_s_costs_and_shown_below_them(tmp_path: Path) -> None:
    known = costs(cost("machine-cpu", 3.0)).model_copy(update={"events": (of(None, 100.0),)})
    keep(Layout(tmp_path), known)
    read = read_costs(Layout(tmp_path), known.identity)
    assert read is not None
    assert read == known
    assert "system call" in render(read, width=80)
    old = json.loads(known.model_dump_json())
    del old["events"]
    assert UnitCosts.model_validate_json(json.dumps(old)).events == ()
