"""Redis: its command and file, and the reading of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.redis import PER_RUN, VALKEY, Redis, parse_facts, parse_settings
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

DATA = Path(__file__).parents[2] / "data" / "redis"
DATABASE = Redis()
PLAN = ServerPlan(
    data_dir="/var/lib/redis",
    run_dir="/run/tare",
    listen="127.0.0.1",
    port=33060,
    settings={"save": "900 1 300 10", "appendonly": True, "maxmemory": "1gb", "io-threads": 2},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Answers by what stands in the question, and keeps what was asked."""

    answers: dict[str, Completed]
    asked: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        self.asked.append((tuple(argv), stdin.decode()))
        return next(answer for words, answer in self.answers.items() if words in stdin.decode())


def answering(text: str = "", code: int = 0, stderr: str = "") -> Inside:
    return Inside({"": Completed((), code, text.encode(), stderr.encode())})


def test_the_server_reads_one_file_that_holds_all() -> None:
    command = DATABASE.serve(PLAN)
    assert command.argv == ("redis-server", "/run/tare/redis.conf")
    assert command.files["redis.conf"].splitlines() == [
        "bind 127.0.0.1",
        "port 33060",
        "unixsocket /run/tare/redis.sock",
        "unixsocketperm 700",
        "dir /var/lib/redis",
        "daemonize no",
        "requirepass 0123456789abcdef",
        "save 900 1 300 10",
        "appendonly yes",
        "maxmemory 1gb",
        "io-threads 2",
    ]


def test_an_empty_value_is_written_as_such() -> None:
    assert DATABASE.serve(replace(PLAN, settings={"save": ""})).files["redis.conf"].splitlines()[-1] == 'save ""'


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": 1}, "reserved for tare"),
        ({"requirepass": "x"}, "reserved for tare"),
        ({"include": "/etc/redis/redis.conf"}, "reserved for tare"),
        ({"Save": ""}, "not a setting"),
        ({"a b": "1"}, "not a setting"),
        ({"save": "1\nport 1"}, "cannot be written in"),
        ({"save": '"'}, "cannot be written in"),
    ],
)
def test_settings_that_no_study_may_make(settings: dict[str, str | int], message: str) -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match=message):
            command(replace(PLAN, settings=settings))


def test_ready_is_an_answered_ping_and_the_password_is_in_no_argument() -> None:
    inside = answering("OK\nPONG\n")
    assert DATABASE.ready(PLAN, inside)
    ((argv, words),) = inside.asked
    assert argv == ("redis-cli", "-s", "/run/tare/redis.sock")
    assert words == "AUTH 0123456789abcdef\nPING\n"


@pytest.mark.parametrize(
    "inside",
    [
        answering("OK\nLOADING Redis is loading the dataset in memory\n"),
        answering("", 1, "Could not connect to Redis at /run/tare/redis.sock: No such file or directory\n"),
        answering(""),
    ],
)
def test_anything_else_is_not_ready(inside: Inside) -> None:
    assert not DATABASE.ready(PLAN, inside)


def test_shutdown_saves_whatever_the_study_says() -> None:
    inside = answering("OK\n")
    DATABASE.shutdown(PLAN, inside)
    assert inside.asked[0][1].splitlines()[1] == "SHUTDOWN SAVE"


@pytest.mark.parametrize(
    ("text", "reason"), [("OK\nERR Errors trying to SHUTDOWN. Check logs.\n", "Check logs"), ("", "no answer")]
)
def test_a_refused_shutdown_says_why(text: str, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason):
        DATABASE.shutdown(PLAN, answering(text))


def test_settings_of_a_real_server() -> None:
    settings, facts = ((DATA / name).read_bytes() for name in ("config.json", "info.txt"))
    inside = Inside({"CONFIG": Completed((), 0, settings, b""), "INFO": Completed((), 0, facts, b"")})
    effective = DATABASE.effective(PLAN, inside)
    assert effective["save"] == "3600 1 300 100 60 10000"
    assert effective["appendonly"] == "no"
    assert effective["port"] == "23977"
    assert effective["info.redis_version"] == "7.0.15"
    assert effective["info.mem_allocator"] == "jemalloc-5.3.0"
    assert set(effective) >= PER_RUN
    assert not {name for name in effective if "pass" in name}


def test_valkey_has_its_own_programs_and_says_who_it_is() -> None:
    settings, facts = ((DATA.parent / "valkey" / name).read_bytes() for name in ("config.json", "info.txt"))
    inside = Inside({"CONFIG": Completed((), 0, settings, b""), "INFO": Completed((), 0, facts, b"")})
    valkey = DATABASES["valkey"]
    assert valkey.serve(PLAN).argv == ("valkey-server", "/run/tare/redis.conf")
    effective = valkey.effective(PLAN, inside)
    assert inside.asked[0][0][0] == "valkey-cli"
    assert effective["save"] == "3600 1 300 100 60 10000"
    assert (effective["info.valkey_version"], effective["info.redis_version"]) == ("8.1.1", "7.2.4")
    assert set(effective) >= PER_RUN
    assert not {name for name in effective if "pass" in name}


def test_one_of_the_family_does_not_pass_for_the_other() -> None:
    with pytest.raises(RunFailed, match="Valkey answers instead of Redis"):
        parse_facts((DATA.parent / "valkey" / "info.txt").read_text())
    with pytest.raises(RunFailed, match="Valkey does not report its valkey_version"):
        parse_facts((DATA / "info.txt").read_text(), VALKEY)


@pytest.mark.parametrize("text", ["", "OK", '"OK"\n[]\n', '"OK"\n["a"]\n', '"OK"\nnull\n', '"OK"\n["a", "b"'])
def test_an_answer_that_is_no_list_of_settings_fails_the_run(text: str) -> None:
    with pytest.raises(RunFailed):
        parse_settings(text)


def test_an_answer_without_a_version_fails_the_run() -> None:
    with pytest.raises(RunFailed, match="redis_version"):
        parse_facts("OK\n# Server\n")


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["redis"], Redis)
