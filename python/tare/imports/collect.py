"""Conversion of files into study, plan and records of runs that were made elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.errors import StudyError
from tare.imports.load import ImportMapping, published
from tare.imports.mapping import ANY
from tare.imports.reading import ReadRun, read_file
from tare.plan.model import Plan, PlannedRun
from tare.plural import counted
from tare.run.record import Outcome, Phase, RunRecord
from tare.study.model import Arm, Imported, Published, Study
from tare.study.protocol_spec import ImportedSpec
from tare.study.reading.factors import Levels
from tare.study.suggest import did_you_mean

SCALE = "imported"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LARGEST_BLOCKS = 100_000


@dataclass(frozen=True)
class ImportedRun:
    """A record, and the content of its raw file."""

    record: RunRecord
    raw: bytes


@dataclass(frozen=True)
class Import:
    """Result of importing a directory."""

    plan: Plan
    runs: tuple[ImportedRun, ...]
    files: int


@dataclass(frozen=True)
class _Reading:
    """A run that was read. `conditions`: condition → level. `repetition`: numbers runs of equal conditions."""

    path: Path
    name: str
    arm: str
    conditions: Levels
    repetition: str
    read: ReadRun


@dataclass(frozen=True)
class _Block:
    number: int
    conditions: Levels
    repetition: str


def collect(mapping: ImportMapping, directory: Path) -> Import:
    """Read every file that the mapping names. Raises `StudyError` for anything implausible."""
    readings = list(_runs(mapping, directory))
    files = len({run.path for run in readings})
    if not readings:
        fits = mapping.pattern.text
        if fit := [path for path, _ in mapping.pattern.files(directory)]:
            hint = "does the table have no rows, or does the mapping leave out these arms?"
            raise StudyError(f"no run found in {counted(len(fit), 'file')} matching {fits!r}: {fit[0]}", hint=hint)
        raise StudyError(f"no file in {directory} matches {fits!r}", hint="`files` is a path below that directory")
    _refuse_twice(readings)
    _must_have_a_good_run(mapping, readings)
    blocks = _blocks(mapping, readings)
    study = _study(mapping, readings, len(blocks), files)
    plan = _plan(study, readings, blocks)
    by_place = {(run.block, run.arm): run for run in plan.runs}
    places = {(block.repetition, *block.conditions.values()): block for block in blocks}
    made = []
    for run in readings:
        block = places[run.repetition, *run.conditions.values()]
        made.append(_record(study, plan, by_place[block.number, run.arm], run))
    return Import(plan, tuple(sorted(made, key=lambda each: each.record.index)), files)


def _runs(mapping: ImportMapping, directory: Path) -> Iterator[_Reading]:
    file = mapping.file
    arms = {tuple(levels.values()): name for name, levels in mapping.arms.items()}
    for path, parts in mapping.pattern.files(directory):
        for read in read_file(path, file):
            known = {**parts, **read.parts}
            levels = {name: _level(name, known[name], texts, read.place) for name, texts in file.factors.items()}
            conditions = {
                name: _level(name, known[name], texts, read.place) for name, texts in file.conditions.items()
            }
            arm = arms.get(tuple(levels.values()))
            if arm is not None:  # a mapping that names its arms leaves out the others
                repetition = "1" if file.repetition is None else known[file.repetition]
                yield _Reading(path, path.relative_to(directory).as_posix(), arm, conditions, repetition, read)


def _level(part: str, text: str, texts: Mapping[str, str] | str, place: str) -> str:
    """Level that a text stands for; the text itself if the mapping allows any level."""
    if isinstance(texts, str):
        if not _PLAIN.fullmatch(text):
            raise StudyError(
                f"{place}: {text!r} of {{{part}}} cannot be a level's name",
                hint=f"give its levels in the mapping: {part}: {{NAME: {text!r}}}",
            )
        return text
    for level, known in texts.items():
        if known == text:
            return level
    hint = did_you_mean(text, texts.values(), kind="texts of its levels")
    raise StudyError(f"{place}: {text!r} of {{{part}}} is not a level in the mapping", hint=hint)


def _refuse_twice(readings: Sequence[_Reading]) -> None:
    seen: dict[tuple[str, ...], _Reading] = {}
    for run in readings:
        place = (run.arm, run.repetition, *run.conditions.values())
        if place in seen:
            both = f"{seen[place].read.place} and {run.read.place}"
            raise StudyError(
                f"{both} are the same run: arm {run.arm}, repetition {run.repetition}",
                hint="is a condition or the repetition missing from the mapping?",
            )
        seen[place] = run


def _must_have_a_good_run(mapping: ImportMapping, readings: Sequence[_Reading]) -> None:
    """Raise `StudyError` if no run is good: most likely, the files are not what the mapping says."""
    if any(run.read.measurement is not None for run in readings):
        return
    first, parser = readings[0].read, mapping.file.parser.name
    raise StudyError(
        f"not one of {counted(len(readings), 'run')} is good: {first.place}: {first.failure}",
        hint=f"are these files in the format of the parser {parser!r}?",
    )


def _blocks(mapping: ImportMapping, readings: Sequence[_Reading]) -> tuple[_Block, ...]:
    """Blocks, one for each combination of conditions and repetition, in the order of the levels."""
    ranks = {name: {level: n for n, level in enumerate(each)} for name, each in _levels(mapping, readings).items()}
    places = {(tuple(run.conditions.values()), run.repetition): run.conditions for run in readings}
    if len(places) > _LARGEST_BLOCKS:
        raise StudyError(f"{len(places)} blocks are more than {_LARGEST_BLOCKS}")

    def rank(place: tuple[tuple[str, ...], str]) -> tuple[object, ...]:
        levels, repetition = place
        return (*(ranks[name][level] for name, level in zip(ranks, levels, strict=True)), _natural(repetition))

    ordered = sorted(places, key=rank)
    return tuple(_Block(n, places[place], place[1]) for n, place in enumerate(ordered, start=1))


def _levels(mapping: ImportMapping, readings: Sequence[_Reading]) -> dict[str, tuple[str, ...]]:
    """Condition → levels: as the mapping lists them, else as found, sorted naturally."""
    levels: dict[str, tuple[str, ...]] = {}
    for name, texts in mapping.file.conditions.items():
        seen = {run.conditions[name] for run in readings}
        levels[name] = tuple(sorted(seen, key=_natural)) if texts == ANY else tuple(texts)
    return levels


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Key for natural sorting: `"m3.large"` < `"m3.xlarge"`, `"9"` < `"10"`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _study(mapping: ImportMapping, readings: Sequence[_Reading], blocks: int, files: int) -> Study:
    file = mapping.file
    origin = file.origin or (file.source.url if file.source else "source not given")
    return Study(
        name=file.name,
        scale=SCALE,
        question=file.question,
        source=file.source.publication() if file.source else None,
        arms=tuple(Arm(name=name, levels=levels, settings=None) for name, levels in mapping.arms.items()),
        baseline=file.baseline,
        factors={**{name: tuple(each) for name, each in file.factors.items()}, **_levels(mapping, readings)},
        protocol=ImportedSpec(name="imported", blocks=blocks, retries=0),
        published=tuple(_published(mapping, readings)),
        margins=file.margins or {},
        deviations=file.deviations,
        text=mapping.document.text,
        conditions=tuple(file.conditions),
        strata=file.strata,
        published_by=file.published_by,
        imported=Imported(origin=origin, parser=file.parser.name, files=files),
    )


def _published(mapping: ImportMapping, readings: Sequence[_Reading]) -> Iterator[Published]:
    """Yield the published figures about all imported runs, or about one stratum, but not about a part of them."""
    strata = mapping.file.strata
    for figure in published(mapping.document, mapping.file):
        named = {name: figure.levels[name] for name in strata if name in figure.levels}
        if named and len(named) < len(strata):
            if any(run.conditions[name] != level for run in readings for name, level in named.items()):
                continue
            of_arm = {name: level for name, level in figure.levels.items() if name not in named}
            yield figure.model_copy(update={"levels": of_arm})
        else:
            yield figure


def _plan(study: Study, readings: Sequence[_Reading], blocks: Sequence[_Block]) -> Plan:
    """Make the plan of the imported runs; its digest covers the study and every byte that was read."""
    numbers = {(block.repetition, *block.conditions.values()): block.number for block in blocks}
    places = {name: n for n, name in enumerate(arm.name for arm in study.arms)}
    digits = max(2, len(str(len(blocks))))
    turns = sorted(
        (numbers[run.repetition, *run.conditions.values()], places[run.arm], run.arm) for run in readings
    )
    runs = tuple(
        PlannedRun(
            id=f"b{block:0{digits}d}-{position + 1}-{arm}",
            index=index,
            block=block,
            position=position,
            arm=arm,
            seed=1,
        )
        for index, (block, position, arm) in enumerate(turns)
    )
    digest = hashlib.sha256(study.text.encode())
    for run in sorted(readings, key=lambda each: (each.name, each.read.raw)):
        digest.update(run.name.encode() + b"\0" + hashlib.sha256(run.read.raw).digest())
    return Plan(study=study, seed=0, runs=runs, digest=digest.hexdigest())


def _record(study: Study, plan: Plan, run: PlannedRun, reading: _Reading) -> ImportedRun:
    read = reading.read
    name = reading.path.name
    outcome = Outcome(ok=read.measurement is not None, reason=read.failure)
    if not outcome.ok:
        outcome = outcome.model_copy(update={"failed_in": Phase.MEASURE})
    record = RunRecord(
        run_id=run.id,
        attempt=1,
        study=study.name,
        scale=study.scale,
        plan_digest=plan.digest,
        block=run.block,
        position=run.position,
        index=run.index,
        arm=run.arm,
        levels={**reading.conditions, **plan.arm(run.arm).levels},
        settings={},
        seed=run.seed,
        phases=(),
        host={},
        engine=None,
        images={},
        effective=None,
        parity={"sut": None, "client": None},
        path=None,
        measurement=read.measurement,
        raw=(name,),
        outcome=outcome,
        imported={
            "origin": study.imported.origin if study.imported else None,
            "parser": study.imported.parser if study.imported else None,
            "file": reading.name,
            "sha256": hashlib.sha256(read.raw).hexdigest(),
            "repetition": reading.repetition,
        },
    )
    return ImportedRun(record, read.raw)
