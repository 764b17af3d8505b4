"""Cassandra's account of its background work: compactions, tables and thread pools, from nodetool and its log.

nodetool's history of compactions has the end of each and the bytes that it read and wrote. The log has the
duration: the message `Compacted (…)` of `CompactionTask`, which tare's logback.xml enables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tare.databases import Exec, ServerPlan
from tare.databases.cassandra.nodetool import must, nodetool, run_several
from tare.databases.extensions import Chronicle, Event, Figures
from tare.errors import RunFailed

LOG_FILE = "system.log"
_COMMANDS = {"compactionhistory": "CompactionHistory", "tablestats": "TableStats", "tpstats": "TpStats"}
"""Command of nodetool → class that implements it."""
_TIMEOUT_S, _LOG_TIMEOUT_S = 60.0, 30.0
_COMPACTED = re.compile(
    r"^(?:DEBUG|INFO) .*?"
    r" (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) \S+ - Compacted \(\S+\) \d+ sstables? to \[([^\]]*)\]"
    r" to level=\d+\..*? in ([\d,.]+)ms\.",
    re.MULTILINE,
)
_TABLE = re.compile(r"/([^/]+)/([^/]+)-[0-9a-f]{32}/[^/]+$")
_LATE_S = 5.0
"""Seconds by which the log may have a compaction later than the history, on a busy machine."""
_EARLY_S = 0.1
_SYSTEM = "system"


@dataclass(frozen=True)
class Logged:
    """A compaction in the log: its table, when it was logged, and its duration."""

    name: str
    logged_at: float
    seconds: float


class CassandraEvents:
    """Reads the account of a single node."""

    def tell(self, plan: ServerPlan, inside: Exec) -> Chronicle:
        """Run three commands of nodetool, then read the log, which has a compaction later than the history."""
        file = f"{plan.run_dir}/{LOG_FILE}"
        answers = run_several(plan, inside, tuple(_COMMANDS.values()), file, _TIMEOUT_S)
        history, tables, pools, log = answers or _run_each(plan, inside, file)
        counted = parse_pools(pools)
        return Chronicle(
            events=parse_history(history, parse_log(log)),
            tables=parse_tables(tables),
            pools=counted.pools,
            dropped=counted.dropped,
            files={
                "nodetool-compactionhistory.json": history,
                "nodetool-tablestats.json": tables,
                "nodetool-tpstats.json": pools,
            },
        )


def _run_each(plan: ServerPlan, inside: Exec, file: str) -> tuple[str, ...]:
    """Run each command in a JVM of its own, all at the same time as the run waits for them; then read the file."""

    def call(word: str) -> str:
        return must(nodetool(plan, inside, (word, "-F", "json"), _TIMEOUT_S), f"call {word}").text

    with ThreadPoolExecutor(len(_COMMANDS)) as pool:
        printed = tuple(pool.map(call, _COMMANDS))
    return *printed, must(inside(("cat", file), _LOG_TIMEOUT_S, b""), "read its log").text


def parse_log(text: str) -> tuple[Logged, ...]:
    """Parse all compactions that wrote a file. Those that left nothing name no table, and are left out."""
    events = []
    for match in _COMPACTED.finditer(text):
        files = [file for file in match.group(3).split(",") if file.strip()]
        table = _TABLE.search(files[0].strip()) if files else None
        if table is None:
            continue
        logged_at = (
            datetime.fromisoformat(match.group(1)).replace(tzinfo=UTC).timestamp() + int(match.group(2)) / 1e3
        )
        seconds = int(re.sub(r"[,.]", "", match.group(4))) / 1e3
        events.append(Logged(f"{table.group(1)}.{table.group(2)}", logged_at, seconds))
    return tuple(events)


def parse_history(text: str, logged: Sequence[Logged] = ()) -> tuple[Event, ...]:
    """Parse `nodetool compactionhistory -F json`, whose times are UTC, without system tables."""
    left = list(logged)
    events = []
    for row in sorted(
        _tree(text, "compactionhistory")["CompactionHistory"], key=lambda row: str(row["compacted_at"])
    ):
        name = f"{row['keyspace_name']}.{row['columnfamily_name']}"
        ended_at = datetime.fromisoformat(row["compacted_at"]).replace(tzinfo=UTC).timestamp()
        entry = next((each for each in left if each.name == name and _matches(each, ended_at)), None)
        if entry is not None:
            left.remove(entry)
        if not _is_system(str(row["keyspace_name"])):
            began_at = None if entry is None else entry.logged_at - entry.seconds
            events.append(
                Event("compaction", name, began_at, ended_at, int(row["bytes_in"]), int(row["bytes_out"]))
            )
    return tuple(events)


def parse_tables(text: str) -> Mapping[str, Figures]:
    """Parse `nodetool tablestats -F json`: figures of every table except system tables."""
    tables: dict[str, Figures] = {}
    for keyspace, stats in _tree(text, "tablestats").items():
        if not isinstance(stats, Mapping) or _is_system(keyspace):
            continue
        for table, figures in stats.get("tables", {}).items():
            tables[f"{keyspace}.{table}"] = {name: _figure(value) for name, value in figures.items()}
    return tables


@dataclass(frozen=True)
class Pools:
    """Thread pool → figures, and kind of message → number of dropped ones."""

    pools: Mapping[str, Figures]
    dropped: Mapping[str, int]


def parse_pools(text: str) -> Pools:
    """Parse `nodetool tpstats -F json`."""
    tree = _tree(text, "tpstats")
    return Pools(
        {
            name: {key: _figure(value) for key, value in figures.items()}
            for name, figures in tree["ThreadPools"].items()
        },
        {name: int(count) for name, count in tree["DroppedMessage"].items()},
    )


def _matches(logged: Logged, ended_at: float) -> bool:
    return -_EARLY_S <= logged.logged_at - ended_at <= _LATE_S


def _is_system(keyspace: str) -> bool:
    return keyspace.split("_", maxsplit=1)[0] == _SYSTEM


def _figure(value: object) -> float | str | None:
    """Convert a figure; nodetool prints some numbers as text. Text such as units and levels stays text."""
    if value is None or value == "NaN":
        return None
    try:
        return float(str(value))
    except ValueError:
        return value if isinstance(value, str) else json.dumps(value)


def _tree(text: str, what: str) -> Mapping[str, Any]:
    """Parse JSON: one line from 3.11, many from 5.0 with only the first unindented; a JVM may warn before it."""
    lines = text.strip().splitlines()
    begin = max((n for n, line in enumerate(lines) if line.startswith("{")), default=0)
    try:
        tree = json.loads("\n".join(lines[begin:]))
    except ValueError as error:
        raise RunFailed(f"nodetool {what} printed no JSON: {text.strip()[:80]!r}") from error
    if not isinstance(tree, Mapping):
        raise RunFailed(f"nodetool {what} printed no JSON object")
    return tree
