"""Undo what a run has made, in reverse order; a failed step does not prevent the others."""

from __future__ import annotations

from collections.abc import Callable


class Teardown:
    """Steps to take however the run ends."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def add(self, what: str, step: Callable[[], object]) -> Callable[[], None]:
        """Register a step before the thing that it removes is made; the step may find nothing to do.

        Returns a function that takes the step early, and strikes it out unless it fails.
        """
        entry = (what, step)
        self._steps.append(entry)

        def early() -> None:
            step()
            self._steps.remove(entry)

        return early

    def run(self) -> tuple[str, ...]:
        """Take every remaining step once and return a sentence for each failure.

        A failure here voids no measured data (PerfKitBenchmarker #1039): the ledger still lists the thing, and the
        next run or `tare clean` removes it.
        """
        problems = []
        while self._steps:
            what, step = self._steps.pop()
            try:
                step()
            except Exception as error:  # noqa: BLE001 - see above: the next step is due whatever happened
                problems.append(f"{what} failed: {error}")
        return tuple(problems)
