"""The subcommands: what `tare --help` says of each, and its module, which is imported only when it is called.

Some take seconds to import (an engine's client, pandas, statistics), and `tare --help` should not wait for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, cast

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from tare.cli.examples import EXAMPLES
from tare.interruptible import ended_by_ctrl_c


@dataclass(frozen=True)
class Subcommand:
    """A subcommand, by module and attribute: a function, or a `typer.Typer` with subcommands of its own.

    `group`: its heading in `tare --help`. `summary`: the first paragraph of its own help; a test checks that both
    are equal.
    """

    group: str
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
        command = cast("TyperGroup", typer.main.get_command(holder)).commands[name]
        _write_help(name, command)
        for below, each in getattr(command, "commands", {}).items():
            _write_help(f"{name} {below}", each)
        return command


def _write_help(name: str, command: Any) -> None:
    """Fold paragraphs to the terminal's width, show types only where they tell something, and add examples."""
    if command.help:
        command.help = "\n\n".join(map(_folded, inspect.cleandoc(command.help).split("\n\n")))
    if name in EXAMPLES:
        # A blank line ends a line of an epilog; what is escaped is no markup.
        command.epilog = "\n\n".join(["For example:", *map(escape, EXAMPLES[name])])
    for parameter in command.params:
        parameter.display_type_rich = partial(_shown_type, parameter.display_type_rich)


def _shown_type(of_typer: Callable[..., str | None], ctx: Any) -> str | None:
    shown = of_typer(ctx)
    return _TYPES.get(shown, shown) if shown is not None else None


_TYPES: Mapping[str, str | None] = {
    "<bool>": None,
    "<StorePlace>": "<path or URL>",
    "<list[StorePlace]>": "<path or URL>",
}


def _folded(paragraph: str) -> str:
    lines = paragraph.splitlines()
    return paragraph if any(line.startswith((" ", "- ", "* ")) for line in lines) else " ".join(lines)


def _nothing() -> None:
    """Do nothing; with a callback, typer builds a group even for a single command."""


PREPARE, MEASURE, READ, KEEP, ALONE = (
    "Prepare a study",
    "Measure",
    "Read results",
    "Keep data and knowledge",
    "Tools that need no study",
)

# By group, in the order in which users need them.
COMMANDS: Mapping[str, Subcommand] = {
    "doctor": Subcommand(
        PREPARE,
        "tare.cli.machine.doctor",
        "doctor",
        "Check what this machine can and cannot do, and how to fix it (exit code 3: no study can run).",
    ),
    "init": Subcommand(
        PREPARE, "tare.cli.study.init", "init", "Write NAME/study.yaml, a commented study to adapt."
    ),
    "plan": Subcommand(
        PREPARE,
        "tare.cli.study.plan",
        "plan",
        "Show time, disk, arms and traps of a study, and what is missing here to run it. Starts nothing.",
    ),
    "advise": Subcommand(
        PREPARE,
        "tare.cli.advice.advise",
        "advise_on",
        "Predict from published and own findings what each arm costs, and whether that matters. Starts nothing.",
    ),
    "sites": Subcommand(PREPARE, "tare.cli.machine.sites", "app", "Make, list and destroy machines from a cloud."),
    "run": Subcommand(
        MEASURE,
        "tare.cli.study.run",
        "run",
        "Run a study, or resume an interrupted one; every finished run is kept.",
    ),
    "serve": Subcommand(
        MEASURE,
        "tare.cli.study.serve",
        "serve",
        "Show a store live in the browser, read-only: plan, phase, figures, intervals, log.",
    ),
    "sweep": Subcommand(
        MEASURE,
        "tare.cli.study.sweep",
        "sweep",
        "Increase threads on one arm until it saturates; find the threads that reach two thirds of full load.",
    ),
    "weigh": Subcommand(
        MEASURE,
        "tare.cli.study.weigh",
        "weigh",
        "Measure what a request costs on each network path of this machine, without a database.",
    ),
    "calibrate": Subcommand(
        MEASURE,
        "tare.cli.study.calibrate",
        "calibrate_machine",
        "Test this machine, or two hosts (--sites), with identical servers and known effects.",
    ),
    "worker": Subcommand(
        MEASURE,
        "tare.cli.machine.worker",
        "worker",
        "Run blocks on one site for `tare run --scheduler`, as a Dask worker.",
    ),
    "report": Subcommand(
        READ, "tare.cli.results.report", "report", "Show the overhead of each arm against the baseline."
    ),
    "check": Subcommand(
        READ,
        "tare.cli.results.check",
        "check",
        "Check that the overhead of each arm, with its interval, is within a limit.",
    ),
    "explain": Subcommand(
        READ,
        "tare.cli.results.explain",
        "explain",
        "Show where CPU time goes in each arm, by component, and what makes up its overhead.",
    ),
    "compare": Subcommand(
        READ,
        "tare.cli.results.compare",
        "compare",
        "Show what changed between two stores of one study: other days, machines or versions.",
    ),
    "trend": Subcommand(
        READ,
        "tare.cli.results.trend",
        "trend",
        "Show the overheads of many stores of one study in time, and where they changed.",
    ),
    "views": Subcommand(
        READ,
        "tare.cli.results.views",
        "views",
        "Show what docker stats, mpstat and others would have printed for a run, and why they differ.",
    ),
    "import": Subcommand(
        KEEP,
        "tare.cli.results.importing",
        "import_results",
        "Import results measured elsewhere, so that `tare report` can analyse them.",
    ),
    "store": Subcommand(
        KEEP, "tare.cli.results.store", "app", "Verify a store against its digests, copy it, or repair it."
    ),
    "knowledge": Subcommand(
        KEEP,
        "tare.cli.advice.knowledge",
        "app",
        "List, show and add claims about what dockerizing costs.",
    ),
    "site": Subcommand(
        KEEP,
        "tare.cli.advice.site",
        "site",
        "Write stores, claims, traps and unit costs as a static site to explore: answers first.",
    ),
    "images": Subcommand(KEEP, "tare.cli.machine.images", "app", "List, build, verify and remove images."),
    "clean": Subcommand(
        KEEP,
        "tare.cli.machine.clean",
        "clean",
        "Remove what tare made on this machine: containers, networks, cgroups, processes, copies, caches.",
    ),
    "inspect": Subcommand(
        ALONE,
        "tare.cli.machine.inspect",
        "inspect",
        "Look at a running database, and name each known trap that it meets, with evidence, cost and remedy.",
    ),
    "load": Subcommand(
        ALONE,
        "tare.cli.machine.load",
        "load",
        "Generate load for a database, closed or open loop, and measure each reply: runs tare-load.",
        {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    ),
    "probe": Subcommand(
        ALONE,
        "tare.cli.machine.probe",
        "probe",
        "Record, show, export or serve (`--prometheus :PORT`) the kernel's counters: runs tare-probe.",
        # tare-probe parses all further arguments, `--help` too.
        {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    ),
}


class LazyGroup(TyperGroup):
    """Lists `COMMANDS` by their summaries, and loads a command only when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        listed = {
            name: TyperCommand(name, help=each.summary, rich_help_panel=each.group)
            for name, each in COMMANDS.items()
        }
        self.commands = {**listed, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command as typer does, then load it."""
        called, listed, rest = super().resolve_command(ctx, args)
        if called is None or called not in COMMANDS:
            return called, listed, rest
        with ended_by_ctrl_c():
            return called, COMMANDS[called].load(called), rest
