"""How the shares of a machine that others took are told."""

from __future__ import annotations

from tare.analyze.validity.load import between


def test_no_negative_share_of_the_machine_is_told_of_others() -> None:
    assert between([0.012, 0.034]) == "1.2 % to 3.4 %"
    assert between([-0.085, 0.739]) == "up to 73.9 %"
