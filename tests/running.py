"""How a session runs its tests: their order, what it says of a failure, what a failure may leave to later tests."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest
from tests import preloaded

SEED = "TARE_TEST_ORDER"
"""A number in this variable shuffles the groups of tests and the tests in each."""
SLOW_S = 60.0
"""A test that takes longer is named when it ends: where a session is cut off, one sees where its time went."""


def shuffle(items: list[pytest.Item], group_of: Callable[[str], str]) -> None:
    """Put groups, their files and the tests of each file in an order that `SEED` decides; without it keep theirs.

    Files stay together, as a fixture of a module is set up once.
    """
    seed = os.environ.get(SEED)
    if not seed:
        return
    keys: dict[str, float] = {}
    chance = random.Random(seed)
    paths = {item: item.nodeid.partition("::")[0] for item in items}
    for name in sorted({*paths.values(), *map(group_of, paths.values()), *(item.nodeid for item in items)}):
        keys[name] = chance.random()
    items.sort(key=lambda item: (keys[group_of(paths[item])], keys[paths[item]], keys[item.nodeid]))


class Progress:
    """Says of each failure at once what and where, so that a session that is cut off has said it."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal
        self._began = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called for set-up, call and teardown of each test."""
        at = f"after {time.monotonic() - self._began:.0f} s"
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            lines = str(crash.message if crash else report.longrepr).strip().splitlines() or [""]
            self._terminal.write_line(f"\nFAILED {at} in {report.when}: {report.nodeid}: {lines[0]}", red=True)
        elif report.duration > SLOW_S:
            self._terminal.write_line(f"\n{report.duration:.0f} s, {at}, in {report.when}: {report.nodeid}")


class EndsProcesses:
    """After a file with a failure, ends what its tests started and did not end.

    Otherwise the next test's warnings and processes are those of the failed one.
    """

    def __init__(self) -> None:
        self._failed = False
        self._kept: set[int] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """What a fixture of several files starts goes on."""
        if fixturedef.scope not in ("session", "package"):
            return (yield)
        before = {each.pid for each in _running()}
        try:
            return (yield)
        finally:
            self._kept |= {each.pid for each in _running()} - before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember that there was a failure."""
        report = yield
        self._failed |= report.failed
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
        """After the last test of a file."""
        try:
            yield
        finally:
            if self._failed and (nextitem is None or nextitem.path != item.path):
                self._failed = False
                end([each for each in _running() if each.pid not in self._kept])


def end(processes: list[subprocess.Popen[Any]]) -> None:
    """Kill them, reap them and close their pipes."""
    for process in processes:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _running() -> list[subprocess.Popen[Any]]:
    """All that this one started by `subprocess` and has not waited for, but the process that others fork from."""
    # By type: `isinstance` would ask lazy objects of libraries for their class.
    started = [each for each in gc.get_objects() if issubclass(type(each), subprocess.Popen)]
    own = preloaded.source_pid()
    return [each for each in started if getattr(each, "returncode", 0) is None and each.pid != own]
