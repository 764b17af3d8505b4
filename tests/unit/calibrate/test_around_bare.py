"""What is injected around a bare task goes with it, whatever fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from tare.calibrate.injections import AroundBare, BareWith
from tare.deployments.bare.bare import Bare
from tare.errors import RunFailed


@dataclass
class Seen:
    """An injection and a bare deployment that write down what they are asked. `fails`: the call that does."""

    fails: str = ""
    calls: list[str] = field(default_factory=list)

    def _call(self, name: str, given: Any) -> Any:
        self.calls.append(name)
        if name == self.fails:
            raise RunFailed(name)
        return given

    def prepare(self, task: Any) -> None:
        self._call("prepare", task)

    def begin(self, instance: Any) -> Any:
        return self._call("begin", f"{instance}, seen otherwise")

    def observe(self, instance: Any) -> Any:
        return self._call("observe", f"all of {instance}")

    def without(self, seen: Any) -> Any:
        return self._call("without", f"{seen}, less the injection")

    def end(self, instance: Any) -> None:
        self._call("end", instance)

    def start(self, task: Any) -> Any:
        return self._call("start", f"instance of {task}")

    def stop(self, instance: Any, grace_s: float) -> None:
        self._call("stop", instance)


def around(seen: Any) -> Any:
    return AroundBare(seen, seen)


def test_clients_see_what_the_injection_makes_of_a_task() -> None:
    seen = Seen()
    assert around(seen).start("a task") == "instance of a task, seen otherwise"
    around(seen).stop("instance")
    assert seen.calls == ["prepare", "start", "begin", "stop", "end"]


def test_what_is_injected_is_no_property_of_the_task() -> None:
    assert around(Seen()).observe("instance") == "all of instance, less the injection"


@pytest.mark.parametrize(
    ("fails", "calls"),
    [
        ("prepare", ["prepare"]),
        ("start", ["prepare", "start"]),
        ("begin", ["prepare", "start", "begin", "stop", "end"]),
    ],
)
def test_a_task_whose_injection_fails_is_stopped(fails: str, calls: list[str]) -> None:
    seen = Seen(fails)
    with pytest.raises(RunFailed):
        around(seen).start("a task")
    assert seen.calls == calls


def test_it_needs_and_offers_what_bare_does() -> None:
    made: Any = BareWith(lambda *_: SimpleNamespace())
    assert (made.needs, made.isolates_network, made.own_root) == (Bare.needs, Bare.isolates_network, Bare.own_root)
