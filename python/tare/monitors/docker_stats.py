"""`docker-stats`: the stream of the engine's API that `docker stats` shows, computed as that client does.

Formulas: docker/cli cli/command/container/stats_helpers.go, as read for docs/reference/views.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.monitors import SUT, MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.monitors.samples import SECOND_NS, Moment, Row, table
from tare.requirements import Requirement

READER = Path(__file__).with_name("stats_reader.py")
_LISTED = "containers"
_DEFAULT = "unix:///var/run/docker.sock"


class DockerStats:
    """Watches the SUT's container. Without a container, nothing is started."""

    daemons: ClassVar[frozenset[str]] = frozenset({"dockerd", "containerd", "podman", "shim"})
    reports_cost: ClassVar[bool] = False
    needs: ClassVar[tuple[Requirement, ...]] = ()

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval; the arms need the engine anyway."""
        if interval_s != 1:
            return f"the engine sends one frame per second, not one every {interval_s:g} s; set interval_s: 1"
        return None

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """The reader: a small program, as the client itself would cost a process of 28 MB."""
        if context.sut is not None and context.sut.container_id is None:
            return ()
        address = os.environ.get("DOCKER_HOST") or _DEFAULT
        path = f"{context.directory}/{READER.name}"
        return (
            Program(
                name="docker-stats",
                argv=("python3", "-I", "-S", path, address, context.directory),
                files={READER.name: READER.read_text(), _LISTED: _container_ids(context.watched)},
                started=f"{context.directory}/ready",
            ),
        )

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:
        """A program that is measured by itself starts after its monitors."""
        idents = _container_ids(later)
        return TargetUpdate(_LISTED, _container_ids(context.watched) + idents, "HUP") if idents else None

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """Read the frames. The first has no earlier sample: the client shows 0 for it, and it is dropped here."""
        try:
            lines = (directory / "docker-stats.stdout").read_text().splitlines()
        except FileNotFoundError as error:
            raise RunFailed("docker stats left no output") from error
        try:
            frames = [json.loads(line) for line in lines]
        except ValueError as error:
            raise RunFailed(f"a frame of the engine's statistics is cut short: {error}") from error
        if refused := next((one for one in frames if one["status"] != 200), None):
            raise RunFailed(f"the engine sends no statistics: {refused['frame'].get('message')}")
        whole = [one for one in frames if one["frame"].get("precpu_stats", {}).get("system_cpu_usage")]
        rows = [row for one in whole for row in _rows(one)]
        return Reading(len(whole), table("docker-stats", rows), {"dropped_frames": len(frames) - len(whole)})


def _container_ids(watched: tuple[WatchedProcess, ...]) -> str:
    """Container IDs of the SUT, one a line."""
    return "".join(f"{each.container_id}\n" for each in watched if each.name == SUT and each.container_id)


def _rows(one: Mapping[str, Any]) -> Iterator[Row]:
    """Values that the client prints for a frame: CPU as a rate, the rest as of the frame's end."""
    frame = one["frame"]
    memory, now, before = frame.get("memory_stats") or {}, frame["cpu_stats"], frame["precpu_stats"]
    if not memory.get("usage") and not now["cpu_usage"]["total_usage"]:
        return  # the container was ending, so the engine has no values for it
    to_monotonic = one["monotonic_ns"] - one["realtime_ns"]
    begin, end = (_ns(frame[key]) + to_monotonic for key in ("preread", "read"))
    moment = Moment(begin, end, max(0, one["monotonic_ns"] - end))
    used = now["cpu_usage"]["total_usage"] - before["cpu_usage"]["total_usage"]
    system = now["system_cpu_usage"] - before["system_cpu_usage"]
    share = used / system * now["online_cpus"] * 100 if used > 0 and system > 0 else 0.0
    yield Row("cpu_percent", SUT, moment, share)
    if memory.get("usage"):  # without the controller, the engine gives no value, and its client prints 0 B
        kept = used_memory(memory)
        yield Row("memory_bytes", SUT, moment, float(kept), is_gauge=True)
        if memory.get("limit"):
            yield Row("memory_percent", SUT, moment, kept / memory["limit"] * 100, is_gauge=True)
    for name, operation in (("block_read_bytes", "read"), ("block_written_bytes", "write")):
        entries = frame["blkio_stats"].get("io_service_bytes_recursive") or []
        total = sum(entry["value"] for entry in entries if entry["op"].lower() == operation)
        yield Row(name, SUT, moment, float(total), is_gauge=True)
    for name, direction in (("network_rx_bytes", "rx_bytes"), ("network_tx_bytes", "tx_bytes")):
        interfaces = frame.get("networks")
        if interfaces:  # none in the host's namespace
            total = sum(each[direction] for each in interfaces.values())
            yield Row(name, SUT, moment, float(total), is_gauge=True)


def used_memory(stats: Mapping[str, Any]) -> int:
    """Usage without inactive page cache: `total_inactive_file` on control groups v1, `inactive_file` on v2."""
    usage, details = int(stats["usage"]), stats.get("stats") or {}
    inactive = int(details.get("total_inactive_file", details.get("inactive_file", 0)))
    return usage - inactive if inactive < usage else usage


def _ns(stamp: str) -> int:
    """Nanoseconds of an RFC 3339 time in UTC with up to nine decimals."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * SECOND_NS + int(part.ljust(9, "0"))
