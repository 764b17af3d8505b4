"""`tare compare`: compare the same study from two stores."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.own_terminal import own_terminal
from tare.cli.results.check import EXIT_CODES, limit
from tare.errors import StudyError
from tare.store_place import StorePlace, parse_store_url
from tare.study.suggest import did_you_mean

if TYPE_CHECKING:
    from tare.analyze.comparison import Comparison, Recorded
    from tare.report.comparison.content import Compared, Side
    from tare.report.comparison.gate import Gate
    from tare.store import Store


class Format(StrEnum):
    """Output format."""

    TERMINAL = "terminal"
    MD = "md"
    JSON = "json"


def compare(  # noqa: PLR0913, PLR0917 - one argument an option
    store_a: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE_A", help="Store to compare with.")
    ],
    store_b: Annotated[
        StorePlace,
        typer.Argument(parser=parse_store_url, metavar="STORE_B", help="Another store of the same study."),
    ],
    style: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TERMINAL,
    output: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="LIMIT", help="Fail if an arm became worse by more: 3%, or 0.03."),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric of --fail-on (default: throughput); repeatable.")
    ] = None,
) -> None:
    """Show what changed between two stores of one study: other days, machines or versions.

    Exit code 1: nothing can be compared, one of the studies is invalid, or an arm became worse by more than
    --fail-on. 4: with --fail-on, an interval contains the limit. 5: the stores hold different studies. 6: with
    --fail-on, a control could hide more than the limit.
    """
    most = None if fail_on is None else limit(fail_on, "--fail-on")
    if metric and most is None:
        raise typer.BadParameter("needs --fail-on", param_hint="--metric")
    from tare.analyze.comparison import Recorded  # scipy is slow to import
    from tare.analyze.comparison import compare as compared
    from tare.report.comparison.content import build_comparison
    from tare.report.comparison.marks import with_both_marks
    from tare.report.write import refuse_place, write
    from tare.store import open_store

    refuse_place(output)
    stores = [open_store(path) for path in (store_a, store_b)]
    made = [Recorded(store.plan, store.records()) for store in stores]
    _refuse_the_same(stores, made)
    made = made if style is Format.JSON else with_both_marks(made)
    comparison = compared(made[0], made[1])
    sides = [_side(*each) for each in zip("AB", stores, made, strict=True)]
    gate = None if most is None else _gate(comparison, tuple(metric or ("throughput",)), most, sides)
    content = build_comparison(sides[0], sides[1], comparison, gate)
    text = _rendered(content, style, to_file=output is not None)
    if output is None:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    else:
        write(text, output)
    if comparison.a.invalid or comparison.b.invalid or not comparison.compared:
        raise typer.Exit(1)
    if gate is not None and (code := EXIT_CODES[gate.outcome.value]):
        raise typer.Exit(code)


def _gate(comparison: Comparison, metrics: tuple[str, ...], most: float, sides: list[Side]) -> Gate:
    from tare.analyze.change_limit import check_changes
    from tare.report.comparison.gate import Gate

    for name in metrics:
        if name not in comparison.metrics:
            hint = did_you_mean(name, comparison.metrics, kind="metrics")
            raise StudyError(f"the stores do not both have a metric {name[:60]!r}", hint=hint)
    unfinished = next((f"{each.label}: {each.unfinished}" for each in sides if each.unfinished), None)
    return Gate(most, check_changes(comparison, metrics, most, unfinished))


def _side(label: str, store: Store, made: Recorded) -> Side:
    from tare.cli.study.running import unfinished
    from tare.report.comparison.content import Side

    records = tuple(made.records)
    why = unfinished(made.plan, records)
    return Side(label, str(store.place), made.plan.study, records, why, store.tare_version)


def _refuse_the_same(stores: list[Store], sides: list[Recorded]) -> None:
    """Refuse stores that share runs: these are not independent, so the interval of a difference would be wrong."""
    hint = "compare two stores of separate runs"
    if stores[0].id == stores[1].id:
        raise StudyError(f"{stores[0].place} and {stores[1].place} are the same store, or copies of it", hint=hint)
    files = [{run.imported.sha256 for run in side.records if run.imported is not None} for side in sides]
    if files[0] & files[1]:
        raise StudyError(f"{len(files[0] & files[1])} imported files are in both stores", hint=hint)


def _rendered(content: Compared, style: Format, *, to_file: bool) -> str:
    from tare.report.comparison import json_file, markdown, terminal

    if style is Format.MD:
        return markdown.render(content)
    if style is Format.JSON:
        return json_file.render(content)
    if to_file:
        return terminal.render(content)
    return terminal.render(content, **own_terminal())
