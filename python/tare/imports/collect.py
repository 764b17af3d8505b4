"""Conversion of files into study, plan and records of runs that were made elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tare.errors import StudyError
from tare.imports.load import ImportMapping, published
from tare.imports.mapping import ANY
from tare.imports.monitors.beside import logs_below
from tare.imports.monitors.join import joined
from tare.imports.pairing import must_have_a_good_run, refuse_twice, why_unpaired
from tare.imports.readings import Reading, readings_of
from tare.plan.model import Plan, PlannedRun
from tare.plural import counted
from tare.record.host_facts import HostFacts
from tare.record.import_source import ImportSource
from tare.record.observation import Parity
from tare.record.run_record import Outcome, Phase, RunRecord
from tare.study.model import Arm, Imported, Published, Study
from tare.study.protocol_spec import ImportedSpec
from tare.study.reading.factors import Levels

SCALE = "imported"
_LARGEST_BLOCKS = 100_000


@dataclass(frozen=True)
class ImportedRun:
    """A record, and the content of its raw file."""

    record: RunRecord
    raw: bytes
    tables: Mapping[str, bytes] = field(default_factory=dict)
    """Further raw files: name → content."""
    series: Mapping[str, str] = field(default_factory=dict)
    """Windows and histogram as texts, if the record's measurement lacks them: they are most of a run."""


@dataclass(frozen=True)
class Import:
    """Result of importing a directory."""

    plan: Plan
    runs: tuple[ImportedRun, ...]
    files: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why runs were left out → how many."""
    unpaired: str | None = None
    """Why no block has two arms; `None` if one has."""
    monitors: tuple[str, ...] = ()
    """What logs of monitors were joined to, and why not."""


@dataclass(frozen=True)
class _Block:
    number: int
    conditions: Levels
    repetition: str


def collect(mapping: ImportMapping, directory: Path) -> Import:
    """Read every file that the mapping names. Raises `StudyError` for anything implausible."""
    left_out: Counter[str] = Counter()
    readings = list(readings_of(mapping, directory, left_out))
    files = len({run.name for run in readings})
    if not readings:
        fits = mapping.pattern.text
        if fit := [source.name for source, _ in mapping.pattern.files(directory)]:
            hint = "does the table have no rows, or does the mapping leave out these arms?"
            raise StudyError(f"no run found in {counted(len(fit), 'file')} matching {fits!r}: {fit[0]}", hint=hint)
        raise StudyError(f"no file in {directory} matches {fits!r}", hint="`files` is a path below that directory")
    refuse_twice(readings)
    must_have_a_good_run(mapping, readings)
    blocks = _blocks(mapping, readings)
    study = _study(mapping, readings, len(blocks), files)
    unread: list[str] = []
    logs = [] if mapping.file.monitors is None else list(logs_below(directory, unread))
    plan = _plan(study, readings, blocks, [each.sha256 for each in logs])
    by_place = {(run.block, run.arm): run for run in plan.runs}
    places = {(block.repetition, *block.conditions.values()): block for block in blocks}
    made = []
    for run in readings:
        block = places[run.repetition, *run.conditions.values()]
        made.append(_record(study, plan, by_place[block.number, run.arm], run))
    runs = tuple(sorted(made, key=lambda each: each.record.index))
    unpaired = why_unpaired(mapping, readings)
    if mapping.file.monitors is None:
        return Import(plan, runs, files, left_out, unpaired)
    told = joined([run.record for run in runs], logs, mapping.file.monitors)
    watched = tuple(
        replace(run, record=told.records.get(name, run.record), tables=told.tables.get(name, {}))
        for run in runs
        for name in (run.record.run_id,)
    )
    return Import(plan, watched, files, left_out, unpaired, (*told.sentences, *unread))


def _blocks(mapping: ImportMapping, readings: Sequence[Reading]) -> tuple[_Block, ...]:
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


def _levels(mapping: ImportMapping, readings: Sequence[Reading]) -> dict[str, tuple[str, ...]]:
    """Condition → levels: as the mapping lists them, else as found, sorted naturally."""
    levels: dict[str, tuple[str, ...]] = {}
    for name, texts in mapping.file.conditions.items():
        seen = {run.conditions[name] for run in readings}
        levels[name] = tuple(sorted(seen, key=_natural)) if texts == ANY else tuple(texts)
    return levels


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Key for natural sorting: `"m3.large"` < `"m3.xlarge"`, `"9"` < `"10"`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _study(mapping: ImportMapping, readings: Sequence[Reading], blocks: int, files: int) -> Study:
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
        imported=Imported(origin=origin, parser=file.parser.name, files=files, primary=mapping.primary),
    )


def _published(mapping: ImportMapping, readings: Sequence[Reading]) -> Iterator[Published]:
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


def _plan(study: Study, readings: Sequence[Reading], blocks: Sequence[_Block], beside: Sequence[str]) -> Plan:
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
    for sha256 in sorted(beside):
        digest.update(sha256.encode())
    return Plan(study=study, seed=0, runs=runs, digest=digest.hexdigest())


def _record(study: Study, plan: Plan, run: PlannedRun, reading: Reading) -> ImportedRun:
    read = reading.read
    name = reading.source.path.name
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
        host=HostFacts(),
        engine=None,
        images={},
        effective=None,
        parity=Parity(),
        path=None,
        measurement=read.measurement,
        raw=(name,),
        outcome=outcome,
        imported=ImportSource(
            file=reading.name,
            sha256=hashlib.sha256(read.raw).hexdigest(),
            origin=study.imported.origin if study.imported else None,
            parser=study.imported.parser if study.imported else None,
            repetition=reading.repetition,
            says=dict(read.says),
            distortions=read.distortions,
        ),
    )
    return ImportedRun(record, read.raw, series=read.series)
