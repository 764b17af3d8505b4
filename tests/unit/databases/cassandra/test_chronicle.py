"""What Cassandra tells of its own work; tests/data/cassandra/README.md says where the texts come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.cassandra.cassandra import Cassandra
from tare.databases.cassandra.chronicle import (
    CassandraEvents,
    Logged,
    parse_history,
    parse_log,
    parse_pools,
    parse_tables,
)
from tare.databases.cassandra.effective import DERIVED
from tare.databases.cassandra.effective import parse_log as settings_of
from tare.errors import RunFailed
from tare.sites import Completed

DATA = Path(__file__).parents[3] / "data" / "cassandra"
HISTORY, POOLS, TOLD = (
    (DATA / name).read_text() for name in ("compactionhistory.json", "tpstats.json", "told.log")
)
ENDED = datetime(2026, 11, 21, 18, 28, 26, 663000, tzinfo=UTC).timestamp()
TABLES = json.dumps(
    {
        "total_number_of_tables": 37,
        "system": {"tables": {"local": {"read_count": 1}}},
        "tare": {
            "read_latency_ms": 0.1,
            "tables": {
                "standard1": {
                    "sstable_count": "3",
                    "local_read_latency_ms": "NaN",
                    "space_used_live": 12,
                    "old": "x",
                }
            },
        },
    }
)
PLAN = ServerPlan("/data", "/run/tare", "127.0.0.1", 28042, {}, Secrets("u", "p"))


def test_a_compaction_has_its_end_from_nodetool_and_its_beginning_from_the_log() -> None:
    (event,) = parse_history(HISTORY, parse_log(TOLD))
    assert (event.kind, event.name) == ("compaction", "tare.standard1")
    assert (event.read_bytes, event.written_bytes) == (1294139, 1049625)
    assert event.ended_at == pytest.approx(ENDED)
    logged_at = datetime(2026, 11, 21, 18, 28, 27, 897000, tzinfo=UTC).timestamp()
    assert event.began_at == pytest.approx(logged_at - 1.234)


def test_a_compaction_that_the_log_does_not_tell_of_has_no_beginning() -> None:
    (event,) = parse_history(HISTORY)
    assert event.began_at is None
    for other in (Logged("tare.other", ENDED + 1, 1.0), Logged("tare.standard1", ENDED + 60, 1.0)):
        assert parse_history(HISTORY, (other,))[0].began_at is None


def test_each_line_of_the_log_is_of_one_compaction() -> None:
    row = json.loads(HISTORY)["CompactionHistory"][0]
    later = {**row, "compacted_at": "2026-11-21T18:28:27.663"}
    logged = (Logged("tare.standard1", ENDED + 0.2, 1.0), Logged("tare.standard1", ENDED + 1.2, 0.5))
    one, other = parse_history(json.dumps({"CompactionHistory": [later, row]}), logged)
    assert one.ended_at < other.ended_at
    assert (one.began_at, other.began_at) == pytest.approx((ENDED - 0.8, ENDED + 0.7))


def test_figures_are_numbers_where_they_can_be_and_not_there_where_they_are_nan() -> None:
    assert parse_tables(TABLES) == {
        "tare.standard1": {
            "sstable_count": 3.0,
            "local_read_latency_ms": None,
            "space_used_live": 12.0,
            "old": "x",
        }
    }


def test_pools_and_dropped_messages() -> None:
    pools = parse_pools(POOLS)
    assert pools.pools["CompactionExecutor"]["CompletedTasks"] == 4711
    assert pools.dropped == {"READ": 0, "MUTATION": 3}


WORDS = ("compactionhistory", "tablestats", "tpstats")


def test_all_of_it_is_asked_by_one_jvm_with_what_was_printed_kept() -> None:
    asked: list[str] = []
    printed = f"a warning of the JVM\n\x1e{HISTORY}\x1e{TABLES}\x1e{POOLS}\x1e{TOLD}"

    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        del timeout_s, stdin
        asked.append(argv[0])
        assert "-Duser.timezone=UTC" in argv
        chronicle = ("tare.nodetool.Several", "16042", f"{PLAN.run_dir}/system.log")
        assert argv[-6:] == (*chronicle, "CompactionHistory", "TableStats", "TpStats")
        return Completed(tuple(argv), 0, printed.encode())

    chronicle = CassandraEvents().tell(PLAN, inside)
    assert asked == ["java"]
    assert [(event.name, event.began_at is None) for event in chronicle.events] == [("tare.standard1", False)]
    assert chronicle.files == {
        f"nodetool-{word}.json": text for word, text in zip(WORDS, (HISTORY, TABLES, POOLS), strict=True)
    }


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        (Completed((), 1, b"", b"java.net.ConnectException: Connection refused\n"), "TpStats: java.net.Connect"),
        (Completed((), 0, b"\x1e{}\x1e{}"), "2 texts for 3 commands and a file"),
    ],
)
def test_what_cannot_be_asked_is_told_with_the_reason(done: Completed, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason):
        CassandraEvents().tell(PLAN, lambda _argv, _timeout, _stdin: done)


def test_an_image_without_tare_s_entry_is_asked_by_a_jvm_a_command() -> None:
    asked: list[str] = []
    answers = {"compactionhistory": f"a warning of the JVM\n{HISTORY}", "tablestats": TABLES, "tpstats": POOLS}
    missing = b"Error: Could not find or load main class tare.nodetool.Several\n"

    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        del timeout_s, stdin
        if argv[0] == "cat":
            return Completed(tuple(argv), 0, TOLD.encode())
        if "tare.nodetool.Several" in argv:
            return Completed(tuple(argv), 1, b"", missing)
        assert "-Duser.timezone=UTC" in argv
        asked.append(argv[-3])
        return Completed(tuple(argv), 0, answers[argv[-3]].encode())

    chronicle = CassandraEvents().tell(PLAN, inside)
    assert sorted(asked) == list(WORDS)
    assert [event.name for event in chronicle.events] == ["tare.standard1"]
    assert set(chronicle.files) == {f"nodetool-{word}.json" for word in WORDS}


@pytest.mark.parametrize("text", ["", "error: no such command", "[1]"])
def test_what_is_no_json_is_told_with_the_command(text: str) -> None:
    with pytest.raises(RunFailed, match="nodetool tablestats printed no JSON"):
        parse_tables(text)


def test_the_log_tells_how_many_processors_the_jvm_saw() -> None:
    start = (DATA / "start.log").read_text()
    assert "jvm.processors" not in settings_of(start)
    assert settings_of(start + TOLD)["jvm.processors"] == "2"
    told_otherwise = start.replace("JVM Arguments: [", "JVM Arguments: [-Dio.netty.eventLoopThreads=4, ")
    assert "jvm.processors" not in settings_of(told_otherwise + TOLD)
    assert {key for key, names in DERIVED.items() if "jvm.processors" in names} == {
        "sut.limits.cpus",
        "sut.limits.cpu_quota",
        "sut.settings.jvm",
    }


def test_the_log_is_in_utc_and_lets_through_what_is_asked_of_it() -> None:
    text = Cassandra().serve(PLAN).files["logback.xml"]
    assert "%date{ISO8601, UTC}" in text
    for name in ("org.apache.cassandra.db.compaction.CompactionTask", "io.netty.channel.MultithreadEventLoopGroup"):
        assert f'<logger name="{name}" level="DEBUG"/>' in text
