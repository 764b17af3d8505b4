"""The reference runs: the first good run of each arm, from whatever call of tare on the study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tare.databases import Database
from tare.errors import NotComparable
from tare.record.run_record import RunRecord
from tare.run.events import Observer, RunEnded
from tare.run.parity.compare import Difference, KnownVariables, differences
from tare.study.model import Study


class References:
    """The first good run of each arm and each block, to compare later runs with by `parity`."""

    def __init__(self, records: Iterable[RunRecord] = ()) -> None:
        self._first: dict[str, RunRecord] = {}
        self._of_block: dict[int, RunRecord] = {}
        for record in sorted(records, key=lambda one: (one.index, one.attempt)):
            self.note(record)

    def note(self, record: RunRecord) -> None:
        """Keep a good run that is the first of its arm or its block."""
        if record.outcome.ok:
            self._first.setdefault(record.arm, record)
            self._of_block.setdefault(record.block, record)

    def differences(self, study: Study, record: RunRecord, server: KnownVariables) -> tuple[Difference, ...]:
        """List a run's undeclared differences from the first runs of its arm and of the baseline.

        The baseline's own first run is compared with every arm that ran before it in the block. Server and client
        never swap hosts within a block.
        """
        beside = self._of_block.get(record.block)
        if beside is not None and beside.is_swapped != record.is_swapped:
            there, here = (each.between and each.between.sut for each in (beside, record))
            return (Difference(f"the SUT's host in block {record.block}", there, beside.arm, here, record.arm),)
        own, baseline = self._first.get(record.arm), self._first.get(study.baseline_of(record.arm))
        against = [own, baseline] if own or baseline else list(self._first.values())
        for reference in against:
            if reference is not None and (unlike := differences(study, reference, record, server)):
                return unlike
        return ()


def known_variables_of(databases: Mapping[str, Database], name: str | None) -> KnownVariables:
    """Return what the database declares about its variables; nothing without a database."""
    if name is None:
        return KnownVariables()
    database = databases[name]
    return KnownVariables(per_run=database.per_run, derived_settings=database.derived_settings)


def until_refused(records: Iterator[tuple[RunRecord, ...]], observer: Observer) -> Iterator[tuple[RunRecord, ...]]:
    """Pass records on; once the caller has stored a refused one, end the study with `NotComparable`."""
    for together in records:
        yield together
        for record in together:
            if record.outcome.refused:
                observer(RunEnded(record))
                raise NotComparable(
                    f"the arms cannot be compared: {record.outcome.reason}",
                    hint=f"use one value in all arms, or name it in a factor's `sets`; see run {record.run_id}",
                )
