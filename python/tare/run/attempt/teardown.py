"""Undoing what a run has made: last made, first gone, and no step keeps the next from being taken."""

from __future__ import annotations

from collections.abc import Callable


class Teardown:
    """Steps to be taken however the run ends."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add(self, what: str, step: Callable[[], object]) -> Callable[[], None]:
        """Register a step before the thing it removes is made; a step may find nothing to do.

        What it returns takes the step early, and strikes it out unless it fails.
        """
        entry = (what, step)
        self._steps.append(entry)

        def early() -> None:
            step()
            self._steps.remove(entry)

        return early

    def run(self) -> tuple[str, ...]:
        """Take every step once and return what went wrong, a sentence each.

        A failure here voids no measured data (PerfKitBenchmarker #1039): the ledger still knows the thing, and
        the next run or `tare clean` removes it.
        """
        problems = []
        while self._steps:
            what, step = self._steps.pop()
            try:
                step()
            except Exception as error:  # noqa: BLE001 - see above: whatever it is, the next step is due
                problems.append(f"{what} failed: {error}")
        return tuple(problems)
