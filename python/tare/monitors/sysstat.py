"""What mpstat, iostat, sar and pidstat share: their command lines, and how to read their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.errors import HostSilent, RunFailed
from tare.monitors import MonitorContext, Program
from tare.monitors.samples import Line, Moment, moments, stamped
from tare.requirements import HostPlan, Lack, Requirement

STAMPER = Path(__file__).with_name("stamper.py")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "S_TIME_FORMAT": "ISO",
}
_QUICK_S = 10.0


def interval_fault(tool: str, interval_s: float) -> str | None:
    """Why a tool cannot sample with this interval; `None` if it can."""
    if interval_s < 1 or interval_s % 1:
        return f"{tool} samples at whole numbers of seconds, not every {interval_s:g}; change interval_s"
    return None


def requirement(tool: str) -> Requirement:
    """What a tool of sysstat needs of its host."""

    def lacks(there: HostPlan) -> Iterator[Lack]:
        try:
            there.host.run([tool, "-V"], timeout_s=_QUICK_S, env=ENVIRONMENT, check=False)
        except HostSilent:
            raise
        except RunFailed:
            yield Lack(f"{tool} is not installed", "apt-get install sysstat")

    return Requirement(
        tool,
        needed_by=f"the monitor `{tool}`",
        tried_how=f"`{tool} -V`",
        hint="apt-get install sysstat",
        ask=lacks,
    )


def program(context: MonitorContext, tool: str, *options: str) -> Program:
    """The tool with its lines stamped; it ends by itself if nobody stops it."""
    count, ready = int(context.most_s / context.interval_s) + 1, f"{context.directory}/ready"
    return Program(
        name=tool,
        argv=(
            *("python3", "-I", "-S", f"{context.directory}/{STAMPER.name}", ready, tool, *options),
            *(f"{context.interval_s:g}", str(count)),
        ),
        env=ENVIRONMENT,
        files={STAMPER.name: STAMPER.read_text()},
        started=ready,
        stop="INT",
        counts_itself=False,
    )


def lines_of(directory: Path, tool: str) -> list[Line]:
    """Lines that the tool printed. Raises `RunFailed` if there is no output."""
    try:
        text = (directory / f"{tool}.stdout").read_text(errors="replace")
    except FileNotFoundError as error:
        raise RunFailed(f"{tool} left no output") from error
    return stamped(text, tool)


def statistics(directory: Path, tool: str, interval_s: float) -> Iterator[tuple[Moment, Mapping[str, Any]]]:
    """Samples of a tool with JSON output. Raises `RunFailed` unless the document is complete."""
    lines = lines_of(directory, tool)
    try:
        parsed = json.loads("".join(line.text for line in lines))["sysstat"]["hosts"][0]["statistics"]
    except (ValueError, LookupError) as error:
        raise RunFailed(f"the JSON of {tool} is incomplete: {error}") from error
    came = [line.came_ns for line in lines if '"timestamp"' in line.text]
    yield from zip(moments(came, interval_s), parsed, strict=True)


def named(row: Mapping[str, Any], names: Mapping[str, str] | Sequence[str]) -> Iterator[tuple[str, float]]:
    """Values of a row in `names`, under tare's names."""
    wanted = names.items() if isinstance(names, Mapping) else zip(names, names, strict=True)
    yield from ((ours, float(row[theirs])) for theirs, ours in wanted if theirs in row)
