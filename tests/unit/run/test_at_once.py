"""Calls to several hosts at once: in order, and over when it is over."""

from __future__ import annotations

import threading
import time

import pytest

from tare.errors import RunFailed
from tare.run.at_once import at_once


def test_results_stand_in_the_order_of_the_calls() -> None:
    first_waits = threading.Event()

    def first() -> int:
        assert first_waits.wait(60)
        return 1

    def second() -> int:
        first_waits.set()
        return 2

    assert at_once([first, second]) == [1, 2]


def test_nothing_goes_on_when_one_has_failed() -> None:
    ended = []

    def slow() -> None:
        time.sleep(0.2)
        ended.append("slow")

    def broken() -> None:
        raise RunFailed("no such host")

    with pytest.raises(RunFailed, match="no such host"):
        at_once([broken, slow])
    assert ended == ["slow"]


def test_one_call_is_made_where_the_caller_stands() -> None:
    assert at_once([threading.get_ident]) == [threading.get_ident()]
    assert at_once([]) == []
