"""Details below the Markdown table: latency, factors, blocks, surroundings, how to repeat and cite the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analyze.metrics import PRIMARY
from tare.report.content import Report
from tare.report.figures import NONE, amount, percent
from tare.report.known import known, known_by_operation
from tare.report.markdown.text import code, fenced, folded, table, text
from tare.report.plain import plain_lines
from tare.report.rows.effects import EffectRow, effect_rows
from tare.report.rows.laid_over import PANELS, laid_rows
from tare.report.rows.shift import shift_rows
from tare.report.rows.views import monitors
from tare.report.setting import BY_OTHERS, Property
from tare.report.words.answer import interval_kind
from tare.report.words.summary import again, citation

_MOST_FACTS = 120
"""Most facts in one list; a pull request is limited to 65,536 characters."""
_MOST_COLUMNS = 20
"""Most blocks across the page."""


def details(report: Report) -> list[str]:
    """Return all details; parts without data are left out."""
    return [
        *_effects(report),
        *_shifts(report),
        *_blocks(report),
        *_values(report),
        *_runs(report),
        *_views(report),
        *_alike(report),
        *_environment(report),
        *_again(report),
        *_cite(report),
    ]


def _effects(report: Report) -> list[str]:
    rows = effect_rows(report)
    lines = []
    for title, part in (("Main effects", rows.main), ("Two-way interactions", rows.two)):
        if part:
            lines += [
                "",
                f"### {title}",
                "",
                *table(("", "against", "n", *rows.titles), list(_effect(part)), left=2),
            ]
    if not lines:
        return []
    starred = " \\*: blocks of a condition's levels are compared with each other." if rows.between else ""
    return [
        "",
        "## Effect of each factor",
        *lines,
        "",
        f"{interval_kind(report.study)} over blocks, not adjusted for multiple comparisons.{starred}",
    ]


def _effect(rows: Sequence[EffectRow]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        cells = (f"{cell.point} {cell.interval}" if cell.interval != NONE else cell.point for cell in row.cells)
        yield (f"{row.name}{'*' if row.between else ''}", row.against, str(row.n), *cells)


def _shifts(report: Report) -> list[str]:
    if not report.shifts:
        return []
    rows = shift_rows(report.shifts)
    sentences = (
        "Shift of latency at each quantile against the baseline, paired by block, with a 95 % interval for each "
        "quantile."
    )
    return ["", "## Latency by quantile", "", *table(rows.titles, rows.rows), "", sentences]


def _blocks(report: Report) -> list[str]:
    """Return a column for each block, or a row for each block if there are too many."""
    findings = [one for one in report.analysis.findings if one.metric == PRIMARY and one.blocks]
    effects = {one.arm: dict(one.blocks) for one in findings}
    blocks = sorted({block for by_block in effects.values() for block in by_block})
    if len(blocks) <= _MOST_COLUMNS:
        titles = ("arm", *(f"block {block}" for block in blocks))
        rows = [(arm, *(percent(by_block.get(block)) for block in blocks)) for arm, by_block in effects.items()]
    else:
        titles = ("block", *effects)
        rows = [(str(block), *(percent(by_block.get(block)) for by_block in effects.values())) for block in blocks]
    return folded("Throughput block by block", table(titles, rows))


def _values(report: Report) -> list[str]:
    metrics = (*known(report.analysis), *known_by_operation(report.analysis))
    rows = [
        (arm.arm, arm.good, *(amount(arm.values[metric.name].median) for metric in metrics))
        for arm in report.analysis.arms
    ]
    unit = next((arm.unit for arm in report.analysis.arms if arm.unit), "operations")
    titles = [f"{each.short}, {f'{unit}/s' if each.name == PRIMARY else each.unit}" for each in metrics]
    return folded("In absolute figures, medians over good runs", table(("arm", "good runs", *titles), rows))


def _runs(report: Report) -> list[str]:
    rows = [
        (arm.arm, row.run_id, *row.cells, "; ".join(row.marks))
        for arm in laid_rows(report.laid_over)
        for row in arm.rows
    ]
    titles = ("arm", "run", *PANELS, "what happened")
    return folded("Single runs, means while measuring", table(titles, rows))


def _views(report: Report) -> list[str]:
    if report.views is None:
        return []
    seen = monitors(report.views)
    rows = [
        (group.title, row.tool, row.shown, row.view, row.resolution, row.real, row.bounds)
        for group in seen.groups
        for row in group.rows
    ]
    titles = ("of", "monitor", "shows", "view", "resolution", "real tool", "should be in")
    why = [f"- {text(sentence, 1200)}" for sentence in seen.why]
    lines = table(titles, rows, left=3)
    return folded(f"Monitors' views of {seen.arm}, run {seen.run_id}", [*lines, *([""] if why else []), *why])


def _alike(report: Report) -> list[str]:
    if report.study.imported is not None:
        return ["", "## Were the arms alike?", "", BY_OTHERS]
    setting = report.setting
    differing = _properties([each for each in setting.parity if each.differs])
    same = sum(not each.differs for each in setting.parity)
    path = _properties(setting.path)
    lines = ["", "## Were the arms alike?", ""]
    one = "recorded property is" if same == 1 else "recorded properties are"
    lines += [f"{same} {one} the same in every arm.", ""] if same else []
    lines += differing or ["Nothing that was recorded differs between arms."]
    return [*lines, *(["", "Network path from client to server:", "", *path] if path else [])]


def _environment(report: Report) -> list[str]:
    setting = report.setting
    images = [
        f"- {text(bits.reference, 120)} ({text(' and '.join(bits.sides))}): `{code(bits.digest, 120)}`, "
        f"{len(bits.packages)} packages"
        for bits in setting.images
    ]
    words = [each for each in setting.effective if each.name in setting.asked or each.differs]
    rest = len(setting.effective) - len(words)
    more = [f"{rest} other variables are the same in every arm; the HTML report lists them."] if rest else []
    lines = [*_properties(setting.host), *(["", *_properties(setting.engine)] if setting.engine else [])]
    properties = _properties(words)
    return [
        *folded("Images", images),
        *folded("Server variables", [*properties, *([""] if properties and more else []), *more]),
        *folded("Host and engine", lines),
    ]


def _properties(properties: Sequence[Property]) -> list[str]:
    rows = [
        (each.name, value.text, ", ".join(value.arms) or "all")
        for each in properties[:_MOST_FACTS]
        for value in each.values
    ]
    left_out = len(properties) - _MOST_FACTS
    more = ["", f"{left_out} more are in the HTML report."] if left_out > 0 else []
    return [*table(("property", "value", "arms"), rows, left=3), *more]


def _again(report: Report) -> list[str]:
    command = again(report.study)
    if command is None:
        return ["", "## Run it again", "", "These runs were imported; no command repeats them."]
    lines = ["", "## Run it again", "", *fenced(command.command, "console")]
    if not command.save:
        return lines
    return [*lines, *folded("with this as study.yaml", fenced(plain_lines(report.study.text), "yaml"))]


def _cite(report: Report) -> list[str]:
    cited = citation(report)
    return ["", "## Cite it", "", text(cited.text, 1500), "", *fenced(cited.bibtex, "bibtex")]
