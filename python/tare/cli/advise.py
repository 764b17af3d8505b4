"""`tare advise`: whether it is safe to dockerize a benchmark."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tare.calibrate.archive import Archive
from tare.calibrate.machine import identity_of
from tare.cli.asking import asked
from tare.cli.knowledge import Folder, every_claim
from tare.errors import StudyError
from tare.knowledge.advice import Advice, advise
from tare.knowledge.advice_text import as_tree, lines
from tare.knowledge.benchmark import Benchmark, Comparing, benchmark_of
from tare.knowledge.rounds import Rounds, calibrated_spread, rounds_of, target_of
from tare.knowledge.smallest import smallest_study
from tare.plan.expand import expand
from tare.sites.facts import host_facts
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.study.catalogue import find_study
from tare.study.load import load, loads
from tare.study.model import Study
from tare.study.registry import installed


class Production(StrEnum):
    """How production is deployed."""

    BARE = "bare"
    CONTAINER = "container"
    VM = "vm"
    VM_CONTAINER = "vm-container"


class Place(StrEnum):
    """Where the load generator runs."""

    SAME = "same"
    OTHER = "other"


_COMPARING = f"What the benchmark is to compare: {', '.join(Comparing)}."
_PRODUCTION = f"How production is deployed: {', '.join(Production)}."


def advise_on(  # noqa: PLR0913, PLR0917 - an option a parameter
    study: Annotated[str | None, typer.Argument(help="A study; without one, a short dialogue asks.")] = None,
    comparing: Annotated[Comparing | None, typer.Option(metavar="WHAT", help=_COMPARING)] = None,
    production: Annotated[Production | None, typer.Option(metavar="HOW", help=_PRODUCTION)] = None,
    gap: Annotated[float | None, typer.Option(min=0, help="Expected difference, a fraction: 0.2 is 20 %.")] = None,
    scale: Annotated[str | None, typer.Option(help="One of the study's scales (default: full).")] = None,
    client_host: Annotated[Place, typer.Option(help="Host of the load generator.")] = Place.SAME,
    storage: Annotated[str | None, typer.Option(help="Where containers keep data (default: bind).")] = None,
    write: Annotated[Path | None, typer.Option(help="File for the smallest study that would tell more.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002
    claims: Folder = None,
) -> None:
    """Say what published and own findings let one expect, purpose by purpose and arm by arm. Starts nothing."""
    known = every_claim(claims)
    if study is None:
        benchmark, loaded = asked()
    else:
        loaded = load(find_study(study), installed(), scale)
        benchmark = _told(benchmark_of(loaded, client_host.value, storage), comparing, production, gap)
    advice = advise(benchmark, known)
    rounds, file = _more(advice, loaded, write)
    if as_json:
        text = json.dumps(as_tree(advice, rounds, file), indent=2, ensure_ascii=False) + "\n"
    else:
        text = "\n".join(lines(advice, rounds, file, Console().width)) + "\n"
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


def _told(
    benchmark: Benchmark, comparing: Comparing | None, production: Production | None, gap: float | None
) -> Benchmark:
    told = replace(benchmark, comparing=comparing, gap=gap)
    return told if production is None else replace(told, production=production.value)


def _more(advice: Advice, study: Study | None, write: Path | None) -> tuple[Rounds | None, str | None]:
    """Rounds, and the file of the smallest study (`--write`), where tare can run the arms."""
    wanted = advice.unknown or advice.uncertain
    if not wanted or study is None:
        if write is not None:
            raise StudyError("there is no study to write", hint="every arm is known, or tare cannot run the arms")
        return None, None
    target = target_of(advice)
    spread = _spread()
    blocks = rounds_of(expand(study), target, spread).blocks
    text = smallest_study(study, wanted, installed(), target, blocks)
    rounds = rounds_of(expand(loads(text, installed())), target, spread)
    if write is None:
        return rounds, "give --write FILE"
    try:
        with write.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise StudyError(f"{write} exists already", hint="choose another name") from error
    return rounds, str(write)


def _spread() -> float | None:
    """As this machine's calibration has it; the machine is looked at only where there is any calibration."""
    root = default_layout().calibration
    if not root.is_dir():
        return None
    return calibrated_spread(Archive(root), identity_of(host_facts(LocalHost()), None).machine_key)
