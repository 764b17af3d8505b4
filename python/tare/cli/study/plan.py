"""`tare plan`: what a study would run, in what order, and about how long it would take."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tare.cli.site_options import SiteOption, SitesOption, chosen_site
from tare.cli.study.planned import planned
from tare.errors import TareError
from tare.one_line import plain
from tare.plan.datasets import data_sets
from tare.plan.estimate import PlanEstimate, estimate, slow_starts
from tare.plan.model import Plan
from tare.plural import counted
from tare.protocols.pilot import BLOCKS as PILOT_BLOCKS
from tare.protocols.pilot import is_piloted, most_s
from tare.protocols.registry import rule_of
from tare.protocols.turn_pilot import pilot_seconds
from tare.sites.layout import default_layout
from tare.study.model import Study
from tare.study.protocol_spec import RotateSpec
from tare.traps.met import planned_traps

if TYPE_CHECKING:
    from tare.run.between.reaching import ReachedSite

_MOST_COLUMNS = 3
"""Columns that fit beside the arms' names in 80 characters."""


class Format(StrEnum):
    """Output format."""

    TEXT = "text"
    JSON = "json"


def plan(  # noqa: PLR0913, PLR0917 - a parameter an option
    study: Annotated[str, typer.Argument(help="A study that comes with tare, a directory, or a study file.")],
    scale: Annotated[str | None, typer.Option(help="Scale of the study (default: full).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed for the order of runs, instead of the study's.")] = None,
    blocks: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Maximum number of blocks, instead of the study's.")
    ] = None,
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TEXT,
    elsewhere: Annotated[  # noqa: FBT002 - an option, given by name
        bool, typer.Option("--elsewhere", help="Do not check whether this machine can run it.")
    ] = False,
    verbose: Annotated[  # noqa: FBT002 - as above
        bool, typer.Option("--verbose", help="Also show what all arms share, and the order of runs.")
    ] = False,
    sites: SitesOption = None,
    site: SiteOption = None,
) -> None:
    """Show time, disk, arms and traps of a study, and what is missing here to run it. Starts nothing."""
    from tare.databases.registry import DATABASES
    from tare.workloads.registry import WORKLOADS

    where = chosen_site(sites, site)
    made = planned(study, scale, seed, blocks)
    with ExitStack() as stack:
        reached: ReachedSite | None = None
        unreachable: TareError | None = None
        if where is not None and not elsewhere:
            from tare.run.between.reaching import reached_site  # slow to import

            try:
                reached = stack.enter_context(reached_site(where))
            except TareError as error:  # show the plan first
                unreachable = error
        known = None if elsewhere or unreachable else _calibrated_spread(reached)
        expected = estimate(made, data_sets(WORKLOADS), slow_starts(DATABASES, WORKLOADS), known)
        if output is Format.JSON:
            sys.stdout.write(json.dumps(as_json(made, expected), indent=2) + "\n")
        else:
            show(made, expected, Console(highlight=False, soft_wrap=False), verbose=verbose)
        if where is not None and where.swap and output is Format.TEXT:
            sys.stdout.write("Server and client swap hosts in every even block.\n")
        if unreachable is not None:
            raise unreachable
        if reached is not None:
            reached.refuse(made, expected.disk_bytes)
        elif not elsewhere:
            from tare.run.local import refuse_without_rights

            refuse_without_rights(made, expected.disk_bytes)


def _calibrated_spread(reached: ReachedSite | None) -> float | None:
    """Spread between blocks by the calibration of this machine or pair of hosts; `None` if it is not calibrated."""
    root = default_layout().calibration
    if not root.is_dir():
        return None
    from tare.calibrate.archive import Archive  # slow to import
    from tare.calibrate.identify import identity_between, identity_here

    identity = identity_here() if reached is None else identity_between(reached)
    return Archive(root).spread(identity.machine_key)


def as_json(made: Plan, expected: PlanEstimate) -> dict[str, Any]:
    """The plan and its estimate as a JSON tree."""
    return {
        **made.model_dump(mode="json", exclude={"study": {"text"}}),
        "estimate": {**asdict(expected), "total_s": expected.total_s, "most_s": expected.most_s},
        "traps": [dict(each.tree) for each in planned_traps(made.study)],
    }


def show(made: Plan, expected: PlanEstimate, console: Console, *, verbose: bool) -> None:
    """Print the plan for people. `verbose`: with what all arms share, and the order of runs."""
    study = made.study
    console.print(Text(f"{study.name} at scale {study.scale}", style="bold"))
    console.print(Text(plain(study.question, 400)))
    console.print()
    console.print(Text(_expectation(made, expected)))
    for table in (_arms(study), *((_common(study), _blocks(made)) if verbose else ())):
        console.print()
        console.print(table)
    console.print()
    for each in planned_traps(study):
        console.print(Text(f"Trap: {each.sentence}"))
    console.print(Text(f"{counted(len(made.runs), 'run')} at most, seed {made.seed}, plan {made.digest[:12]}."))
    if not verbose:
        console.print(Text("`--verbose` shows the settings that all arms share and the order of runs."))


def _arms(study: Study) -> Table:
    """Table of arms: a column for each key that differs, or one column for all if they are too many to fit."""
    varying = _varying(study)
    wide = len(varying) <= _MOST_COLUMNS
    table = _table("arm", *(varying if wide else ["what differs"]), title=f"{len(study.arms)} arms")
    for arm in study.arms:
        settings = _flat(arm.settings.model_dump(mode="json"))
        name = Text(arm.name)
        if arm.name == study.baseline_of(arm.name):
            name.append(" (baseline)", style="bold")
        if arm.control:
            name.append(" (control)", style="dim")
        cells = [_shown(settings.get(key)) for key in varying]
        listed = ", ".join(f"{key} {cell}" for key, cell in zip(varying, cells, strict=True))
        table.add_row(name, *([Text(cell) for cell in cells] if wide else [Text(listed)]))
    return table


