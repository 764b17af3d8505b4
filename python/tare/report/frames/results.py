"""A store as frames: what `tare.open_store` returns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.analyze import analyze
from tare.errors import StudyError
from tare.report.frames.estimates import estimates
from tare.report.frames.observations import observations
from tare.report.frames.samples import samples
from tare.report.plain import plain

if TYPE_CHECKING:
    import polars as pl

    from tare.record.run_record import RunRecord
    from tare.store import Store


class Results:
    """One study's results, read-only. Every call reads what is committed at that moment.

    Columns and units of the frames: docs/reference/python.md. `.to_pandas()` converts them to pandas frames.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<results of {plain(self.study, 80)} at scale {plain(self.scale, 40)}, {self.path}>"

    @property
    def path(self) -> Path:
        """The store's directory."""
        return self._store.path

    @property
    def study(self) -> str:
        """Name of the study."""
        return self._store.plan.study.name

    @property
    def scale(self) -> str:
        """Name of the study's scale."""
        return self._store.plan.study.scale

    @property
    def valid(self) -> bool:
        """False if the A/A control differs from the baseline, so that no estimate can be trusted."""
        return not analyze(self._store.plan.study, self._store.records()).invalid

    def observations(self) -> pl.DataFrame:
        """Return a row for each metric of each good run; failed attempts have none."""
        return observations(self._store.plan.study, self._store.records())

    def estimates(self) -> pl.DataFrame:
        """Return a row for each arm and metric: the overhead with its interval, as fractions."""
        study = self._store.plan.study
        return estimates(study, analyze(study, self._store.records()))

    def samples(self, run: str, every_s: float = 1.0) -> pl.DataFrame:
        """Return a row for each sample of a run, by its `run_id`; `every_s`: sampling interval of views of traces.

        Uses the good attempt, else the last one. Raises `StudyError` if the store has no such run.
        """
        if not every_s > 0:
            raise StudyError(f"every_s is {every_s:g}, which is no interval", hint="give seconds above 0")
        return samples(self._store, self._attempt(run), every_s)

    def _attempt(self, run: str) -> RunRecord:
        attempts = [record for record in self._store.records() if record.run_id == run]
        if not attempts:
            hint = "the column run_id of observations() names them"
            raise StudyError(f"the store {self.path} has no run {plain(run, 80)}", hint=hint)
        return next((each for each in attempts if each.outcome.ok), attempts[-1])
