"""Parser for the output of YCSB 0.12 to 0.17, line by line; it judges nothing.

Formats: `TextMeasurementsExporter`, `OneMeasurement*`, `StatusThread` and `Client` of site.ycsb:core:0.17.0. Stdout
and stderr are parsed alike, as stack traces, status lines and complaints appear on either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

_NUMBER = r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|NaN|Infinity)"
_FIGURE = re.compile(rf"\[([^\]]+)\], (.+), ({_NUMBER})")
_STATUS = re.compile(r"(?:\S* ?)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):(\d{3}) (\d+) sec: (\d+) operations; (.*)")
_BUCKET = re.compile(r"[0-9]{1,18}")
_OVERFLOW = re.compile(r">[0-9]+")
_RATE = re.compile(r"([\d.,]+|∞|�|NaN) current ops/sec; ")
_KIND = re.compile(r"\[([^\[\]: ]+): ([^\[\]]*)\]")
_KIND_MEAN = re.compile(r"\[([^\[\]: ]+) AverageLatency\(us\)=([\d.,]+)\]")
_KIND_RAW = re.compile(r"(?<!\S)(\S+) count: (\d+), average latency\(us\): ([\d.,]+)")
_CONTINUED = re.compile(r"\s*(?:\[[^\]]+(?:: Count=| AverageLatency\(us\)=)|\S+ count: \d+, average latency).*")
"""Further lines of a status with two measurements; the first line has all that is used."""
_RAW = re.compile(r"([A-Z][A-Za-z-]*),(\d+),(-?\d+)")
_EXCEPTION = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |Exception: |Caused by: )?(?:[a-z_][\w$]*\.)+"
    r"[A-Z][\w$]*(?:Exception|Error|Throwable)\b.*"
)
_IN_THREAD = re.compile(r"Exception in thread \"[^\"]*\" ")
_FRAME = re.compile(r"\s+(?:at |\.\.\. \d+ (?:more|common frames))")
_COMPLAINT = re.compile(
    r"(?:Unknown DB |Missing property: |Failed check required properties|Unknown option |Missing argument value "
    r"|Error initializing datastore bindings|Error inserting, not retrying|Unable to open the properties file "
    r"|Argument '-p' expected|An argument (?:value|specifier) without |At least one argument specifying "
    r"|Could not |ERROR: |Still waiting for thread ).*"
)


@dataclass(frozen=True)
class Section:
    """All lines that begin with the same name in brackets.

    `figures`: text → number as printed. `answers`: return code → count. `buckets`: lines with a number in place of
    the text; in a histogram, value → count; in a time series, milliseconds since its start → mean latency in
    microseconds. `overflow`: count of a histogram's last line, ">N" milliseconds.
    """

    name: str
    figures: Mapping[str, float] = field(default_factory=dict)
    answers: Mapping[str, int] = field(default_factory=dict)
    buckets: tuple[tuple[int, float], ...] = ()
    overflow: int | None = None


@dataclass(frozen=True)
class KindStatus:
    """One kind of operation in a status line; latencies in microseconds, `None` if not printed."""

    count: int | None
    mean_us: float | None
    max_us: float | None
    p99_us: float | None


@dataclass(frozen=True)
class Status:
    """A status line. `rate_per_s`: since the line before; `None` before the first operation.

    `end_s`: whole seconds since YCSB's start. `at`: seconds since the epoch by its wall clock, read as UTC; `None`
    if the line has no valid time.
    """

    end_s: int
    operations: int
    rate_per_s: float | None
    kinds: Mapping[str, KindStatus]
    at: float | None = None


@dataclass(frozen=True)
class Printed:
    """Parsed output. `raw`: kind → (milliseconds since the epoch, latency in microseconds) of each operation.

    `complaints`: messages with which YCSB gives up. `exceptions`: first lines of Java's stack traces. `others`:
    lines of unknown form, such as those of bindings and drivers. `repeated`: first figure that was printed twice
    with different values.
    """

    sections: Mapping[str, Section]
    statuses: tuple[Status, ...]
    raw: Mapping[str, tuple[tuple[int, int], ...]]
    complaints: tuple[str, ...]
    exceptions: tuple[str, ...]
    others: tuple[str, ...]
    repeated: str | None = None

    def figure(self, section: str, name: str) -> float | None:
        """A figure; `None` if it was not printed."""
        return self.sections[section].figures.get(name) if section in self.sections else None


_KNOWN = (
    "Command line:", "YCSB Client ", "Loading workload...", "Starting test.", "DBWrapper: report latency for each",
    "Maximum execution time specified as", "Maximum time elapsed.", "Stop requested for workload.",
    "Could not wait until max specified time", "Raw data measurement: will output to",
    " (might take a few minutes for large data sets)", "Retrying insertion, retry count",
    "Warning: the threadcount is bigger than recordcount", "Unable to retrieve client version.",
)  # fmt: skip
_RAW_HEADING = " latency raw data: op, timestamp(ms), latency(us)"


def read_output(*texts: str) -> Printed:
    """Parse all output. A last line without its end was cut, so its figures are ignored."""
    output = _Output()
    for text in texts:
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            output.take(line)
        if rest and not _FIGURE.fullmatch(rest):
            output.take(rest)
    return output.printed()


@dataclass
class _Output:
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    statuses: dict[tuple[int, int], Status] = field(default_factory=dict)
    raw: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    complaints: dict[str, None] = field(default_factory=dict)
    exceptions: dict[str, None] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    repeated: str | None = None

    def take(self, line: str) -> None:
        """Parse a line. Status lines and stack traces may appear on both streams, so each counts once."""
        line = line.rstrip()
        if match := _FIGURE.fullmatch(line):  # first, as most lines are
            self._figure(*match.groups())
        elif not line or line.startswith(_KNOWN) or line.endswith(_RAW_HEADING) or _FRAME.match(line):
            return
        elif match := _STATUS.fullmatch(line):
            status = _status(match)
            self.statuses[status.end_s, status.operations] = status
        elif match := _RAW.fullmatch(line):
            self.raw.setdefault(match.group(1), []).append((int(match.group(2)), int(match.group(3))))
        elif _CONTINUED.fullmatch(line):
            return
        elif _EXCEPTION.fullmatch(line):
            self.exceptions[_IN_THREAD.sub("", line)] = None
        elif _COMPLAINT.fullmatch(line):
            self.complaints[line] = None
        else:
            self.others.append(line)

    def _figure(self, section: str, name: str, number: str) -> None:
        figures, value = self.figures.setdefault(section, {}), float(number)
        if str(figures.get(name, value)) != str(value):  # NaN is not equal to itself
            self.repeated = self.repeated or f"[{section}], {name}"
        figures[name] = value

    def printed(self) -> Printed:
        return Printed(
            sections={name: _section(name, figures) for name, figures in self.figures.items()},
            statuses=tuple(self.statuses.values()),
            raw={kind: tuple(points) for kind, points in self.raw.items()},
            complaints=tuple(self.complaints),
            exceptions=tuple(self.exceptions),
            others=tuple(self.others),
            repeated=self.repeated,
        )


def _section(name: str, figures: Mapping[str, float]) -> Section:
    finite = {text: value for text, value in figures.items() if math.isfinite(value)}
    answers = {text[7:]: int(value) for text, value in finite.items() if text.startswith("Return=")}
    buckets = tuple((int(text), value) for text, value in finite.items() if _BUCKET.fullmatch(text))
    overflow = next((int(value) for text, value in finite.items() if _OVERFLOW.fullmatch(text)), None)
    named = {
        text: value for text, value in figures.items() if text[:7] != "Return=" and text.lstrip(">")[:1].isalpha()
    }
    percentiles = {text: value for text, value in figures.items() if "Percentile" in text}
    return Section(name, {**named, **percentiles}, answers, buckets, overflow)


def _status(match: re.Match[str]) -> Status:
    rest = match.group(5)
    rate = _RATE.match(rest)
    kinds = {name: _hdr_kind(figures) for name, figures in _KIND.findall(rest)}
    kinds.update({name: KindStatus(None, _number(mean), None, None) for name, mean in _KIND_MEAN.findall(rest)})
    kinds.update(
        {name: KindStatus(int(count), _number(mean), None, None) for name, count, mean in _KIND_RAW.findall(rest)}
    )
    return Status(
        end_s=int(match.group(3)),
        operations=int(match.group(4)),
        rate_per_s=_number(rate.group(1)) if rate else None,
        kinds=kinds,
        at=_moment(match.group(1), match.group(2)),
    )


def _moment(text: str, milliseconds: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() + int(milliseconds) / 1000
    except ValueError:
        return None


def _hdr_kind(figures: str) -> KindStatus:
    """Parse `Count=…, Max=…, Min=…, Avg=…, 90=…`. Without operations, YCSB prints a minimum of 2^63 - 1."""
    pairs: Sequence[tuple[str, str]] = [
        (name, value) for name, _, value in (p.partition("=") for p in figures.split(", "))
    ]
    values = {name: _number(value) for name, value in pairs}
    count = values.get("Count")
    if not count:
        return KindStatus(0 if count == 0 else None, None, None, None)
    return KindStatus(int(count), values.get("Avg"), values.get("Max"), values.get("99"))


def _number(text: str) -> float | None:
    """Parse a number of Java's DecimalFormat, which writes a comma in some locales."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
