"""Whether imported runs can be compared: each is there once, one is good, and blocks have two arms."""

from __future__ import annotations

from collections.abc import Sequence

from tare.errors import StudyError
from tare.imports.load import ImportMapping
from tare.imports.reading import REPORT, ReadRun
from tare.imports.readings import Reading
from tare.plural import counted


def why_unpaired(mapping: ImportMapping, readings: Sequence[Reading]) -> str | None:
    """Why no block has good runs of the baseline and another arm; `None` if one has."""
    arms: dict[tuple[str, ...], set[str]] = {}
    for run in readings:
        if run.read.measurement is not None:
            arms.setdefault((run.repetition, *run.conditions.values()), set()).add(run.arm)
    baseline = mapping.file.baseline
    if any(baseline in each and len(each) > 1 for each in arms.values()):
        return None
    why = "the other arms have no good run"
    parts = [*mapping.file.conditions, *([mapping.file.repetition] if mapping.file.repetition else [])]
    if len({run.arm for run in readings if run.read.measurement is not None}) > 1:
        differing = ", ".join(f"{{{part}}}" for part in parts) or "the mapping"
        why = f"{differing} {'differ' if len(parts) > 1 else 'differs'} between the arms"
    return f"no block has good runs of {baseline} and another arm, so nothing can be compared: {why}"


def refuse_twice(readings: Sequence[Reading]) -> None:
    """Raise `StudyError` if two runs have one place."""
    seen: dict[tuple[str, ...], Reading] = {}
    for run in readings:
        place = (run.arm, run.repetition, *run.conditions.values())
        if place in seen:
            other = seen[place]
            raise StudyError(
                f"{other.read.place} and {run.read.place} are the same run: arm {run.arm}, "
                f"repetition {run.repetition}",
                hint=_what_differs(other.read, run.read),
            )
        seen[place] = run


def _what_differs(one: ReadRun, other: ReadRun) -> str:
    """What to add to the mapping so that two runs are two."""
    names = [name for name, text in one.says.items() if name != REPORT and other.says.get(name, text) != text]
    if names:
        named = ", ".join(f"{name}: {name}" for name in names)
        differ = ", ".join(f"{name} {one.says[name]} and {other.says[name]}" for name in names)
        return f"their reports say {differ}: read that (`parser: {{parts: {{{named}}}}}`), and make it a condition"
    return (
        "is a condition or the repetition missing from the mapping? "
        "`repetition: row` numbers runs of a configuration as they come"
    )


def must_have_a_good_run(mapping: ImportMapping, readings: Sequence[Reading]) -> None:
    """Raise `StudyError` if no run is good: most likely, the files are not what the mapping says."""
    if any(run.read.measurement is not None for run in readings):
        return
    first, parser = readings[0].read, mapping.file.parser.name
    raise StudyError(
        f"not one of {counted(len(readings), 'run')} is good: {first.place}: {first.failure}",
        hint="`max_error_share` of the mapping's parser takes runs with errors: do they count in the throughput?"
        if " errors in " in (first.failure or "")
        else f"are these files in the format of the parser {parser!r}?",
    )
