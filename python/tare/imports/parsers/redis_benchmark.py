"""redis-benchmark of Redis 2.8 to 8 and Valkey: text, `-q` and `--csv`. Each test of a call is a run.

Format: `showLatencyReport` of redis-benchmark.c. Before 6.2, it printed the share of requests below a whole
millisecond with the name of the next one, so that those lines give no percentile.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.cutting import stated
from tare.imports.parsers.figures import NUMBER, Figures, Times

_TITLE = re.compile(r"====== (.+) ======\s*$")
_DONE = re.compile(rf" +(\d+) requests completed in {NUMBER} seconds")
_RATE = re.compile(rf" *(?:throughput summary: )?{NUMBER} requests per second\s*$")
_QUIET = re.compile(rf"(.+?): {NUMBER} requests per second(?:, p50={NUMBER} msec)?\s*$")
_RUNNING = re.compile(r"(.+?): rps=[-\d.naif]+ \(overall")
_SUMMARY = re.compile(r" +avg +min +p50 +p95 +p99 +max\s*$")
_HEADING = ("test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms", "p99_latency_ms")
_ROW = re.compile(r'"[^"]*","\d+\.\d+"(?:,"[^"]*")*\s*$')
_FAILED = re.compile(r"(?:Error from server|ERROR|All clients disconnected|Could not connect|.*Connection refused)")
_SAYS: Mapping[str, re.Pattern[str]] = {
    "requests": re.compile(r" +(\d+) requests completed in"),
    "clients": re.compile(r" +(\d+) parallel clients"),
    "payload": re.compile(r" +(\d+) bytes payload"),
    "keep-alive": re.compile(r" +keep alive: (\d)"),
    "threads": re.compile(r" +threads: (\d+)"),
}
_TICK_S = 0.25
"""With `--threads`, only a timer of this period sees the end of a test."""
_COARSE = 0.01


@dataclass
class _Block:
    """Lines of one test. `quiet`: its line of `-q`; `state`: how far it came, which its end replaces."""

    title: str
    first: int
    lines: list[str]
    quiet: bool = False
    state: bool = False


class RedisBenchmark:
    """Reports of redis-benchmark."""

    title: ClassVar[str] = "redis-benchmark of Redis 2.8 to 8 and Valkey"
    says: ClassVar[tuple[str, ...]] = ("test", *_SAYS)

    def recognises(self, text: str) -> bool:
        """A title with its count of requests, a line of `-q`, or a table of its tests."""
        if "requests completed in" in text and "======" in text:
            return True
        if " requests per second" in text or ": rps=" in text:
            return any(_QUIET.match(line) or _RUNNING.match(line) for line in _lines(text))
        return _is_table(text[:1000].split("\n"))

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:  # noqa: ARG002 - it counts no errors
        """Each test of the file."""
        lines = _lines(text)
        if failed := next((line for line in lines if _FAILED.match(line)), None):
            yield Report(None, f"redis-benchmark: {failed.strip()[:200]}", text=text)
        elif _is_table(lines):
            yield from _table(lines)
        else:
            yield from _tests(lines)


def _lines(text: str) -> list[str]:
    """Lines as a terminal shows them: each state of a running test overwrites the one before."""
    return [next((each for each in reversed(line.split("\r")) if each.strip()), "") for line in text.split("\n")]


def _is_table(lines: Sequence[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return first.startswith('"test","rps"') or _ROW.match(first) is not None


def _table(lines: Sequence[str]) -> Iterator[Report]:
    columns: Sequence[str] = ("test", "rps")
    for number, line in enumerate(lines, start=1):
        cells = next(csv.reader([line]), [])
        if tuple(cells[:2]) == _HEADING[:2]:
            columns = cells
        elif cells:
            says = {"test": cells[0]}
            try:
                figures = _row(columns, cells)
            except (RunFailed, ValueError) as error:
                yield Report(None, f"no line of redis-benchmark's table: {error}", says, number, line)
            else:
                yield Report(figures.measurement(), None, says, number, line, ("errors-uncounted",))


def _row(columns: Sequence[str], row: Sequence[str]) -> Figures:
    if len(row) != len(columns):
        raise RunFailed("it has another number of cells than the heading")
    cells = dict(zip(columns, row, strict=True))
    rate = float(cells["rps"])
    if rate <= 0:
        raise RunFailed("no request a second")

    def figure(name: str) -> float | None:
        return float(cells[f"{name}_latency_ms"]) if f"{name}_latency_ms" in cells else None

    times = Times(
        figure("avg"), figure("min"), figure("max"), figure("p50"), figure("p95"), figure("p99"), blind=True
    )
    return Figures(rate, times, unit="requests", errors=None)


def _tests(lines: Sequence[str]) -> Iterator[Report]:
    """Yield each test: lines below its title, or its line of `-q`."""
    blocks: list[_Block] = []
    for number, line in enumerate(lines, start=1):
        title, quiet, state = _TITLE.match(line), _QUIET.match(line), _RUNNING.match(line)
        if title:
            blocks.append(_Block(title.group(1), number, [line]))
        elif quiet and _RATE.match(line) is None:
            blocks.append(_Block(quiet.group(1).strip(), number, [line], quiet=True))
        elif state:
            blocks.append(_Block(state.group(1).strip(), number, [line], state=True))
        elif blocks:
            blocks[-1].lines.append(line)
    titles = [block.title for block in blocks[1:]]
    whole = [block for n, block in enumerate(blocks) if not block.state or titles[n : n + 1] != [block.title]]
    if not whole:
        yield Report(None, "it has no report of redis-benchmark", text="\n".join(lines))
    for block in whole:
        text = "\n".join(block.lines)
        says = {"test": block.title, **stated(block.lines, _SAYS)}
        if block.state:
            yield Report(None, "the test did not end", says, block.first, text)
            continue
        try:
            figures = _quiet(block) if block.quiet else _figures(block)
        except RunFailed as error:
            yield Report(None, str(error), says, block.first, text)
            continue
        coarse = "threads" in says and (figures.duration_s or 0.0) * _COARSE < _TICK_S
        distortions = ("errors-uncounted", *(("quarter-seconds",) if coarse else ()))
        yield Report(figures.measurement(), None, says, block.first, text, distortions)


def _quiet(block: _Block) -> Figures:
    match = _QUIET.match(block.lines[0])
    rate = float(match.group(2)) if match else 0.0
    if match is None or rate <= 0:
        raise RunFailed("no request a second")
    p50 = match.group(3)
    return Figures(rate, Times(p50=float(p50) if p50 else None, blind=True), unit="requests", errors=None)


def _figures(block: _Block) -> Figures:
    done = next((match for line in block.lines if (match := _DONE.match(line))), None)
    rate = next((float(match.group(1)) for line in block.lines if (match := _RATE.match(line))), None)
    if done is None or rate is None:
        raise RunFailed("redis-benchmark's report is cut short: it has no rate")
    count, seconds = int(done.group(1)), float(done.group(2))
    if rate <= 0 or count == 0:
        raise RunFailed("no request a second")
    heading = next((n for n, line in enumerate(block.lines) if _SUMMARY.match(line)), None)
    times = Times(blind=True)
    if heading is not None:
        cells = "".join(block.lines[heading + 1 : heading + 2]).split()
        try:
            avg, least, p50, p95, p99, most = (float(cell) for cell in cells)
        except ValueError as error:
            raise RunFailed("redis-benchmark's latency summary is cut short") from error
        times = Times(avg, least, most, p50, p95, p99, blind=True)
    return Figures(rate, times, unit="requests", operations=count, duration_s=seconds, errors=None)
