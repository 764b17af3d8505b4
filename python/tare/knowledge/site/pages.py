"""The pages of the site: answers of stores, claims with facets and forest plots, traps, unit costs side by side."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from tare.errors import StudyError
from tare.knowledge.advice_text import context_words, effect_words, setup_words, source_words
from tare.knowledge.claim import ClaimFile
from tare.knowledge.dispute import all_disputes
from tare.knowledge.kept_costs import every_cost
from tare.knowledge.own import as_json
from tare.knowledge.site.cost_chart import MOST_MACHINES, Drawn, drawn_costs
from tare.knowledge.site.explorer import explorer_pages
from tare.knowledge.site.forest import axis_of, head, mark_of, row
from tare.knowledge.site.stores import StoreView
from tare.knowledge.unit_costs import Load, Quantity, UnitCosts
from tare.one_line import plain
from tare.report.drawings import Figure
from tare.report.figures import unbroken
from tare.report.write import write
from tare.sites.layout import Layout
from tare.traps.trap import load_traps
from tare.version import __version__

FACETS = ("database", "deployment", "baseline", "engine", "path", "storage", "metric", "study")
"""What claims are chosen by; `data-` attributes of a row."""
_NOT_TOLD = "not told"
_KINDS = {"container": "another container", "vm": "a virtual machine", "pod": "another pod"}
_COSTS: Sequence[tuple[str, Load, Quantity, bool]] = (
    ("CPU of a request", "busy", "machine-cpu", False),
    ("of the server", "busy", "sut-cpu", False),
    ("of the client", "busy", "client-cpu", False),
    ("time of one request alone", "alone", "time", False),
    ("CPU of a KiB", "large", "machine-cpu", True),
)


@dataclass(frozen=True)
class Row:
    """A claim in a table. `facets`: facet → value; `forest`: its SVG, or nothing of a claim in words."""

    id: str
    effect: str
    context: str
    says: str
    source: str
    forest: Markup | None
    facets: Mapping[str, str]
    weak: bool
    own: bool
    disputed: tuple[str, ...]


@dataclass(frozen=True)
class CostTable:
    """Unit costs of one quantity. `rows`: name and a cell for each machine; `figure`: the same as a chart."""

    title: str
    rows: Sequence[tuple[str, Sequence[str]]]
    figure: Figure | None


@dataclass(frozen=True)
class Section:
    """Claims of one metric against one kind of baseline, and their scale; `title`: `None` of claims in words."""

    title: str | None
    head: Markup | None
    rows: tuple[Row, ...]


def write_site(
    folder: Path, claims: Sequence[ClaimFile], layout: Layout, stores: Sequence[StoreView] = ()
) -> tuple[Path, ...]:
    """Write every page into `folder`, which is made or empty. Raises `StudyError` where something is in it."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise StudyError(f"{folder} is not an empty directory", hint="name a new one, or remove what is in it")
    pages = dict(pages_of(claims, every_cost(layout), stores))
    try:
        (folder / "claims").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"{folder} cannot be created: {error.strerror}", hint="name another directory") from error
    for name, text in pages.items():
        write(text, folder / name)
    return tuple(folder / name for name in pages)


def pages_of(
    claims: Sequence[ClaimFile], costs: Sequence[UnitCosts], stores: Sequence[StoreView] = ()
) -> Iterator[tuple[str, str]]:
    """File name → text."""
    disputes: dict[str, list[str]] = {}
    for each in all_disputes(claims):
        disputes.setdefault(each.one.id, []).append(each.other.id)
        disputes.setdefault(each.other.id, []).append(each.one.id)
    sections = _sections(claims, disputes)
    rows = [each for section in sections for each in section.rows]
    facets = {name: sorted({each.facets[name] for each in rows}, key=str.lower) for name in FACETS}
    templates = _templates()
    shared = {"version": __version__}
    yield from explorer_pages(templates, stores, claims, load_traps())
    listing = templates.get_template("claims.html.j2")
    yield "claims.html", listing.render(sections=sections, facets=facets, count=len(rows), **shared)
    for known in claims:
        yield f"claims/{known.id}.html", templates.get_template("claim.html.j2").render(
            known=known, parts=_parts(known), disputed=disputes.get(known.id, ()), source=source_words(known.claim),
            effect=effect_words(known.claim), **shared,
        )  # fmt: skip
    yield (
        "costs.html",
        templates.get_template("costs.html.j2").render(
            tables=_costs(costs), machines=costs, most_drawn=MOST_MACHINES, **shared
        ),
    )
    yield "claims.json", as_json(claims)
    for name in ("site.css", "site.js", "explore.js"):
        yield name, files("tare.knowledge.site").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _templates() -> Environment:
    folder = files("tare.knowledge.site").joinpath("templates")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
    )
    environment.filters["plain"] = plain
    environment.filters["unbroken"] = unbroken
    return environment


def _sections(claims: Sequence[ClaimFile], disputes: Mapping[str, Sequence[str]]) -> tuple[Section, ...]:
    """By metric and kind of baseline, those against bare and with most figures first; claims in words last."""
    by_title: dict[str | None, list[ClaimFile]] = {}
    for known in claims:
        context, drawn = known.claim.context, mark_of(known.claim) is not None
        against = "bare" if context is None else context.baseline.deployment
        title = f"{known.claim.effect.metric}, against {_KINDS.get(against, against)}" if drawn else None
        by_title.setdefault(title, []).append(known)
    order = sorted(
        by_title,
        key=lambda title: (title is None, not (title or "").endswith("bare"), -len(by_title[title]), title or ""),
    )
    return tuple(_section(title, by_title[title], disputes) for title in order)


