"""How to cite a result, and how to get it again."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from tare import __version__
from tare.plural import counted
from tare.report.content import Report
from tare.report.figures import moment
from tare.report.plain import plain
from tare.study.catalogue import studies
from tare.study.model import Study

_DIGITS = 12
"""Of the plan's digest: enough to tell plans apart, few enough to be read out."""
_SAVED_AS = "study.yaml"


@dataclass(frozen=True)
class Citation:
    """A sentence, and the same as BibTeX; its author is whoever measured, which tare does not know."""

    text: str
    bibtex: str


@dataclass(frozen=True)
class Again:
    """The one command that repeats a study. `save`: the study file has to be saved first, under its name there."""

    command: str
    save: bool


def citation(report: Report) -> Citation:
    """Names all that decides whether another result is of the same: study, scale, seed, plan, version, machine."""
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
    """`None` for what somebody else has measured: tare cannot run it.

    A study that comes with tare as it was run needs no file. Seed and blocks are named: options may have set them.
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
    """Without what BibTeX would take for its own."""
    return re.sub(r"([&%$#_])", r"\\\1", re.sub(r"[{}\\~^]", "", value))
