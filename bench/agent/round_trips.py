"""Where a run between two test hosts waits for their agents: calls and round trips by phase.

    python -m bench.agent.round_trips [--each] [--markdown FILE]      # root

The study of `bench.agent.own_time`, two runs on one machine and two between two hosts, in this process. Calls
that are under way together are one turn: turns are what a wire's round trip is paid for. But for what is asked
until something is ready, the counts do not depend on how busy the machine is; the seconds do.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from bench.tables import show
from tare.cli import app
from tare.run.attempt.pace import Stopwatch
from tare.run.record import Phase
from tare.sites.local import LocalHost
from tare.sites.ssh.link import Link
from tools import hosts
from tools.cut_pair import STUDY

_METHODS = ("run", "start", "put", "get", "read")
_UNCOUNTED = frozenset({Phase.WARM_UP, Phase.MEASURE})
"""These last as long as the workload does, and clients are looked at all the while."""


@dataclass(frozen=True)
class Call:
    """One request to a host. Seconds by one clock."""

    host: str
    what: str
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Stretch:
    """One phase of one run."""

    phase: Phase
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Row:
    """Of one phase, medians over runs. `turns`: stretches of time in which at least one call was under way."""

    phase: Phase
    seconds: float
    calls: float
    turns: float
    waited_s: float


@dataclass
class Seen:
    """Calls and phases as they end."""

    calls: list[Call] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)


def turns(calls: Sequence[Call]) -> list[tuple[float, float]]:
    """Began and ended, of calls that overlap as one."""
    merged: list[tuple[float, float]] = []
    for call in sorted(calls, key=lambda each: each.began_s):
        if merged and call.began_s < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], call.ended_s))
        else:
            merged.append((call.began_s, call.ended_s))
    return merged


def rows(seen: Seen) -> list[Row]:
    """A row a phase, in their order."""
    return [_row(phase, seen) for phase in Phase if any(each.phase is phase for each in seen.stretches)]


def _row(phase: Phase, seen: Seen) -> Row:
    stretches = [each for each in seen.stretches if each.phase is phase]
    within = [[call for call in seen.calls if each.began_s <= call.began_s < each.ended_s] for each in stretches]
    merged = [turns(calls) for calls in within]
    return Row(
        phase,
        median(each.ended_s - each.began_s for each in stretches),
        median(len(calls) for calls in within),
        median(len(each) for each in merged),
        median(sum(ended - began for began, ended in each) for each in merged),
    )


def table(alone: Sequence[Row], between: Sequence[Row]) -> str:
    """For people, and for the journal."""
    of_one = {row.phase: row for row in alone}
    lines = [
        f"| {row.phase.value} | {of_one[row.phase].seconds:.2f} | {of_one[row.phase].calls:.0f} "
        f"| {row.seconds:.2f} | {row.calls:.0f} | {row.turns:.0f} | {row.waited_s:.2f} |"
        for row in between
        if row.phase in of_one
    ]
    own = [row for row in between if row.phase not in _UNCOUNTED]
    sums = f"{sum(row.calls for row in own):.0f} calls in {sum(row.turns for row in own):.0f} turns"
    head = (
        "| phase | one machine, s | its calls | two hosts, s | calls | turns | of that waiting, s |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + f"\n\nBeside warm-up and measurement: {sums}\n"


@contextlib.contextmanager
def watched(seen: Seen) -> Iterator[None]:
    """Note every call of a host and every phase while this lasts."""
    ask, phase = Link.ask, Stopwatch.phase

    def asked(link: Link, op: str, *words: Any, **fields: Any) -> Any:
        with _noted(seen, link.name, f"{op} {_about(fields)}"):
            return ask(link, op, *words, **fields)

    @contextlib.contextmanager
    def timed(watch: Stopwatch, name: Phase, expected_s: float | None = None) -> Iterator[None]:
        began = time.monotonic()
        with phase(watch, name, expected_s):
            yield
        seen.stretches.append(Stretch(name, began, time.monotonic()))

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(Link, "ask", asked))
        stack.enter_context(patch.object(Stopwatch, "phase", timed))
        for name in _METHODS:
            stack.enter_context(patch.object(LocalHost, name, _local(seen, name, getattr(LocalHost, name))))
        yield


def _local(seen: Seen, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def called(host: LocalHost, what: Any, *words: Any, **fields: Any) -> Any:
        with _noted(seen, host.name, f"{name} {what if isinstance(what, str) else ''}"):
            return method(host, what, *words, **fields)

    return called


@contextlib.contextmanager
def _noted(seen: Seen, host: str, what: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        seen.calls.append(Call(host, what, began, time.monotonic()))


def _about(fields: dict[str, Any]) -> str:
    if "argv" in fields:
        return " ".join(fields["argv"])[:100]
    if "paths" in fields:
        return f"{len(fields['paths'])} files"
    return str(fields.get("path", fields.get("ident", "")))


def _runs(place: Path, sites: Path | None) -> Seen:
    study = place / "study.yaml"
    study.write_text(STUDY if sites is not None else STUDY.replace(", own_host: true", ""))
    store = Path(tempfile.mkdtemp(dir=place)) / "store"
    words = ["run", str(study), "--blocks", "1", "--store", str(store), "--quiet"]
    seen = Seen()
    with watched(seen), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        app([*words, *(["--sites", str(sites)] if sites is not None else [])], standalone_mode=False)
    return seen


def _listed(seen: Seen) -> Iterator[str]:
    """Every call of the last run, in order, then how often each host was asked for what in it."""
    last = next(
        place for place in reversed(range(len(seen.stretches))) if seen.stretches[place].phase is Phase.PROVISION
    )
    counts: Counter[str] = Counter()
    for stretch in seen.stretches[last:]:
        yield f"{stretch.phase.value}: {stretch.ended_s - stretch.began_s:.3f} s"
        if stretch.phase in _UNCOUNTED:
            continue
        for call in sorted(seen.calls, key=lambda each: each.began_s):
            if stretch.began_s <= call.began_s < stretch.ended_s:
                counts[" ".join(call.what.split()[:2])] += 1
                at_ms, took_ms = (
                    1e3 * seconds for seconds in (call.began_s - stretch.began_s, call.ended_s - call.began_s)
                )
                yield f"  {at_ms:8.1f} {took_ms:7.2f} ms {call.host} {call.what}"


def main(words: Sequence[str] | None = None) -> None:
    """Count, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="list every call of the last run between the hosts")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="tare-bench-round-trips-") as place, hosts.made(2) as pair:
        sites = pair[0].lab.sites
        _runs(Path(place), None)  # images are made and are on both hosts, data are loaded
        _runs(Path(place), sites)
        alone, between = _runs(Path(place), None), _runs(Path(place), sites)
    if given.each:
        sys.stdout.writelines(f"{line}\n" for line in _listed(between))
    shown = table(rows(alone), rows(between))
    show(shown, given.markdown)


if __name__ == "__main__":
    main()
