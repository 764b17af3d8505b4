"""The form of a table: a row, a cell, or rows of one metric each for a run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tare.imports.guess.names import Column
from tare.imports.guess.roles import names_platform
from tare.imports.guess.survey import SeenTable
from tare.imports.guess.tables import Rows, TableForm, Tables, alike
from tare.imports.headings import Figure, figure_of, is_numeric, perhaps_figure, says_what, words_of

_METRIC = re.compile(r"\b(?:metric|measure|measurement|kpi|statistic|variable|indicator|name)\b")
_VALUE = re.compile(r"\b(?:value|result|score|measurement|figure)\b")
_NUMBERED = re.compile(r"(?i)((?:run|rep\w*|iter\w*|trial|round|test|try)[\s_#-]*)\d+")
_LARGEST_COUNT = 1000


def form_of(tables: Sequence[SeenTable]) -> TableForm | None:
    """The most frequent form of table whose cells are figures of runs; `None` if none.

    Headings that name a metric and its unit come first; what needs somebody's word comes last.
    """
    groups = alike(tables)
    for doubtful in (False, True):
        for group in groups:
            for shape in (_tidy, _wide, _plain):
                if (form := shape(group, doubtful=doubtful)) is not None:
                    return form
    return None


def _plain(group: Tables, *, doubtful: bool) -> TableForm | None:
    """A row for each run."""
    found = [figure for name in group.numeric if (figure := figure_of(name)) is not None]
    if not found and doubtful:
        found = _perhaps(group)
    figures: dict[str, Figure] = {}
    for figure in found:
        figures.setdefault(figure.metric, figure)
    if not figures:
        return None
    used = {figure.column for figure in figures.values()}
    says = {
        name: texts
        for name in group.heading
        if name not in used and _says(group.first, name, texts := group.texts(name))
    }
    return TableForm(group, tuple(figures.values()), says, tuple(len(rows.body) for rows in group.tables))


def _perhaps(group: Tables) -> list[Figure]:
    """The figure that no heading names with a unit, if only one may be it; throughput before times."""
    if group.first.headed:
        perhaps = [figure for name in group.numeric if (figure := perhaps_figure(name)) is not None]
        rates = [figure for figure in perhaps if figure.metric == "throughput"]
        times = [figure for figure in perhaps if figure.metric == "latency_mean"]
        return next((some for some in (rates, times) if len(some) == 1), [])
    differing = [name for name in group.numeric if len(set(group.texts(name))) > 1]
    left = [name for name in differing if not _says(group.first, name, group.texts(name))]
    if len(left) != 1:
        return []
    metric, unit = _of_file_name(group) or ("throughput", "/s")
    return [Figure(metric, left[0], unit, f"column {left[0].removeprefix('column')}")]


def _of_file_name(group: Tables) -> tuple[str, str] | None:
    """Metric and unit that the names of the files say."""
    told = {(each.metric, each.unit) for name in group.names.names if (each := figure_of(name)) is not None}
    return told.pop() if len(told) == 1 else None


def _says(rows: Rows, heading: str, values: Sequence[str]) -> bool:
    """Whether a column says what a run was; without a heading, small whole numbers that come again do."""
    if rows.headed or not is_numeric(values):
        return says_what(heading, values)
    counts = all(value.isdecimal() and int(value) < _LARGEST_COUNT for value in values)
    return counts and 1 < len(set(values)) < len(values)


def _wide(group: Tables, *, doubtful: bool) -> TableForm | None:
    """A column for each platform or repetition, or for each kind of one metric: every cell is a run."""
    named = {name: (each.metric, each.unit) for name in group.numeric if (each := figure_of(name)) is not None}
    stems = {match.group(1) for name in group.numeric if (match := _NUMBERED.fullmatch(name))}
    kinds = {
        "platform": [name for name in group.numeric if names_platform(name)],
        "run": [name for name in group.numeric if _NUMBERED.fullmatch(name)] if len(stems) == 1 else [],
        "kind": list(named) if len(set(named.values())) == 1 else [],
    }
    beside = next((beside for beside, chosen in kinds.items() if len(chosen) > 1), None)
    if beside is None or not group.first.headed:
        return None
    chosen = kinds[beside]
    figures = {named.get(name) for name in chosen}
    if len(figures) > 1:
        return None
    metric_and_unit = figures.pop() or _of_file_name(group)
    if metric_and_unit is None and not doubtful:
        return None
    metric, unit = metric_and_unit or ("throughput", "/s")
    doubt = "" if metric_and_unit else f"the columns {', '.join(map(repr, chosen[:4]))}"
    rows = [len(each.body) for each in group.tables]
    says = {
        name: tuple(text for text in texts for _ in chosen)
        for name in group.heading
        if name and name not in chosen and says_what(name, texts := group.texts(name))
    }
    return TableForm(
        group,
        (Figure(metric, "", unit, doubt),),
        says,
        tuple(count * len(chosen) for count in rows),
        wide=tuple(chosen),
        between=Column(tuple(chosen) * sum(rows), beside),
    )


def _tidy(group: Tables, *, doubtful: bool) -> TableForm | None:
    """A row for each metric of a run."""
    metric = next((name for name in group.heading if _METRIC.search(words_of(name))), None)
    value = next((name for name in group.numeric if name != metric and _VALUE.search(words_of(name))), None)
    if metric is None or value is None or metric in group.numeric:
        return None
    unit = next((name for name in group.heading if words_of(name) in ("unit", "units")), None)
    texts = group.texts(metric)
    figures: dict[str, Figure] = {}
    for text, of_text in zip(texts, group.texts(unit) if unit is not None else [""] * len(texts), strict=True):
        read = figure_of(f"{text} {of_text}") or (perhaps_figure(text) if doubtful else None)
        if read is not None:
            figures.setdefault(read.metric, Figure(read.metric, text, read.unit, read.doubt))
    if not figures:
        return None
    others = [name for name in group.heading if name and name not in (metric, value, unit)]
    runs_of, says = _runs(group, metric, {figure.column for figure in figures.values()}, others)
    said = {name: values for name, values in says.items() if says_what(name, values)}
    return TableForm(group, tuple(figures.values()), said, runs_of, metric=metric, value=value)


def _runs(
    group: Tables, metric: str, texts: set[str], others: Sequence[str]
) -> tuple[tuple[int, ...], dict[str, tuple[str, ...]]]:
    """Runs of each table, and the texts of their other columns: a metric that comes again begins the next run."""
    runs: list[tuple[str, ...]] = []
    runs_of: list[int] = []
    for rows in group.tables:
        seen: dict[tuple[str, ...], set[str]] = {}
        before = len(runs)
        columns = [rows.column(name) for name in others]
        for n, text in enumerate(rows.column(metric)):
            key = tuple(column[n] for column in columns)
            if text not in texts:
                continue
            if key not in seen or text in seen[key]:
                runs.append(key)
                seen[key] = set()
            seen[key].add(text)
        runs_of.append(len(runs) - before)
    return tuple(runs_of), dict(zip(others, zip(*runs, strict=True), strict=True))
