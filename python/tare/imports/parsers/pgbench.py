"""pgbench of PostgreSQL 8.4 to 18: its final report with the lines of `-P`, and the logs of `--log`.

Formats: `printResults`, `printProgressReport`, `doLog` and `logAgg` of pgbench.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.cutting import Part, Stage, cut, report_of, stated
from tare.imports.parsers.figures import NUMBER, Figures, Kind, Times
from tare.imports.parsers.pgbench_log import is_log, log_report
from tare.record.measurement import Window

_STAGES = (
    Stage(re.compile(r"pgbench(?:\.exe)? \(")),
    Stage(re.compile(r"starting vacuum")),
    Stage(re.compile(r"progress: "), once=False),
    Stage(re.compile(r"transaction type: ")),
    Stage(re.compile(r"number of transactions actually processed: ")),
    Stage(re.compile(r"tps = "), once=False),
    Stage(re.compile(r"(?:SQL script \d+: | - |statement latencies)"), once=False),
)
_RAN = {2, 3, 4, 5}
_SAYS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "version": r"pgbench(?:\.exe)? \((?:PostgreSQL\) )?(\d[\w.]*)",
        "script": r"transaction type: (.+)",
        "scale": r"scaling factor: (\d+)",
        "mode": r"query mode: (\S+)",
        "clients": r"number of clients: (\d+)",
        "jobs": r"number of threads: (\d+)",
        "duration": r"duration: (\d+) s",
        "transactions": r"number of transactions per client: (\d+)",
    }.items()
}
_SHARE = r"(?: \([\d.naNI-]+ ?%\))?"
_LINES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "count": r"number of transactions actually processed: (\d+)(?:/\d+)?",
        "failed": rf"number of failed transactions: (\d+){_SHARE}",
        "skipped": rf"number of transactions skipped: (\d+){_SHARE}",
        "mean": rf"latency average(?: =|:) {NUMBER} ms",
        "lag": rf"rate limit schedule lag: avg {NUMBER} \(max {NUMBER}\) ms",
        "inclusive": rf"tps = {NUMBER} \(including (?:connections establishing|reconnection times)\)",
        "exclusive": rf"tps = {NUMBER} \((?:excluding connections establishing|without initial connection time)\)",
    }.items()
}
_ABORTED = re.compile(
    r"(?:pgbench: )?(?:(?:error|fatal): )?(?i:client) \d+ (?:script \d+ )?aborted|.*[Rr]un was aborted"
)
_PROGRESS = re.compile(
    rf"progress: {NUMBER} s, {NUMBER} tps, lat (?:{NUMBER}|NaN|-nan|nan) ms(?: stddev \S+)?(?:, (\d+) failed)?"
)
_SCRIPT = re.compile(r"SQL script \d+: (?:<builtin: )?(.+?)>?$")
_SCRIPT_COUNT = re.compile(r" - (\d+) transactions \(")
_SCRIPT_MEAN = re.compile(rf" - latency average = {NUMBER} ms")
_EPOCH_S = 1e8
"""Progress lines count from the start, or with `--progress-timestamp` from 1970."""


class Pgbench:
    """Reports and logs of pgbench."""

    title: ClassVar[str] = "pgbench of PostgreSQL 8.4 to 18"
    says: ClassVar[tuple[str, ...]] = (*_SAYS, "log")

    def recognises(self, text: str) -> bool:
        """Lines that only pgbench prints, or a log."""
        known = ("number of transactions actually processed: ", "\npgbench (", "\nprogress: ")
        return text.startswith(("pgbench (", "progress: ")) or any(each in text for each in known) or is_log(text)

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """Each report of the file, or the one of a log."""
        if is_log(text):
            yield log_report(text, max_error_share)
            return
        parts = [part for part in cut(text.split("\n"), _STAGES) if part.ranks & _RAN]
        if not parts:
            aborted = next((line for line in text.split("\n") if _ABORTED.match(line)), None)
            yield Report(None, aborted or "it has no report of pgbench", text=text)
        for part in parts:
            says = stated((line.rstrip() for line in part.lines), _SAYS)
            says = {name: word.removeprefix("<builtin: ").removesuffix(">") for name, word in says.items()}
            yield report_of(part, says, partial(_figures, part, max_error_share))


def _figures(part: Part, max_error_share: float) -> Figures:
    found: dict[str, float] = {}
    for line in part.lines:
        if _ABORTED.match(line):
            raise RunFailed(f"pgbench: {line.strip()[:200]}")
        for name, pattern in _LINES.items():
            if match := pattern.match(line):
                found.setdefault(name, float(match.group(1)))
    rate = found.get("exclusive", found.get("inclusive"))
    if rate is None or "count" not in found:
        raise RunFailed(f"pgbench's report is cut short: from line {part.first} it lacks its tps or its count")
    count = int(found["count"])
    if count == 0 or rate == 0:
        raise RunFailed("pgbench processed no transaction")
    unserved = int(found.get("failed", 0) + found.get("skipped", 0))
    if unserved > max_error_share * (count + unserved):
        raise RunFailed(f"{unserved} of {count + unserved} transactions failed or were skipped")
    scheduled = "lag" in found
    return Figures(
        throughput=rate,
        latency=Times(mean=found.get("mean"), blind=not scheduled),
        unit="transactions",
        operations=count,
        duration_s=count / rate,
        errors=unserved,
        windows=_windows(part),
        kinds=_kinds(part, blind=not scheduled),
        details={"schedule_lag_mean_ms": found["lag"]} if scheduled else {},
    )


def _windows(part: Part) -> Iterator[Window]:
    """Yield the lines of `-P`. With time stamps of 1970, the first line ends one step after the start."""
    matches = [match for line in part.lines if (match := _PROGRESS.match(line))]
    ends = [float(match.group(1)) for match in matches]
    if not ends or (ends[0] >= _EPOCH_S and len(ends) == 1):
        return
    start = ends[0] - (ends[1] - ends[0]) if ends[0] >= _EPOCH_S else 0.0
    for end, match in zip(ends, matches, strict=True):
        errors = None if match.group(4) is None else float(match.group(4))
        yield Window(end - start, float(match.group(2)), errors_per_s=errors)


def _kinds(part: Part, *, blind: bool) -> dict[str, Kind]:
    """Figures of each script, where there are several."""
    kinds: dict[str, Kind] = {}
    name, count = None, None
    for line in part.lines:
        if match := _SCRIPT.match(line.rstrip()):
            name, count = re.sub(r"[^a-z0-9]+", "-", match.group(1).rsplit("/", 1)[-1].lower()).strip("-"), None
        elif match := _SCRIPT_COUNT.match(line):
            count = int(match.group(1))
        elif (match := _SCRIPT_MEAN.match(line)) and name and name not in kinds:
            kinds[name] = Kind(Times(mean=float(match.group(1)), blind=blind), operations=count)
    return kinds
