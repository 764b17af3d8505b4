"""A path that nobody proved makes no good run, unless nobody could have looked in time."""

from __future__ import annotations

import pytest

from tare.errors import RunFailed
from tare.record.network_path import Hop, NetworkPath
from tare.record.node import NodeFacts
from tare.run.parity.observed import LOOKED_AT_S, unproved


def test_a_phase_too_short_to_be_looked_at_says_that_its_path_is_unknown() -> None:
    unseen = unproved({"n": NodeFacts()}, LOOKED_AT_S / 2)
    assert unseen == "the network path could not be observed: there was no connection to observe"


@pytest.mark.parametrize(
    ("path", "measured_s", "end"),
    [
        (None, LOOKED_AT_S, r"there was no connection to observe; .*: leave it one by their `limits\.cpus`$"),
        (NetworkPath(), 0.1, "the connections could not be matched$"),
    ],
)
def test_a_path_that_was_looked_at_and_not_proved_fails_the_run(
    path: NetworkPath | None, measured_s: float, end: str
) -> None:
    with pytest.raises(RunFailed, match=f"the network path could not be observed: {end}"):
        unproved({"n": NodeFacts(path=path)}, measured_s)


def test_a_known_path_is_no_matter() -> None:
    assert unproved({"n": NodeFacts(path=NetworkPath(Hop.LOOPBACK))}, 0.1) is None
