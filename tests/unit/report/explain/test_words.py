from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tare.analyze.estimate import Estimate
from tare.analyze.explain.components import DAEMONS
from tare.analyze.explain.explanation import ArmExplanation, Explanation
from tare.analyze.explain.parts import Change, Part
from tare.report.explain import json_file, terminal
from tare.report.explain.words import notes, sentence


def part(name: str, us: float, baseline_us: float, reach: float | None = 0.5) -> Part:
    added = us - baseline_us
    low, high = (None, None) if reach is None else (added - reach, added + reach)
    return Part(
        name, name, us, baseline_us, Change(added, low, high, 5, "2 blocks only" if reach is None else None)
    )


def estimate(point: float | None, reach: float = 0.02) -> Estimate:
    low, high = (None, None) if point is None else (point - reach, point + reach)
    return Estimate(point, low, high, 5, 0.95, "paired-log-ratio-t")


CAUSES = (
    part("netfilter, conntrack, NAT", 4.1, 0.0),
    part("veth and bridge", 1.6, 0.0),
    part("TCP/IP", 20.4, 20.0),
    part("the server's own code", 60.3, 60.0),
)


def arm(causes: Sequence[Part] = CAUSES, waits: Sequence[Part] = (), **changes: Any) -> ArmExplanation:
    made = ArmExplanation(
        arm="bridge",
        baseline="bare",
        total=part("total", 106.4, 100.0),
        overhead=estimate(0.071),
        causes=tuple(causes),
        cells=(),
        sides=(part("server", 86.4, 80.0),),
        waits=tuple(waits),
        whole=part("machine", 210.0, 200.0),
        rest=(part("idle CPUs", 80.0, 90.0),),
        counts=(part("context switches", 2.0, 2.0),),
        log_output=None,
        unnamed=0.012,
        unsampled=0.02,
        lacks=(),
    )
    return replace(made, **changes)


def test_without_stacks_the_sentence_says_what_log_output_adds() -> None:
    logged = arm(causes=(), log_output=part("log output", 30.0, 10.0))
    assert "by the kernel's counters; log output +20 [" in sentence(logged)
    assert "log output" not in sentence(arm(log_output=part("log output", 30.0, 10.0)))


def test_the_sentence_names_the_largest_parts_and_what_is_left() -> None:
    assert sentence(arm()) == (
        "bridge: +7.1 % CPU per operation [+5.1, +9.1]; with client and kernel +6.4 points: "
        "netfilter, conntrack, NAT 4.1, veth and bridge 1.6, other 0.7"
    )


def test_a_part_that_fell_is_named_with_its_sign() -> None:
    fell = part("scheduler and wake-ups", 7.0, 10.0)
    assert "scheduler and wake-ups -3.0" in sentence(arm((*CAUSES, fell)))


def test_a_difference_that_is_not_shown_is_said_to_be_so() -> None:
    assert sentence(arm(overhead=estimate(0.01))).endswith("; not shown to differ from zero")


def test_more_waiting_than_computing_is_said() -> None:
    waits = (part("waiting: throttled", 310.0, 0.0), part("waiting: disk", 3.0, 3.0))
    assert sentence(arm(waits=waits)).endswith("; plus 310 µs per operation waiting (throttled)")
    assert "waiting" not in sentence(arm(waits=(part("waiting: disk", 5.0, 3.0),)))
    unsure = (part("waiting: throttled", 310.0, 0.0, reach=400.0),)
    assert "waiting" not in sentence(arm(waits=unsure))


def test_without_stacks_or_any_figure_it_says_so() -> None:
    assert sentence(arm(())) == (
        "bridge: +7.1 % CPU per operation [+5.1, +9.1]; with client and kernel +6.4 points, "
        "by the kernel's counters"
    )
    assert sentence(arm(overhead=estimate(None))).startswith(
        "bridge: CPU per operation with client and kernel +6.4"
    )
    assert (
        sentence(arm((), total=None, lacks=("no trace",)))
        == "bridge: +7.1 % CPU per operation [+5.1, +9.1]: no trace"
    )
    nothing = arm((), total=None, overhead=estimate(None), lacks=("no stacks were sampled",))
    assert sentence(nothing) == "bridge: CPU time per operation is unknown: no stacks were sampled"


def explanation(*arms: ArmExplanation, profiled: int = 10) -> Explanation:
    return Explanation("percona-2016", "2026-11-24", arms, profiled, 10)


def test_notes_tell_how_far_it_can_be_trusted() -> None:
    far = arm(unsampled=0.3, lacks=("functions of the kernel have no names",))
    words = notes(explanation(far, profiled=8), [far])
    assert words[0] == "functions of the kernel have no names"
    assert words[1] == "stacks exist for 8 of 10 runs"
    assert words[2].startswith("1.2 % of the kernel's CPU time at most has no component")
    assert "show 30.0 % more CPU time of the server than the samples; its parts are too small" in words[3]
    less = arm(unsampled=-0.3)
    (*_, last) = notes(explanation(less), [less])
    assert "show 30.0 % less CPU time of the server than the samples; its parts are too large" in last


@pytest.mark.parametrize("width", [40, 80, 120])
def test_terminals_of_any_width_get_the_sentence_and_every_cause_that_matters(width: int) -> None:
    one, other = arm(), arm(arm="host", overhead=estimate(0.001))
    text = terminal.render(explanation(one, other), [one, other], width=width)
    assert all(len(line) <= width for line in text.splitlines())
    flat = " ".join(text.split())
    assert "netfilter" in flat
    assert "+4.1" in flat
    full = terminal.render(explanation(one), [one], width=max(width, 80))
    assert "+4.1 [3.6, 4.6]" in full
    assert "idle CPUs" in full


def test_json_has_every_part_with_its_interval_and_the_first_cause() -> None:
    tree = json.loads(json_file.render(explanation(arm()), [arm()]))
    (told,) = tree["arms"]
    assert tree["format"] == 1
    assert told["first"] == "netfilter, conntrack, NAT"
    assert told["causes"][0]["added"] == pytest.approx(4.1)
    assert told["causes"][0]["high"] == pytest.approx(4.6)
    assert tree["components"]["titles"]["netfilter"] == "netfilter, conntrack, NAT"


def test_a_note_tells_what_the_engine_s_daemons_did_meanwhile_if_it_is_much() -> None:
    busy = arm(rest=(part(DAEMONS, 30.0, 4.0),))
    (words,) = [note for note in notes(explanation(busy), [busy]) if "daemons" in note]
    assert "used 30.0 µs of CPU for each operation, and 4.00 beside the baseline" in words
    assert words.endswith("so no arm is charged with it")
    idle = arm(rest=(part(DAEMONS, 1.0, 1.0),))
    assert not [note for note in notes(explanation(idle), [idle]) if "daemons" in note]
