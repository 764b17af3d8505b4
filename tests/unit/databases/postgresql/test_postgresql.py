"""PostgreSQL's commands and files, and the reading of its answers."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.postgresql.postgresql import PostgreSQL, parse_settings, verifier
from tare.databases.postgresql.settings import DERIVED, PER_RUN, Checked, checked
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

DATA = Path(__file__).parents[3] / "data" / "postgresql"
DATABASE = PostgreSQL()
PLAN = ServerPlan(
    data_dir="/var/lib/postgresql/data",
    run_dir="/run/tare",
    listen="127.0.0.1",
    port=33060,
    settings={"shared_buffers": "64MB", "fsync": False, "random_page_cost": 1.1, "pg_stat.track": "it's a\\b"},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Answers every program the same way and keeps what was asked."""

    answer: Completed
    asked: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        self.asked.append((tuple(argv), stdin.decode()))
        return self.answer


def answering(text: str = "", code: int = 0, stderr: str = "") -> Inside:
    return Inside(Completed((), code, text.encode(), stderr.encode()))


def test_the_server_reads_what_initdb_wrote_and_then_what_tare_and_the_study_say() -> None:
    command = DATABASE.serve(PLAN)
    assert command.argv == (
        *("postgres", "-D", "/var/lib/postgresql/data"),
        *("-c", "config_file=/run/tare/postgresql.conf"),
    )
    assert command.files["postgresql.conf"].splitlines() == [
        "include '/var/lib/postgresql/data/postgresql.conf'",
        "hba_file = '/run/tare/pg_hba.conf'",
        "ident_file = '/run/tare/pg_ident.conf'",
        "port = 33060",
        "unix_socket_directories = '/run/tare'",
        "listen_addresses = '127.0.0.1'",
        "shared_buffers = '64MB'",
        "fsync = off",
        "random_page_cost = 1.1",
        "pg_stat.track = 'it''s a\\\\b'",
    ]


def test_only_the_runs_user_gets_in_from_elsewhere() -> None:
    assert DATABASE.serve(PLAN).files["pg_hba.conf"].splitlines() == [
        "local all postgres peer",
        "host tare tare all scram-sha-256",
    ]


def test_the_password_is_in_no_command_and_no_file() -> None:
    for command in (DATABASE.initialise(PLAN), DATABASE.serve(PLAN)):
        results = (*command.argv, *command.env.values(), *command.files.values())
        assert not any(PLAN.secrets.password in word for word in results)


def test_what_the_data_directory_is_made_with_for_good_goes_to_initdb() -> None:
    settings: dict[str, str | bool] = {"data_checksums": True, "wal_segment_size": "64MB", "work_mem": "8MB"}
    argv = DATABASE.initialise(replace(PLAN, settings=settings)).argv
    assert argv[0] == "initdb"
    assert argv[-2:] == ("--data-checksums", "--wal-segsize=64")
    assert "wal_segment_size" not in DATABASE.serve(replace(PLAN, settings=settings)).files["postgresql.conf"]
    assert checked({"data_checksums": False}).initdb == ()
    locale: dict[str, str | bool] = {"lc_collate": "C.UTF-8", "locale_provider": "icu", "icu_locale": "en-US"}
    options = ("--locale-provider=icu", "--icu-locale=en-US", "--lc-collate=C.UTF-8")
    assert checked(locale) == Checked(options, {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": 1}, "reserved for tare"),
        ({"data_directory": "/x"}, "reserved for tare"),
        ({"logging_collector": True}, "reserved for tare"),
        ({"temp_tablespaces": "a"}, "outside the data directory"),
        ({"Work_Mem": "1MB"}, "is not a setting of PostgreSQL"),
        ({"a = b\nc": "1"}, "is not a setting of PostgreSQL"),
        ({"work_mem": "1\nport = 1"}, "printable ASCII"),
        ({"data_checksums": "yes"}, "true or false"),
        ({"wal_segment_size": "17MB"}, "power of two"),
        ({"lc_collate": "C --pwfile=/x"}, "must be a name"),
        ({"icu_locale": ""}, "must be a name"),
    ],
)
def test_settings_that_no_study_may_make(settings: dict[str, str | int], message: str) -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match=message):
            command(replace(PLAN, settings=settings))


