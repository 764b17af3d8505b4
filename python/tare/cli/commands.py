"""The subcommands: what `tare --help` says of each, and its module, which is imported only when it is called.

Some take seconds to import (an engine's client, pandas, statistics), and `tare --help` should not wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from tare.interruptible import ended_by_ctrl_c


@dataclass(frozen=True)
class Subcommand:
    """A subcommand, by module and attribute: a function, or a `typer.Typer` with subcommands of its own.

    `summary`: the first paragraph of its own help; a test checks that both are equal.
    """

    module: str
    attribute: str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """Import the subcommand and build its typer command."""
        holder = typer.Typer(add_completion=False)
        target = getattr(import_module(self.module), self.attribute)
        if isinstance(target, typer.Typer):
            holder.add_typer(target, name=name)
        else:
            holder.command(name, context_settings=dict(self.settings))(target)
        holder.callback()(_nothing)
        return cast("TyperGroup", typer.main.get_command(holder)).commands[name]


def _nothing() -> None:
    """Do nothing; with a callback, typer builds a group even for a single command."""


# In the order in which users need them.
COMMANDS: Mapping[str, Subcommand] = {
    "doctor": Subcommand(
        "tare.cli.machine.doctor",
        "doctor",
        "Check what this machine can and cannot do, and how to fix it (exit code 3: no study can run).",
    ),
    "inspect": Subcommand(
        "tare.cli.machine.inspect",
        "inspect",
        "Look at a running database, and name each known trap that it meets, with evidence, cost and remedy.",
    ),
    "sites": Subcommand("tare.cli.machine.sites", "app", "Make, list and destroy machines from a cloud."),
    "init": Subcommand("tare.cli.study.init", "init", "Write NAME/study.yaml, a commented study to adapt."),
    "plan": Subcommand(
        "tare.cli.study.plan",
        "plan",
        "Show arms, blocks, order of runs, estimated time and disk, and what is missing here. Starts nothing.",
    ),
    "run": Subcommand(
        "tare.cli.study.run",
        "run",
        "Run a study, or resume an interrupted one; every finished run is kept.",
    ),
    "worker": Subcommand(
        "tare.cli.machine.worker",
        "worker",
        "Run blocks on one site for `tare run --scheduler`, as a Dask worker.",
    ),
    "serve": Subcommand(
        "tare.cli.study.serve",
        "serve",
        "Show a store live in the browser, read-only: plan, phase, figures, intervals, log.",
    ),
    "sweep": Subcommand(
        "tare.cli.study.sweep",
        "sweep",
        "Run one arm with more and more threads; find full load, and the threads that reach two thirds of it.",
    ),
    "report": Subcommand(
        "tare.cli.results.report", "report", "Show the overhead of each arm against the baseline."
    ),
    "explain": Subcommand(
        "tare.cli.results.explain",
        "explain",
        "Show where CPU time goes in each arm, by component, and what makes up its overhead.",
    ),
    "compare": Subcommand(
        "tare.cli.results.compare",
        "compare",
        "Show what changed between two stores of one study: other days, machines or versions.",
    ),
    "check": Subcommand(
        "tare.cli.results.check",
        "check",
        "Check that the overhead of each arm, with its interval, is within a limit.",
    ),
    "views": Subcommand(
        "tare.cli.results.views",
        "views",
        "Show what docker stats, mpstat and others would have printed for a run, and why they differ.",
    ),
    "probe": Subcommand(
        "tare.cli.machine.probe",
        "probe",
        "Record, show, export or serve (`--prometheus :PORT`) the kernel's counters: runs tare-probe.",
        # tare-probe parses all further arguments, `--help` too.
        {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    ),
    "load": Subcommand(
        "tare.cli.machine.load",
        "load",
        "Generate load for a database, closed or open loop, and measure each reply: runs tare-load.",
        {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    ),
    "import": Subcommand(
        "tare.cli.results.importing",
        "import_results",
        "Import results measured elsewhere, so that `tare report` can analyse them.",
    ),
    "advise": Subcommand(
        "tare.cli.advice.advise",
        "advise_on",
        "Predict from published and own findings what each arm costs, and whether that matters. Starts nothing.",
    ),
    "knowledge": Subcommand(
        "tare.cli.advice.knowledge",
        "app",
        "List, show and add claims about what dockerizing costs.",
    ),
    "weigh": Subcommand(
        "tare.cli.study.weigh",
        "weigh",
        "Measure what a request costs on each network path of this machine, without a database.",
    ),
    "calibrate": Subcommand(
        "tare.cli.study.calibrate",
        "calibrate_machine",
        "Test this machine, or two hosts (--sites), with identical servers and known effects.",
    ),
    "store": Subcommand(
        "tare.cli.results.store", "app", "Verify a store against its digests, copy it, or repair it."
    ),
    "images": Subcommand("tare.cli.machine.images", "app", "List, build, verify and remove images."),
    "clean": Subcommand(
        "tare.cli.machine.clean",
        "clean",
        "Remove what tare made on this machine: containers, networks, cgroups, processes, copies, caches.",
    ),
}


class LazyGroup(TyperGroup):
    """Lists `COMMANDS` by their summaries, and loads a command only when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        listed = {name: TyperCommand(name, help=each.summary) for name, each in COMMANDS.items()}
        self.commands = {**listed, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command as typer does, then load it."""
        called, listed, rest = super().resolve_command(ctx, args)
        if called is None or called not in COMMANDS:
            return called, listed, rest
        with ended_by_ctrl_c():
            return called, COMMANDS[called].load(called), rest
