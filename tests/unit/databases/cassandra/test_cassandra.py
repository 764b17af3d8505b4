"""Cassandra as it is described: files, options, what a study may set, and what is read back from a real log."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tare.databases import Member, Secrets, ServerPlan
from tare.databases.cassandra import cql_query
from tare.databases.cassandra.cassandra import Cassandra
from tare.databases.cassandra.effective import PER_RUN, parse_log, parse_tables
from tare.databases.cassandra.nodetool import CassandraCluster, jmx_port
from tare.databases.extensions import node_address
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

LOG = (Path(__file__).parents[3] / "data" / "cassandra" / "start.log").read_text()
STATUS = (Path(__file__).parents[3] / "data" / "cassandra" / "status.txt").read_text()


def plan(**settings: Any) -> ServerPlan:
    return ServerPlan("/var/lib/cassandra", "/run/tare", "0.0.0.0", 28042, settings, Secrets("u", "p"))


def config(**settings: Any) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = YAML(typ="safe").load(Cassandra().serve(plan(**settings)).files["cassandra.yaml"])
    return loaded


def test_what_is_shipped_holds_where_the_study_says_nothing() -> None:
    fields = config(concurrent_reads=7, key_cache_size_in_mb=0, compaction_throughput_mb_per_sec=0)
    assert (fields["concurrent_reads"], fields["concurrent_writes"], fields["key_cache_size_in_mb"]) == (7, 32, 0)
    assert (fields["disk_failure_policy"], fields["start_rpc"]) == ("stop", False)
    assert config(key_cache_size_in_mb="auto")["key_cache_size_in_mb"] is None


def test_all_data_lies_below_the_data_directory_and_the_node_is_its_own_seed() -> None:
    fields = config()
    places = [*fields["data_file_directories"], *(fields[key] for key in fields if key.endswith("_directory"))]
    assert len(places) == 5
    assert all(place.startswith("/var/lib/cassandra/") for place in places)
    assert fields["seed_provider"][0]["parameters"] == [{"seeds": fields["listen_address"]}]
    assert (fields["rpc_address"], fields["native_transport_port"]) == ("0.0.0.0", 28042)


def test_two_nodes_of_a_machine_share_neither_address_nor_port() -> None:
    ports = range(20000, 32000)
    every = {node_address(port, number) for port in ports for number in (1, 2, 32)}
    assert len(every) == 3 * len(ports)
    assert not {jmx_port(plan())} & set(ports)


def member(number: int, listen: str, seed: str, own_port: int) -> ServerPlan:
    return replace(plan(), listen=listen, member=Member(number, 3, seed, own_port))


def test_a_member_is_found_at_its_own_address_and_finds_the_first() -> None:
    second = member(2, "127.109.138.3", "127.109.138.1", 28043)
    document = YAML(typ="safe").load(Cassandra().serve(second).files["cassandra.yaml"])
    assert document["listen_address"] == document["rpc_address"] == "127.109.138.3"
    assert "broadcast_rpc_address" not in document
    assert document["seed_provider"][0]["parameters"] == [{"seeds": "127.109.138.1"}]
    assert (document["native_transport_port"], document["auto_bootstrap"]) == (28042, False)
    assert jmx_port(second) != jmx_port(plan())
    assert "auto_bootstrap" not in config()


def test_a_member_is_asked_at_its_own_address() -> None:
    asked: list[Sequence[str]] = []

    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        del timeout_s, stdin
        asked.append(argv)
        return Completed(tuple(argv), 0, b"")

    assert Cassandra().ready(member(3, "tare-x-sut-3", "172.18.0.2", 28044), inside)
    assert "tare-x-sut-3" in asked[0]


@pytest.mark.parametrize(
    ("printed", "together"),
    [
        (STATUS, True),
        (STATUS.replace("UN  172.20.0.4", "DN  172.20.0.4"), False),
        (STATUS.replace("UN  172.20.0.4", "UJ  172.20.0.4"), False),
        ("\n".join(line for line in STATUS.splitlines() if "172.20.0.4" not in line), False),
        (f"{STATUS}\nDN  127.1.1.1  ?  16  0%  -  rack1\n", False),
        ("", False),
    ],
)
def test_nodes_are_together_when_one_sees_all_of_them_up_and_no_other(printed: str, together: bool) -> None:
    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        del timeout_s, stdin
        return Completed(tuple(argv), 0, printed.encode())

    first = member(1, "tare-x-sut-1", "tare-x-sut-1", 28042)
    assert CassandraCluster().is_complete(first, inside) == together


def test_heap_and_options_are_the_study_s() -> None:
    argv = Cassandra().serve(plan(heap="1G", jvm="-XX:ActiveProcessorCount=2")).argv
    assert {"-Xms1024M", "-Xmx1024M", "-Xmn256M", "-XX:ActiveProcessorCount=2"} <= set(argv)
    assert "-Xmn64M" in Cassandra().serve(plan(heap="512M", new_size="64M")).argv


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cluster_name": "x"}, "reserved for tare"),
        ({"rpc_address": "x"}, "reserved for tare"),
        ({"commitlog_directory": "/x"}, "outside the data directory"),
        ({"Heap": 1}, "is not a setting of Cassandra"),
        ({"heap": 512}, "a size like 512M"),
        ({"heap": "256M", "new_size": "256M"}, "smaller than the heap"),
        ({"jvm": "-Xmx1G"}, "reserved for tare"),
        ({"jvm": "-cp /x"}, "not an option of a JVM"),
        ({"endpoint_snitch": "a\nb: c"}, "printable ASCII"),
    ],
)
def test_settings_that_no_study_may_make_are_refused(settings: Mapping[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Cassandra().serve(plan(**settings))


def test_the_log_of_a_start_tells_the_settings_in_force() -> None:
    settings = parse_log(LOG)
    assert (settings["concurrent_reads"], settings["key_cache_size_in_mb"]) == ("32", "null")
    assert (settings["in_force.key_cache_capacity"], settings["in_force.memtable_on_heap"]) == ("18 MBs", "93MB")
    assert (settings["cassandra.version"], settings["jvm.heap"]) == ("3.11.2", "374.438MiB/374.438MiB")
    assert settings["in_force.disk_access_mode"] == "mmap"
    assert settings.keys() >= PER_RUN - {"seed_provider.parameters"}  # of 5.0
    assert "jmx.local.port" not in settings["jvm.arguments"]
    assert not [name for name, value in settings.items() if "@" in value]


def test_a_log_without_the_configuration_is_no_answer() -> None:
    with pytest.raises(RunFailed, match="does not contain its configuration"):
        parse_log("INFO starting\n")


def test_tables_of_the_server_s_own_are_left_out() -> None:
    row = {"keyspace_name": "tare", "table_name": "t", "compaction": {"class": "LCS"}, "gc_grace_seconds": 5}
    system = {**row, "keyspace_name": "system_auth"}
    tables = parse_tables([json.dumps(row), json.dumps(system)])
    assert tables == {"table.tare.t.compaction": '{"class": "LCS"}', "table.tare.t.gc_grace_seconds": "5"}


def test_it_is_drained_before_it_is_stopped() -> None:
    asked: list[str] = []

    def inside(argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        del timeout_s, stdin
        asked.append(argv[-1])
        return Completed(tuple(argv), 0, b"")

    Cassandra().shutdown(plan(), inside)
    assert asked == ["drain", "-delete", "stopdaemon"]


def test_a_node_that_cannot_be_drained_is_told_with_nodetool_s_words() -> None:
    failing = Completed(("java",), 1, b"", b"nodetool: Failed to connect to '127.0.0.1:16042'\n")
    with pytest.raises(RunFailed, match="did not let tare drain it: nodetool: Failed to connect"):
        Cassandra().shutdown(plan(), lambda _argv, _timeout, _stdin: failing)


def test_what_nodetool_threw_is_told_and_not_where() -> None:
    trace = b"error: no way\n-- StackTrace --\njava.io.IOException: no way\n\tat a.B.c(D.java:1)\n\t... 3 more\n"
    failing = Completed(("java",), 2, b"", trace)
    with pytest.raises(RunFailed, match=r"did not let tare drain it: java\.io\.IOException: no way$"):
        Cassandra().shutdown(plan(), lambda _argv, _timeout, _stdin: failing)


@contextmanager
def answering(*frames: tuple[int, bytes]) -> Iterator[int]:
    """A server that answers with these frames, whatever it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                for opcode, body in frames:
                    connection.recv(4096)
                    connection.sendall(struct.pack(">BBhBi", 0x84, 0, 0, opcode, len(body)) + body)
                connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(timeout=60)


def short(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def test_rows_of_one_text_are_printed_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    names = short("system") + short("local") + short("[json]") + struct.pack(">H", 13)
    rows = struct.pack(">iii", 2, 1, 1) + names + struct.pack(">i", 2)
    rows += struct.pack(">i", 3) + b"one" + struct.pack(">i", 3) + b"two"
    with answering((0x02, b""), (0x08, rows)) as port:
        cql_query.main("127.0.0.1", str(port), "", "SELECT")
    assert capsys.readouterr().out == "one\ntwo\n"


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (((0x00, struct.pack(">i", 0x1001) + short("overloaded")),), "overloaded"),
        ((), "closed|reset"),
    ],
)
def test_a_refusal_is_one_line_and_exit_code_1(frames: Sequence[tuple[int, bytes]], message: str) -> None:
    with answering(*frames) as port, pytest.raises(SystemExit, match=message):
        cql_query.main("127.0.0.1", str(port), "", "SELECT")
