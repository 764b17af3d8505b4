"""A report for a paper: a table and a paragraph on methods in LaTeX, BibTeX, every figure as SVG and PDF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import vl_convert
from altair.utils.schemapi import debug_mode

from tare.analyze.metrics import PRIMARY
from tare.errors import StudyError
from tare.plural import counted
from tare.report.charts.theme import FONT, WIDE, draw
from tare.report.content import Report
from tare.report.drawings import LATENCY, Chart, charts
from tare.report.figures import NONE, interval, point, signed
from tare.report.plain import plain
from tare.report.words.answer import against, interval_kind, unpaired
from tare.report.words.headlines import headlines
from tare.report.words.summary import citation, summary
from tare.report.write import write
from tare.study.model import Study
from tare.version import __version__

TABLE, METHODS, REFERENCES, FIGURES = "overheads.tex", "methods.tex", "references.bib", "figures"
_TEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\N{EM DASH}": "---", "\N{DAGGER}": r"\textdagger{}",
    "\N{PLUS-MINUS SIGN}": r"$\pm$", "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{MINUS SIGN}": "$-$",
    "<": r"\textless{}", ">": r"\textgreater{}", "`": "",
}  # fmt: skip
_ORDERS: Mapping[str, str] = {
    "interleave": "Each block ran every arm once, in random order, and a run is the unit of replication",
    "rotate": "Arms took turns on servers that stayed up; a generation, after which all servers are started anew, "
    "is a block and the unit of replication",
    "duet": "In a duet, two arms ran at the same time on separate CPUs; a pair is the unit of replication",
}
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The first is drawn with and measured; the others are as wide."""
_COLOUR = re.compile(r"--([a-z0-9]+): (#[0-9a-f]{6});")


def write_paper(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write all of it into a folder, which is made, and return the files.

    Raises `StudyError` where the folder cannot be made or written, or something else has its name.
    """
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name a new folder with --output"
        raise StudyError(f"cannot write into {folder}: {error.strerror}", hint=hint) from error
    written: dict[Path, str | bytes] = {
        folder / TABLE: table(report),
        folder / METHODS: methods(report),
        folder / REFERENCES: references(report),
    }
    for chart in charts(report):
        svg = picture(chart)
        written[folder / FIGURES / f"{chart.name}.svg"] = svg
        written[folder / FIGURES / f"{chart.name}.pdf"] = vl_convert.svg_to_pdf(svg)
    for path, content in written.items():
        write(content, path)
    return tuple(written)


def tex(text: str) -> str:
    """Escape what LaTeX would interpret."""
    return "".join(_TEX.get(letter, letter) for letter in text)


def picture(chart: Chart) -> str:
    """Return a chart as an SVG of its own: in the colours of a light page, in a font that it was measured in."""
    with debug_mode(arg=False):
        spec = json.dumps(chart.specification(WIDE))
    svg = draw(json.loads(spec.replace(FONT, _FONT)), chart.name, chart.label)
    for name, colour in _colours().items():
        svg = svg.replace(f"var(--{name})", colour)
    return svg.replace("<svg ", f'<svg font-family="{_FONT}" ', 1)


@cache
def _colours() -> Mapping[str, str]:
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return dict(_COLOUR.findall(style.partition("@media")[0]))


def table(report: Report) -> str:
    """Return a table for the package booktabs: throughput and 95th percentile latency of each arm."""
    known = [name for name in (PRIMARY, LATENCY) if any(f.metric == name for f in report.analysis.findings)]
    titles = {PRIMARY: "throughput", LATENCY: "95th percentile latency"}
    heads = [f"{titles[name]}, \\% & 95\\,\\% interval" for name in known]
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{lr{'rl' * len(known)}}}",
        "\\toprule",
        f"arm & n & {' & '.join(heads)} \\\\",
        "\\midrule",
        *(f"{tex(plain(name, 80))} & {' & '.join(_cells(report, name, known))} \\\\" for name in _arms(report)),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _arms(report: Report) -> Iterator[str]:
    yield from (each.arm for each in report.analysis.arms if not each.is_baseline)


def _cells(report: Report, arm: str, metrics: list[str]) -> Iterator[str]:
    findings = [report.analysis.finding(arm, name) for name in metrics]
    yield str(findings[0].estimate.n)
    for finding in findings:
        yield _minus(point(finding).removesuffix(" %"))
        yield _minus(interval(finding.estimate))


def _minus(figure: str) -> str:
    """Set figures in math mode, which has a true minus sign."""
    return (
        tex(figure)
        if figure == NONE
        else re.sub(r"[+-]?\d+(?:[,.]\d+)*", r"$\g<0>$", tex(figure).replace(" \\%", ""))
    )


def methods(report: Report) -> str:
    """Return a paragraph on what was measured and how, from what the runs have recorded."""
    facts = {fact.title: fact.text for fact in summary(report)}
    study = report.study
    on = ", ".join(facts[name] for name in ("Machine", "Engine", "Hosts") if name in facts)
    sentences = [
        f"{plain(study.question, 400)}",
        f"We measured {facts['Measured']}{f' on {on}' if on else ''}",
        _protocol(study),
        *([_ORDERS[study.protocol.name]] if study.protocol.name in _ORDERS else []),
        f"Runs: {facts['Runs']}",
        _intervals(report),
        *(each.text for each in headlines(study, report.analysis) if each.text.startswith(("Control", "INVALID"))),
        f"Validity: {facts['Validity']}",
    ]
    text = " ".join(f"{tex(signed(each.rstrip('.?')))}{'?' if each.endswith('?') else '.'}" for each in sentences)
    return text.replace(f"tare {tex(__version__)}", f"tare {tex(__version__)}~\\cite{{{_key(report)}}}", 1) + "\n"


def _protocol(study: Study) -> str:
    return (
        f"The {counted(len(study.arms), 'arm')} ran by the protocol {study.protocol.name} of tare {__version__}, "
        f"study {plain(study.name, 80)} at scale {plain(study.scale, 40)}, seed {study.protocol.seed}"
    )


def _intervals(report: Report) -> str:
    study = report.study
    if (words := unpaired(study)) is not None:
        return words
    kind = f"95 % {interval_kind(study)}, not adjusted for multiple comparisons"
    return f"Overheads are ratios to {against(study)}, paired by block, with {kind}"


def references(report: Report) -> str:
    """Return BibTeX of this result and, for a replay, of the study that it replays."""
    return "\n\n".join(filter(None, (citation(report).bibtex, _replayed(report.study)))) + "\n"


def _key(report: Report) -> str:
    return citation(report).bibtex.partition("{")[2].partition(",")[0]


def _replayed(study: Study) -> str | None:
    source = study.source
    if source is None:
        return None
    fields = {"author": source.authors, "title": source.title, "year": str(source.year), "url": source.url}
    lines = [f"  {name} = {{{tex(plain(value, 400))}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{study.name},", *lines, "}"])
