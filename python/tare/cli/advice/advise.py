"""`tare advise`: predict whether it is safe to dockerize a benchmark."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tare.cli.advice.dialogue import Asked, asked, asked_where
from tare.cli.advice.knowledge import Folder, every_claim
from tare.errors import StudyError
from tare.knowledge.advice import Advice, advise
from tare.knowledge.advice_text import NOTHING_OPEN, Proposed, lines
from tare.knowledge.advice_tree import as_tree
from tare.knowledge.benchmark import Benchmark, Comparing, benchmark_of
from tare.knowledge.claim import ClaimFile
from tare.knowledge.prior import Prior
from tare.knowledge.smallest import rounds_of, smallest_study, target_of
from tare.one_line import plain
from tare.plan.expand import expand
from tare.sites.facts import host_facts
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.study.catalogue import find_study
from tare.study.model import Study
from tare.study.reading.load import load, loads
from tare.study.registry import installed
from tare.study.suggest import did_you_mean
from tare.traps.met import planned_traps

if TYPE_CHECKING:
    from tare.knowledge.predictions.model_error import ModelError


class Production(StrEnum):
    """How production is deployed."""

    BARE = "bare"
    CONTAINER = "container"
    VM = "vm"
    VM_CONTAINER = "vm-container"
    POD = "pod"


class Place(StrEnum):
    """Where the load generator runs."""

    SAME = "same"
    OTHER = "other"


_COMPARING = f"What the benchmark is to compare: {', '.join(Comparing)}."
_PROFILE = "Predict each arm from the bare runs in this store and this machine's unit costs (`tare weigh`)."
_PRODUCTION = f"How production is deployed: {', '.join(Production)}."


def advise_on(  # noqa: PLR0913, PLR0917 - an option a parameter
    study: Annotated[str | None, typer.Argument(help="A study; without one, a short dialogue asks.")] = None,
    comparing: Annotated[Comparing | None, typer.Option(metavar="WHAT", help=_COMPARING)] = None,
    production: Annotated[Production | None, typer.Option(metavar="HOW", help=_PRODUCTION)] = None,
    gap: Annotated[float | None, typer.Option(min=0, help="Expected difference, a fraction: 0.2 is 20 %.")] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of the study (default: full).")] = None,
    client_host: Annotated[Place | None, typer.Option(help="Host of the load generator (default: same).")] = None,
    storage: Annotated[str | None, typer.Option(help="Where containers keep data (default: bind).")] = None,
    write: Annotated[
        Path | None,
        typer.Option(help="Write the smallest study that would answer the open questions to this file."),
    ] = None,
    decide: Annotated[
        Path | None,
        typer.Option("--try", help="Write a study that settles disputed claims on this machine to this file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002 - an option, given by name
    profile: Annotated[Path | None, typer.Option(metavar="STORE", help=_PROFILE)] = None,
    claims: Folder = None,
) -> None:
    """Predict from published and own findings what each arm costs, and whether that matters. Starts nothing."""
    known = every_claim(claims)
    if gap is not None and not math.isfinite(gap):
        raise typer.BadParameter(f"{gap} is not a difference", param_hint="--gap")
    if study is None:
        _refuse_beside_dialogue(comparing, production, gap, scale, client_host, storage)
        question = asked()
    else:
        loaded = load(find_study(study), installed(), scale)
        host = (client_host or Place.SAME).value
        kind = None if storage is None else _kind(storage, known)
        question = Asked(_completed(benchmark_of(loaded, host, kind), comparing, production, gap), loaded)
    advice = advise(question.benchmark, known)
    if study is None and write is None and decide is None and question.study is not None and _open(advice):
        write = asked_where(f"{question.study.name}.yaml")
    if decide is not None:
        if write is not None:
            raise typer.BadParameter("--write and --try both write a study: give one", param_hint="--try")
        if not advice.disputed:
            raise StudyError(
                "no two claims about these arms contradict each other",
                hint="--write FILE writes the study that would answer the open questions",
            )
    wanted = _open(advice) if decide is None else advice.disputed
    proposed = _proposed(advice, question, wanted, write or decide)
    if as_json:
        traps = [] if question.study is None else [dict(each.tree) for each in planned_traps(question.study)]
        tree = {
            **as_tree(advice, proposed),
            "traps": traps,
            **({} if profile is None else _predicted_tree(profile)),
        }
        text = json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
    else:
        width = Console().width
        predicted = _how_to_predict(width) if profile is None else _predicted_lines(profile, width, advice)
        traps_of = _trap_lines(question.study, width)
        text = "\n".join([*lines(advice, proposed, width), *traps_of, *predicted]) + "\n"
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))


def _trap_lines(study: Study | None, width: int) -> Iterator[str]:
    """Yield the traps that the planned arms meet by their settings alone."""
    if study is None or not (met := planned_traps(study)):
        return
    yield ""
    yield "Traps that arms meet by their settings:"
    wrapped = textwrap.TextWrapper(width, "  ", "    ", break_long_words=False, break_on_hyphens=False)
    for each in met:
        yield from wrapped.wrap(each.sentence)


def _how_to_predict(width: int) -> Iterator[str]:
    """Where this machine's tare has unit costs: how to have predictions from them."""
    if not default_layout().unit_costs.is_dir():
        return
    words = (
        "Unit costs of a machine are known here. With --profile STORE, a store with bare runs, tare also predicts "
        "each arm from them."
    )
    yield ""
    yield from textwrap.wrap(words, width)


