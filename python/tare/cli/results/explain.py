"""`tare explain`: show where the time of an operation goes in each arm."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.own_terminal import own_terminal
from tare.errors import StudyError
from tare.store_place import StorePlace, parse_store_url

if TYPE_CHECKING:
    from tare.analyze.explain.stacks import ArmStacks
    from tare.record.run_record import RunRecord
    from tare.store import Store
    from tare.study.model import Study


class Format(StrEnum):
    """Output format."""

    TERMINAL = "terminal"
    JSON = "json"
    COLLAPSED = "collapsed"
    SPEEDSCOPE = "speedscope"
    FLAMEGRAPH = "flamegraph"
    PPROF = "pprof"


_FORMATS = f"Output format: {', '.join(Format)}."
_OF_STACKS = (Format.COLLAPSED, Format.SPEEDSCOPE, Format.FLAMEGRAPH, Format.PPROF)


def explain(
    store: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE", help="Store of `tare run --profile`.")
    ],
    arm: Annotated[str | None, typer.Argument(help="One arm, in full (default: all arms side by side).")] = None,
    style: Annotated[Format, typer.Option("--format", metavar="FORMAT", help=_FORMATS)] = Format.TERMINAL,
    output: Annotated[Path | None, typer.Option(help="File to write instead of stdout.")] = None,
) -> None:
    """Show where CPU time goes in each arm, by component, and what makes up its overhead.

    `collapsed`, `speedscope`, `pprof` and `flamegraph` write the stacks of one arm; `flamegraph` is an SVG that
    compares them with the baseline's. Exit code 1: no CPU time of any arm is known.
    """
    from tare.analyze.explain.stacks import stacks_of  # polars is slow to import
    from tare.report.content import readable
    from tare.report.write import refuse_place, write
    from tare.store import open_store

    refuse_place(output)
    opened = open_store(store)
    study, records = readable(opened.plan.study, opened.records())
    _refuse_unknown(study, arm)
    if style in _OF_STACKS:
        if arm is None:
            raise StudyError(f"--format {style} shows the stacks of one arm", hint="name it after the store")
        text: str | bytes = _stacks(stacks_of(study, records, arm, opened.raw), style)
        known = True
    else:
        text, known = _explained(opened, study, records, arm, style, to_file=output is not None)
    if output is None:
        encoded = text if isinstance(text, bytes) else text.encode(sys.stdout.encoding or "utf-8", errors="replace")
        sys.stdout.buffer.write(encoded)
    else:
        write(text, output)
    if not known:
        raise typer.Exit(1)


def _explained(  # noqa: PLR0913 - what a text is made of
    opened: Store, study: Study, records: tuple[RunRecord, ...], arm: str | None, style: Format, *, to_file: bool
) -> tuple[str, bool]:
    """Render the explanation; also returns whether it covers any CPU time."""
    from tare.analyze.explain.explanation import explain as explained
    from tare.analyze.explain.run_times import run_times
    from tare.one_line import plain
    from tare.report.explain import json_file, terminal
    from tare.traps.met import recorded_traps

    explanation = explained(study, records, lambda record: run_times(record, opened.raw))
    arms = explanation.arms if arm is None else (explanation.arm(arm),)
    known = any(each.total is not None for each in arms)
    shown = {each.arm for each in arms}
    traps = [each for each in recorded_traps(study, records) if shown & set(each.arms)]
    if style is Format.JSON:
        return json_file.render(explanation, arms, traps), known
    of_file = terminal.render(explanation, arms)
    text = of_file if to_file else terminal.render(explanation, arms, **own_terminal())
    return text + "".join(f"* Trap: {plain(each.sentence, 600)}\n" for each in traps), known


def _stacks(stacks: ArmStacks, style: Format) -> str | bytes:
    from tare.report.explain import flame, stack_files
    from tare.report.explain.pprof import pprof

    if style is Format.PPROF:
        return pprof(stacks)
    if style is Format.COLLAPSED:
        return stack_files.collapsed(stacks)
    return stack_files.speedscope(stacks) if style is Format.SPEEDSCOPE else flame.render(stacks)


def _refuse_unknown(study: Study, arm: str | None) -> None:
    from tare.study.suggest import did_you_mean

    if arm is None:
        return
    names = [each.name for each in study.arms if each.name != study.baseline_of(each.name)]
    if arm in {study.baseline_of(each.name) for each in study.arms}:
        raise StudyError(
            f"{arm} is the baseline, which arms are compared with", hint=f"name one of {', '.join(names)}"
        )
    if arm not in names:
        raise StudyError(f"study {study.name} has no arm {arm!r}", hint=did_you_mean(arm, names, kind="arms"))