def _common(study: Study) -> Table:
    table = _table("key", "value", title="the same in every arm")
    varying = _varying(study)
    for key, value in _flat(study.arms[0].settings.model_dump(mode="json")).items():
        if key not in varying and value is not None:
            table.add_row(Text(key), Text(_shown(value)))
    return table


def _blocks(made: Plan) -> Table:
    """Table of the order: a row for each block or, if arms are kept together, for each sequence of one arm."""
    table = _table("block", "runs in order", title="order of runs")
    if [run.block for run in made.runs] == sorted(run.block for run in made.runs):
        for block, in_block in groupby(made.runs, key=lambda run: run.block):
            table.add_row(str(block), Text(", ".join(run.arm for run in in_block)))
        return table
    for arm, in_sequence in groupby(made.runs, key=lambda run: run.arm):
        blocks = [run.block for run in in_sequence]
        table.add_row(f"{blocks[0]} to {blocks[-1]}", Text(arm))
    return table


def _table(*columns: str, title: str) -> Table:
    table = Table(box=None, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for n, column in enumerate(columns):
        table.add_column(column, no_wrap=n == 0, header_style="dim")
    return table


def _varying(study: Study) -> list[str]:
    """Dotted keys, in order, of the settings that are not the same in every arm."""
    arms = [_flat(arm.settings.model_dump(mode="json")) for arm in study.arms]
    keys = dict.fromkeys(key for arm in arms for key in arm)
    return [key for key in keys if any(arm.get(key) != arms[0].get(key) for arm in arms)]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat["workload.name" if key == "workload_name" else prefix + key] = value
    return flat


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or '""'


def _expectation(made: Plan, expected: PlanEstimate) -> str:
    sets = "1 data set" if expected.data_sets == 1 else f"{expected.data_sets} data sets"
    loading = f"loading {sets} {_duration(expected.load_s)}" if expected.data_sets else "nothing to load"
    block_s = None if expected.block_copy_s is None else expected.block_copy_s + expected.block_run_s
    disk = "unknown" if expected.disk_bytes is None else f"{expected.disk_bytes / 1e9:.1f} GB"
    most = "" if expected.total_s == expected.most_s else f", at most {_duration(expected.most_s)}"
    return (
        f"{_block_count(made.study, expected)}\n"
        f"{_pilot_note(made.study)}"
        f"Estimated time: {_at_most(expected)}{_duration(expected.total_s)}{most} ({loading}, "
        f"a block {_duration(block_s)}; without building images).\n"
        f"{_operations_note(expected)}"
        + (f"Estimated disk: {disk} for loaded data, without images." if expected.data_sets else "No data on disk.")
    )


def _at_most(expected: PlanEstimate) -> str:
    return "at most " if expected.at_most and expected.total_s == expected.most_s else ""


def _operations_note(expected: PlanEstimate) -> str:
    words = "Runs that end after a number of operations are estimated at their full measure_s.\n"
    return words if expected.at_most else ""


def _pilot_note(study: Study) -> str:
    """Line on what the pilot will choose; empty without a pilot."""
    if isinstance(study.protocol, RotateSpec) and study.protocol.turn_ms is None:
        spec, turns_s = study.protocol, pilot_seconds(len(study.arms))
        return (
            f"Turns: a pilot of {turns_s:.0f} s chooses their lengths first. The times below leave it out "
            f"and assume {spec.measured_ms:g} ms after {spec.settling_ms:g} ms.\n"
        )
    if not is_piloted(study.protocol):
        return ""
    pilot_s = float(study.arms[0].settings.workload["measure_s"])
    return (
        f"Measure phase: {pilot_s:g} s in a pilot of {PILOT_BLOCKS} blocks; after it the most efficient length, "
        f"{most_s(study.protocol, pilot_s):g} s at most. The times below assume {pilot_s:g} s for all.\n"
    )


def _block_count(study: Study, expected: PlanEstimate) -> str:
    """Line on the number of blocks, as far as it is known before the machine has shown its noise."""
    blocks, rule = expected.blocks, rule_of(study)
    if rule.target is None:
        return f"Blocks: {blocks.most}, whatever the result."
    fewest = rule.blocks_each * rule.min_blocks
    if blocks.most < fewest:
        cap = "the cap on time" if blocks.most < rule.blocks_each * rule.blocks else "the cap on blocks"
        return (
            f"Blocks: {blocks.most}, by {cap}, fewer than the {fewest} needed before "
            f"\N{PLUS-MINUS SIGN}{100 * (rule.margin or rule.target):g} % is checked."
        )
    until = f"until every interval is within \N{PLUS-MINUS SIGN}{100 * rule.target:g} %"
    if rule.margin is not None:
        until = f"until every arm is shown to be within \N{PLUS-MINUS SIGN}{100 * rule.margin:g} % or outside"
    known = "as calibration found" if expected.calibrated else "which only the runs can show"
    return (
        f"Blocks: {until}, {blocks.fewest} at "
        f"least and {blocks.most} at most; {blocks.expected} if arms differ from block to block by "
        f"{100 * expected.spread:.3g} %, {known}."
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