def _predicted_tree(profile: Path) -> dict[str, object]:
    from tare.knowledge.predictions.past import past_of  # stores and reports are slow to import
    from tare.knowledge.predictions.prediction_text import prediction_trees

    predicted = past_of(profile, default_layout(), _model_error()).predictions
    return {"predictions": prediction_trees(predicted)} if predicted else {}


def _predicted_lines(profile: Path, width: int, advice: Advice) -> Iterator[str]:
    from tare.knowledge.predictions.past import past_of  # stores and reports are slow to import
    from tare.knowledge.predictions.prediction_text import prediction_lines

    error = _model_error()
    return prediction_lines(past_of(profile, default_layout(), error).predictions, width, error, _priors(advice))


def _model_error() -> ModelError:
    from tare.knowledge.predictions.model_error import ASSUMED, OfEarlierTare, read_error

    try:
        return read_error(default_layout())
    except OfEarlierTare as error:
        typer.echo(str(error), err=True)
        return ASSUMED


def _priors(advice: Advice) -> dict[str, Prior]:
    """Arm → prior of its throughput by the claims."""
    return {each.arm: each.prior for each in advice.forecasts if each.prior and each.metric == "throughput"}


def _refuse_beside_dialogue(*given: object) -> None:
    if any(each is not None for each in given):
        raise StudyError(
            "options about a benchmark need a study", hint="name one, or leave them out: the dialogue asks for them"
        )


def _kind(storage: str, claims: tuple[ClaimFile, ...]) -> str:
    """Accept a storage that tare or a claim knows; any other word would only make claims incomparable."""
    setups = [known.claim.context.arm for known in claims if known.claim.context is not None]
    words = {*installed().storages, *(setup.storage for setup in setups if setup.storage is not None)} - {"none"}
    if storage not in words:
        raise StudyError(
            f"there is no storage {plain(storage)!r}", hint=did_you_mean(storage, words, kind="storages")
        )
    return storage


def _completed(
    benchmark: Benchmark, comparing: Comparing | None, production: Production | None, gap: float | None
) -> Benchmark:
    completed = replace(benchmark, comparing=comparing, gap=gap)
    return completed if production is None else replace(completed, production=production.value)


def _open(advice: Advice) -> tuple[str, ...]:
    """Arms about which a study would tell more than the claims."""
    return advice.not_measured or advice.uncertain


def _proposed(advice: Advice, question: Asked, wanted: tuple[str, ...], write: Path | None) -> Proposed:
    """Smallest study that would tell more about the wanted arms (`--write`, `--try`), if tare can run them."""
    study = question.study
    if not wanted or study is None:
        why = question.why_none if wanted else None
        if write is not None:
            raise StudyError("there is no study to write", hint=why or "there are claims about every arm")
        return NOTHING_OPEN if why is None else Proposed(why_none=why)
    target = target_of(advice)
    spread = _spread()
    blocks = rounds_of(expand(study), target, spread).blocks
    text = smallest_study(study, wanted, installed(), target, blocks)
    rounds = rounds_of(expand(loads(text, installed())), target, spread)
    if write is None:
        return Proposed(rounds)
    try:
        with write.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise StudyError(f"{write} exists already", hint="choose another name") from error
    return Proposed(rounds, str(write))


def _spread() -> float | None:
    """Spread between blocks by this machine's calibration, `None` without one."""
    root = default_layout().calibration
    if not root.is_dir():
        return None
    from tare.calibrate.archive import Archive  # slow to import
    from tare.calibrate.summary import identity_of

    return Archive(root).spread(identity_of(host_facts(LocalHost()), None).machine_key)