def test_ready_makes_the_account_by_statements_that_are_in_no_argument() -> None:
    inside = answering("ready\n")
    assert DATABASE.ready(PLAN, inside)
    ((argv, sql),) = inside.asked
    assert argv[0] == "psql"
    assert "--dbname=postgres" in argv
    assert "--set=ON_ERROR_STOP=1" in argv
    assert "ALTER ROLE tare PASSWORD 'SCRAM-SHA-256$4096:" in sql
    assert PLAN.secrets.password not in sql


@pytest.mark.parametrize(
    "inside", [answering(""), answering("", 2, "psql: error: connection to server"), answering("ready\n", 3)]
)
def test_anything_else_is_not_ready(inside: Inside) -> None:
    assert not DATABASE.ready(PLAN, inside)


@pytest.mark.parametrize("word", ["a'b", "a b", "", "a;b", "a\nb", "a\\b"])
def test_secrets_that_would_need_quoting_are_a_fault(word: str) -> None:
    for secrets in (Secrets("tare", word), Secrets(word, "x")):
        with pytest.raises(ValueError, match="letters, digits"):
            DATABASE.ready(replace(PLAN, secrets=secrets), answering())


def test_shutdown_leaves_nothing_for_autovacuum_and_no_password() -> None:
    inside = answering()
    DATABASE.shutdown(PLAN, inside)
    (_, sql), (stop, _) = inside.asked
    assert sql == "ALTER ROLE tare PASSWORD NULL; VACUUM (ANALYZE); CHECKPOINT;\n"
    assert stop[:3] == ("pg_ctl", "stop", "--mode=fast")


def test_a_refused_shutdown_says_why() -> None:
    refused = answering("", 3, "psql:<stdin>:1: ERROR:  canceling statement\nDETAIL:  more\n")
    with pytest.raises(RunFailed, match="canceling statement"):
        DATABASE.shutdown(PLAN, refused)


def test_settings_of_a_real_server() -> None:
    settings = DATABASE.effective(PLAN, answering((DATA / "settings.json").read_text()))
    assert settings["shared_buffers"] == "128MB"
    assert settings["server_version"].startswith("15.")
    assert settings["lc_collate"] == "C"
    assert settings["server_encoding"] == "UTF8"
    assert settings["data_checksums"] == "off"
    assert settings["wal_segment_size"] == "16MB"
    assert settings["port"] == "23977"
    derived = {name for names in DERIVED.values() for name in names}
    assert set(settings) >= PER_RUN | derived
    sized = {key.rpartition(".")[2] for key in DERIVED if key.startswith("sut.settings.")}
    assert set(settings) >= sized


@pytest.mark.parametrize("text", ["", "null", "{}", "[1]", '{"a": 1}', '{"a": "b"'])
def test_an_answer_that_is_no_list_of_settings_fails_the_run(text: str) -> None:
    with pytest.raises(RunFailed):
        parse_settings(text)


def test_the_verifier_is_the_one_that_the_server_makes() -> None:
    """Captured: `CREATE ROLE … PASSWORD 'pencil'`, then rolpassword of pg_authid."""
    text = (DATA / "rolpassword.txt").read_text().strip()
    salt = text.split(":")[1].split("$")[0]
    assert verifier("pencil", b64decode(salt)) == text
    assert verifier("pencil") != verifier("pencil")


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["postgresql"], PostgreSQL)


@pytest.mark.parametrize("name", ["shared_buffers", "work_mem", "max_wal_size"])
@pytest.mark.parametrize("value", ["", "<script>", "../../etc", True, "1 G", "1gb"])
def test_a_size_that_is_none_is_refused(name: str, value: str | bool) -> None:
    with pytest.raises(StudyError, match="must be a size"):
        DATABASE.serve(replace(PLAN, settings={name: value}))


@pytest.mark.parametrize("value", [-1, 0, 16384, 1e6, "16384", "1.5 GB", "128MB", "0x4000"])
def test_a_size_is_a_number_with_a_unit_or_without(value: str | float) -> None:
    DATABASE.serve(replace(PLAN, settings={"wal_buffers": value}))