def _section(title: str | None, claims: Sequence[ClaimFile], disputes: Mapping[str, Sequence[str]]) -> Section:
    marks = [mark for known in claims if (mark := mark_of(known.claim)) is not None]
    axis = axis_of(marks) if marks else None
    rows = []
    for known in claims:
        mark = mark_of(known.claim)
        words = html.escape(plain(effect_words(known.claim), 200), quote=True)
        drawn = None if mark is None or axis is None else Markup(row(mark, axis, words))  # noqa: S704 - words are escaped
        rows.append(_row(known, drawn, tuple(disputes.get(known.id, ()))))
    scale = None if axis is None else Markup(head(axis))  # noqa: S704 - numbers alone
    return Section(title, scale, tuple(rows))


def _row(known: ClaimFile, forest: Markup | None, disputed: tuple[str, ...]) -> Row:
    claim = known.claim
    context = claim.context
    return Row(
        id=known.id,
        effect=effect_words(claim),
        context=context_words(claim),
        says=claim.says,
        source=source_words(claim),
        forest=forest,
        facets={
            "database": _NOT_TOLD if context is None else context.database.name,
            "path": (context and context.arm.network) or _NOT_TOLD,
            "storage": (context and context.arm.storage) or _NOT_TOLD,
            "deployment": _NOT_TOLD if context is None else context.arm.deployment,
            "baseline": _NOT_TOLD if context is None else context.baseline.deployment,
            "engine": (context and context.arm.engine) or _NOT_TOLD,
            "metric": claim.effect.metric or _NOT_TOLD,
            "study": known.study,
        },
        weak=claim.source.weak,
        own=claim.source.store is not None,
        disputed=disputed,
    )


def _parts(known: ClaimFile) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """What a claim's page lists: heading → label and value."""
    claim = known.claim
    context, source = claim.context, claim.source
    parts: list[tuple[str, list[tuple[str, str]]]] = []
    if context is not None:
        load = " ".join(
            word
            for word in (
                context.load.workload, context.load.operation,
                None if context.load.threads is None else f"{context.load.threads} threads",
                context.load.level, context.load.bound and f"bound by {context.load.bound}",
            )
            if word
        )  # fmt: skip
        database = f"{context.database.name} {context.database.version or ''}".strip()
        fields = [("database", database), ("load", load), ("arm", setup_words(context.arm))]
        fields += [("against", setup_words(context.baseline)), ("machine", context.machine or "")]
        fields += [("load generator's host", context.client_host or "")]
        parts.append(("Context", fields))
    how = claim.how
    repeated = "" if how.repetitions is None else str(how.repetitions)
    measured = [("statistic", how.statistic), ("parity", how.parity), ("repetitions", repeated)]
    parts.append(("How it was measured", [*measured, ("order", how.order or "")]))
    where = [
        ("where", source.where),
        ("read", source.read),
        ("doi", source.doi or ""),
        ("store", source.store or ""),
    ]
    where += [("weak", source.weak_because or "")]
    parts.append(("Source", where))
    if claim.evidence is not None:
        evidence = claim.evidence.model_dump(exclude_none=True)
        fields = [
            (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, tuple) else _number(value))
            for name, value in evidence.items()
        ]
        parts.append(("Evidence", fields))
    return [(title, [(label, value) for label, value in fields if value]) for title, fields in parts]


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _costs(costs: Sequence[UnitCosts]) -> Sequence[CostTable]:
    """A table and a chart for each quantity."""
    paths = dict.fromkeys(each.path for machine in costs for each in machine.costs)
    tables = []
    for title, load, quantity, per_kib in _COSTS:
        rows, drawn = [], []
        for path in paths:
            name, cells = " / ".join(path), []
            for number, machine in enumerate(costs, start=1):
                cost = machine.of(path, load, quantity, per_kib=per_kib)
                reach = "" if cost is None or cost.high is None else f" ± {cost.high - cost.us:.2f}"
                cells.append("" if cost is None else f"{cost.us:.2f}{reach}")
                if cost is not None:
                    drawn.append(Drawn(name, number, cost.us, cost.low, cost.high))
            if any(cells):
                rows.append((name, cells))
        if rows:
            name = f"{quantity}-{'kib' if per_kib else load}"
            tables.append(CostTable(title, rows, drawn_costs(name, title, drawn)))
    return [*tables, *_events(costs)]


def _events(costs: Sequence[UnitCosts]) -> Sequence[CostTable]:
    """The events of the kernel, likewise."""
    rows: dict[str, list[str]] = {}
    drawn = []
    for at, machine in enumerate(costs):
        for each in machine.events:
            place = each.where if each.seccomp is None else f"container, seccomp {each.seccomp}"
            place = place if each.accelerator is None else f"virtual machine, {each.accelerator}"
            name = f"{each.name}, {place}"
            cells = rows.setdefault(name, [""] * len(costs))
            cells[at] = f"{each.ns / 1000:.2f} ± {(each.high - each.ns) / 1000:.2f}"
            drawn.append(Drawn(name, at + 1, each.ns / 1000, each.low / 1000, each.high / 1000))
    title = "Events of the kernel"
    return [CostTable(title, list(rows.items()), drawn_costs("events", title, drawn, log=True))] if rows else []
