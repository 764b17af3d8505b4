"""`tare check`: check that overhead is within a limit, for continuous integration."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.own_terminal import own_terminal
from tare.errors import StudyError
from tare.store_place import StorePlace, parse_store_url

if TYPE_CHECKING:
    from tare.study.model import Study

INCONCLUSIVE = 4
"""Exit code of a check that the intervals leave open."""
TOO_NOISY = 6
"""Exit code of a check whose study could hide a bias larger than the limit."""
EXIT_CODES: Mapping[str, int] = {"pass": 0, "fail": 1, "inconclusive": INCONCLUSIVE, "too-noisy": TOO_NOISY}
"""Outcome → exit code."""


class Open(StrEnum):
    """Outcome of an inconclusive check."""

    FAIL = "fail"
    PASS = "pass"  # noqa: S105 - no password


def check(  # noqa: PLR0913, PLR0917 - one argument an option
    store: Annotated[
        StorePlace, typer.Argument(parser=parse_store_url, metavar="STORE", help="Store of a finished study.")
    ],
    max_overhead: Annotated[
        str | None, typer.Option(help="Highest overhead allowed: 5%, or 0.05 (default: the study's own limits).")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric to check (default: throughput, or all with a limit in the study); repeatable."),
    ] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only this arm; repeatable.")] = None,
    inconclusive: Annotated[
        Open, typer.Option(help="What to do if an interval contains the limit: fail (exit code 4) or pass.")
    ] = Open.FAIL,
    junit: Annotated[Path | None, typer.Option(help="File for a JUnit XML report.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for a summary in Markdown.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,  # noqa: FBT002 - typer's way
) -> None:
    """Check that the overhead of each arm, with its interval, is within a limit.

    Exit code 0: all intervals lie within the limit. 1: one lies beyond it, or the study is invalid. 4: neither is
    certain. 6: the study is too noisy to decide: its control could hide more than the limit, or something else than
    the server was measured.
    """
    most = None if max_overhead is None else limit(max_overhead)
    from tare.analyze.overhead_limit import Outcome  # scipy is slow to import
    from tare.cli.study.running import unfinished
    from tare.report.check import json_file, terminal
    from tare.report.check import markdown as summary
    from tare.report.check.content import CheckRequest, build_check
    from tare.report.write import refuse_place, write
    from tare.store import open_store

    refuse_place(junit)
    refuse_place(markdown)
    opened = open_store(store)
    plan, records = opened.plan, opened.records()
    limits = _limits(plan.study, most, _once(metric))
    asked = CheckRequest(limits, _once(arm), lenient=inconclusive is Open.PASS)
    why_open = unfinished(plan, records)
    result = build_check(plan.study, records, asked, why_open)
    if junit is not None:
        from tare.report.check import junit as xml

        write(xml.render(result), junit)
    if markdown is not None:
        write(summary.render(result), markdown)
    if as_json:
        text = json_file.render(build_check(plan.study, records, asked, why_open, for_people=False))
    else:
        text = terminal.render(result, **own_terminal())
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    accepted = result.outcome is Outcome.INCONCLUSIVE and result.lenient
    if not accepted and (code := EXIT_CODES[result.outcome.value]):
        raise typer.Exit(code)


def _limits(study: Study, most: float | None, metrics: tuple[str, ...]) -> Mapping[str, float]:
    """Metric → limit: the option's for the metrics in question, else the study's own."""
    if most is not None:
        return dict.fromkeys(metrics or ("throughput",), most)
    own = study.max_overhead
    missing = [name for name in metrics if name not in own]
    if not own or missing:
        what = f"the study has no limit for {missing[0][:60]!r}" if missing else "there is no limit to check"
        raise StudyError(what, hint="give --max-overhead 5%, or `max_overhead: {throughput: 0.05}` in the study")
    return {name: own[name] for name in metrics or own}


def limit(text: str, option: str = "--max-overhead") -> float:
    """Parse `5%` or `0.05` as a fraction. Raises `StudyError` for anything implausible, such as a bare `5`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match and match[2] else 1) if match else math.nan
    if match is None or (value >= 1 and not match[2]):
        raise StudyError(f"{option} {text[:40]!r} is not a limit", hint="give 5%, or 0.05 for the same")
    return value


def _once(names: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names or ()))
