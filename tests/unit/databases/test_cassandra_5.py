"""Cassandra 5.0 as it is described, and what is read back from a real one: tests/data/cassandra/README.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tare.databases import Secrets, ServerPlan
from tare.databases.cassandra.cassandra import Cassandra
from tare.databases.cassandra.chronicle import parse_history, parse_pools
from tare.databases.cassandra.chronicle import parse_log as compactions
from tare.databases.cassandra.effective import DERIVED, PER_RUN, parse_log, parse_settings
from tare.databases.cassandra.release import V5_0
from tare.databases.registry import DATABASES
from tare.errors import StudyError

DATA = Path(__file__).parents[2] / "data" / "cassandra"


def plan(**settings: Any) -> ServerPlan:
    return ServerPlan("/var/lib/cassandra", "/run/tare", "0.0.0.0", 28042, settings, Secrets("u", "p"))


def config(**settings: Any) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = YAML(typ="safe").load(
        Cassandra(V5_0).serve(plan(**settings)).files["cassandra.yaml"]
    )
    return loaded


def test_what_is_shipped_has_units_and_no_names_of_3_11() -> None:
    fields = config(key_cache_size="0MiB")
    assert (fields["key_cache_size"], fields["counter_cache_size"]) == ("0MiB", None)
    assert (fields["read_request_timeout"], fields["num_tokens"]) == ("5000ms", 16)
    assert not [name for name in fields if name.endswith(("_in_mb", "_in_ms", "_in_kb"))]
    assert "start_rpc" not in fields


def test_its_jvm_is_told_of_java_17_and_of_no_young_generation() -> None:
    argv = Cassandra(V5_0).serve(plan(heap="384M")).argv
    assert {"-Xms384M", "-Xmx384M", "-XX:+UseG1GC", "-javaagent:/opt/cassandra/lib/jamm-0.4.0.jar"} <= set(argv)
    assert not [word for word in argv if word.startswith("-Xmn") or "ConcMarkSweep" in word]
    assert "-Xmn64M" in Cassandra(V5_0).serve(plan(heap="384M", new_size="64M")).argv


@pytest.mark.parametrize("key", ["network_authorizer", "cidr_authorizer", "audit_logging_options", "rpc_address"])
def test_what_is_tare_s_own_is_refused(key: str) -> None:
    with pytest.raises(StudyError, match="reserved for tare"):
        Cassandra(V5_0).serve(plan(**{key: "x"}))


def test_it_is_a_database_of_its_own() -> None:
    assert DATABASES["cassandra-5"] == Cassandra(V5_0)
    assert DATABASES["cassandra"] == Cassandra()


def test_the_log_of_its_start_and_its_table_tell_the_settings_in_force() -> None:
    logged = parse_log((DATA / "start-5.log").read_text())
    assert (logged["cassandra.version"], logged["jvm.processors"]) == ("5.0.9", "2")
    assert (logged["jvm.version"], logged["jvm.heap"]) == (
        "OpenJDK 64-Bit Server VM/17.0.21.1",
        "384.000MiB/384.000MiB",
    )
    assert (logged["in_force.key_cache_capacity"], logged["in_force.memtable_on_heap"]) == ("19 MiBs", "96MiB")
    assert logged["in_force.disk_access_mode"] == "standard"
    settings = parse_settings((DATA / "settings-5.jsonl").read_text().splitlines())
    assert (settings["key_cache_size"], settings["memtable_heap_space"], settings["broadcast_address"]) == (
        "19MiB",
        "96MiB",
        "null",
    )
    assert {**logged, **settings}.keys() >= PER_RUN
    assert not [name for name, value in settings.items() if value == "<REDACTED>"]


def test_its_compactions_and_pools_are_read_from_many_lines() -> None:
    logged = compactions((DATA / "told-5.log").read_text())
    (event,) = parse_history((DATA / "compactionhistory-5.json").read_text(), logged)
    assert (event.name, event.read_bytes, event.written_bytes) == ("tare.usertable", 331456, 319213)
    assert event.began_at == pytest.approx(event.ended_at + 0.016 - 0.343, abs=0.001)
    counted = parse_pools("warned\n" + (DATA / "tpstats-5.json").read_text())
    assert counted.pools["CompactionExecutor"]["CompletedTasks"] == 52
    assert counted.dropped["MUTATION_REQ"] == 0


def test_what_is_a_share_of_the_heap_may_differ_where_the_heap_does() -> None:
    """384 MiB: a quarter, a tenth, a sixteenth, a twentieth and a fortieth of it."""
    settings = parse_settings((DATA / "settings-5.jsonl").read_text().splitlines())
    shares = {"96MiB", "40265318B", "40265318", "24MiB", "19MiB", "10066329B", "10066329", "9MiB"}
    assert {name for name, value in settings.items() if value in shares} <= DERIVED["sut.settings.heap"]
