"""Results that somebody else has measured."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.validity.evidence import Alarm, Evidence
from tare.plural import counted


def imported(evidence: Evidence) -> Iterator[Alarm]:
    """The study was imported: nothing was seen of what was around its runs."""
    source = evidence.study.imported
    if source is not None:
        files = f"{counted(source.files, 'file')} of {source.parser}, {source.origin}"
        yield Alarm(
            "imported",
            None,
            f"others measured this ({files}): whether the arms had the same bits, settings, limits and machine, "
            "which way the traffic went, and in what order the runs were made is not known",
            (),
            "run the study itself (`tare run`), which checks all of it",
        )
