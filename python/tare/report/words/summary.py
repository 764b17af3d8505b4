"""What was measured, on what and at what cost; how to cite it and how to repeat it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tare.analyze.analysis import RULE
from tare.plural import counted
from tare.report.content import Report
from tare.report.figures import duration, moment, size
from tare.report.plain import plain
from tare.report.setting import UNKNOWN, Property
from tare.study.catalogue import studies
from tare.study.model import Study
from tare.version import __version__

_DIGITS = 12
"""Digits of the plan's digest: enough to tell plans apart, few enough to read out."""
_SAVED_AS = "study.yaml"


@dataclass(frozen=True)
class Citation:
    """A citation as a sentence and as BibTeX; without an author, as tare does not know who measured."""

    text: str
    bibtex: str


@dataclass(frozen=True)
class Again:
    """The command that repeats a study. `save`: whether the study file must be saved first."""

    command: str
    save: bool


def citation(report: Report) -> Citation:
    """Name everything that identifies the result: study, scale, seed, plan, version, machine."""
    study = report.study
    day = _day(report)
    made = f"tare {__version__}, study {plain(study.name, 80)} at scale {plain(study.scale, 40)}, {_plan(report)}"
    where = _machine(report)
    text = (
        f"{plain(study.question, 400)} {made}; {counted(report.analysis.good, 'good run')} in "
        f"{counted(len(report.analysis.blocks), 'block')}{where}{'' if day is None else f', {day}'}."
    )
    key = re.sub(r"[^a-z0-9-]", "", f"tare-{study.name}-{study.scale}-{(day or '').replace('-', '')}".lower())[:80]
    fields = {
        "title": plain(study.question, 400),
        "howpublished": made,
        "note": f"{counted(report.analysis.good, 'good run')}{where}",
        **({} if day is None else {"year": day[:4], "date": day}),
    }
    lines = [f"  {name} = {{{_tex(value)}}}," for name, value in fields.items()]
    return Citation(text, "\n".join([f"@misc{{{key},", *lines, "}"]))


def again(study: Study, store: str = "again") -> Again | None:
    """Return the command; `None` for imported results, which tare cannot run.

    A study shipped with tare needs no file. Seed and blocks are given, since options may have set them.
    """
    if study.imported is not None:
        return None
    known = next((name for name, path in studies().items() if path.read_text(encoding="utf-8") == study.text), None)
    words = ["tare", "run", known or _SAVED_AS, "--scale", plain(study.scale, 40)]
    words += ["--seed", str(study.protocol.seed), "--blocks", str(study.protocol.blocks), "--store", store]
    return Again(shlex.join(words), save=known is None)


def _plan(report: Report) -> str:
    seed = f"seed {report.study.protocol.seed}"
    return seed if report.plan_digest is None else f"{seed}, plan {plain(report.plan_digest, 200)[:_DIGITS]}"


def _machine(report: Report) -> str:
    known = {each.name: each.values[0].text for each in report.setting.host if not each.differs}
    model = known.get("cpu_model")
    return "" if model is None else f" on {plain(known.get('cpu_count', '?'), 8)} CPUs of {plain(model, 80)}"


def _day(report: Report) -> str | None:
    began = report.spent.began_at
    return None if began is None else moment(began)[:10]


def _tex(value: str) -> str:
    """Escape what BibTeX would interpret."""
    return re.sub(r"([&%$#_])", r"\\\1", re.sub(r"[{}\\~^]", "", value))


@dataclass(frozen=True)
class Fact:
    """A heading and its text."""

    title: str
    text: str
    link: str | None = None
    """Place in the page with more about it."""


def summary(report: Report) -> tuple[Fact, ...]:
    """Return the facts: what was measured, how often, how well, on what, how long and when."""
    facts = [
        Fact("Measured", _measured(report)),
        Fact("Runs", _runs(report)),
        Fact("Validity", _validity(report), link="#validity"),
        Fact("Hosts", _hosts(report.setting.hosts)),
        Fact("Machine", _machine_in_words(report.setting.host)),
        Fact("Engine", _engine(report.setting.engine)),
        Fact("Machine time", ", ".join(filter(None, [_time(report), _when(report)]))),
    ]
    return tuple(fact for fact in facts if fact.text)


def _measured(report: Report) -> str:
    source = report.study.imported
    if source is not None:
        return plain(f"by others, {counted(source.files, 'file')} of {source.parser}: {source.origin}", 200)
    settings = report.study.arms[0].settings
    script = settings.workload.get("script")
    work = settings.workload_name if script is None else f"{settings.workload_name} {script}"
    if settings.sut.database is None:
        return plain(f"{work} is itself the SUT: no database, no client", 160)
    version = _value(report.setting.effective, "version")
    database = settings.sut.database if version is None else f"{settings.sut.database} {version}"
    nodes = settings.sut.nodes
    return plain(f"{database if nodes == 1 else f'{nodes} nodes of {database}'} under {work}", 160)


def _runs(report: Report) -> str:
    analysis = report.analysis
    failed = len(analysis.failures)
    spoilt = "" if failed == 0 else f", {counted(failed, 'failed attempt')}"
    return f"{analysis.good} good of {report.planned} planned, in {counted(len(analysis.blocks), 'block')}{spoilt}"


def _validity(report: Report) -> str:
    """Describe validity as far as the runs show it; nothing if there are none."""
    analysis = report.analysis
    if not analysis.good:
        return "no good run"
    broken = list(dict.fromkeys(alarm.rule for alarm in analysis.alarms))
    if analysis.invalid:
        return f"invalid: {', '.join([RULE, *broken])}"
    return f"read with care: {', '.join(broken)}" if broken else "no rule is broken"


def _hosts(hosts: Sequence[Property]) -> str:
    """Name the host of each side and node, if there are several hosts."""
    return plain(", ".join(f"{one.name} on {one.values[0].text}" for one in hosts), 400)


def _machine_in_words(host: Sequence[Property]) -> str:
    cpus, model = _value(host, "cpu_count"), _value(host, "cpu_model")
    memory = _value(host, "memory_total_bytes")
    kernel = _value(host, "kernel")
    parts = [
        f"{cpus} \N{MULTIPLICATION SIGN} {model}" if cpus and model else model,
        f"{size(float(memory))} of memory" if memory and memory.isdigit() else None,
        _value(host, "os"),
        f"Linux {kernel}" if kernel else None,
    ]
    return plain(", ".join(part for part in parts if part), 300)


def _engine(engine: Sequence[Property]) -> str:
    name, version = _value(engine, "engine"), _value(engine, "engine_version")
    proxy = {"yes": "docker-proxy on", "no": "docker-proxy off"}.get(_value(engine, "engine_userland_proxy") or "")
    parts = [f"{name} {version or ''}".strip() if name else None, _value(engine, "engine_storage_driver"), proxy]
    return plain(", ".join(part for part in parts if part), 200)


def _time(report: Report) -> str:
    spent = report.spent
    if spent.attempts == 0:
        return "none yet"
    if report.study.imported is not None:
        return "not known"
    return f"{duration(spent.runs_s)} in runs, of which {duration(spent.measure_s)} measuring"


def _when(report: Report) -> str:
    began, ended = report.spent.began_at, report.spent.ended_at
    if began is None or ended is None:
        return ""
    return f"from {moment(began)} on, over {duration(ended - began)}"


def _value(properties: Sequence[Property], name: str) -> str | None:
    """Return the text of a property that is known and the same in all runs."""
    match = next((each for each in properties if each.name == name), None)
    if match is None or match.differs or match.values[0].text == UNKNOWN:
        return None
    return match.values[0].text
