"""The chart of turns: what it is drawn from, and that the one in the documentation is up to date."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import measured

from tare.record.measurement import TurnCounts
from tare.record.turns import Rotation
from tools.turns_chart import CHARTS, NAME, drawn, in_words, kept, of_records


def test_the_documentation_shows_the_turns_that_lie_beside_it() -> None:
    assert (CHARTS / f"{NAME}.svg").read_text(encoding="utf-8") == drawn(kept()), "run tools.turns_chart"
    assert in_words(kept()) in drawn(kept())


def test_turns_of_all_arms_share_the_clock_of_the_first_measured_one() -> None:
    records = []
    for arm, numbers in (("bare", [7, 8]), ("bridge", [6, 9])):
        zero_s = numbers[0] * 0.12
        turns = TurnCounts(
            settled_s=tuple(number * 0.12 - zero_s + 0.02 for number in numbers),
            ends_s=tuple((number + 1) * 0.12 - zero_s for number in numbers),
            operations=(100, 200),
            first_half=(50, 100),
            latency_ms=(None, None),
            last_s=(None, None),
        )
        made = synthetic.record(1, arm, 1000.0)
        rotation = Rotation(arms=2, turn_ms=100.0, settle_ms=20.0, numbers=tuple(numbers))
        measurement = replace(measured(made), turns=turns)
        records.append(made.model_copy(update={"rotation": rotation, "measurement": measurement}))
    turns_of = of_records(records, ["bare", "bridge"], 25)
    assert [turn["from_s"] for turn in turns_of["bare"]] == pytest.approx([0.14, 0.26])
    assert [turn["from_s"] for turn in turns_of["bridge"]] == pytest.approx([0.02, 0.38])
    assert [turn["per_s"] for turn in turns_of["bare"]] == pytest.approx([1000.0, 2000.0])
    assert set(of_records(records, ["bare"], 1)) == {"bare"}
