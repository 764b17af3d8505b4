"""MariaDB's commands and files, and the reading of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.batch_client import parse_variables
from tare.databases.mariadb import PER_RUN, MariaDB
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

DATA = Path(__file__).parents[2] / "data" / "mariadb"
DATABASE = MariaDB()
PLAN = ServerPlan(
    data_dir="/var/lib/mysql",
    run_dir="/run/tare",
    listen="127.0.0.1",
    port=33060,
    settings={"innodb_buffer_pool_size": "128M"},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Answers every program the same way and keeps what was asked."""

    answer: Completed
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        self.asked.append(tuple(argv))
        return self.answer


def answering(text: str = "", code: int = 0, stderr: str = "") -> Inside:
    return Inside(Completed((), code, text.encode(), stderr.encode()))


def test_the_server_reads_one_option_file_that_holds_all_that_tare_sets() -> None:
    command = DATABASE.serve(PLAN)
    assert command.argv == ("mariadbd", "--defaults-file=/run/tare/server.cnf")
    assert command.files["server.cnf"].splitlines() == [
        "[mariadbd]",
        "datadir = /var/lib/mysql",
        "bind_address = 127.0.0.1",
        "port = 33060",
        "socket = /run/tare/mariadbd.sock",
        "pid_file = /run/tare/mariadbd.pid",
        "tmpdir = /run/tare",
        "skip_name_resolve = ON",
        "init_file = /run/tare/init.sql",
        "innodb_buffer_pool_size = 128M",
    ]


def test_the_password_is_in_the_init_file_alone() -> None:
    for command in (DATABASE.initialise(PLAN), DATABASE.serve(PLAN)):
        assert not any(PLAN.secrets.password in word for word in (*command.argv, *command.env.values()))
        holders = {name for name, content in command.files.items() if PLAN.secrets.password in content}
        assert holders <= {"init.sql"}


def test_initialising_uses_the_settings_and_no_account_of_the_run() -> None:
    command = DATABASE.initialise(PLAN)
    assert command.argv[:2] == ("mariadb-install-db", "--defaults-file=/run/tare/server.cnf")
    assert "innodb_buffer_pool_size = 128M" in command.files["server.cnf"]
    assert "init_file" not in command.files["server.cnf"]
    assert set(command.files) == {"server.cnf"}


def test_each_init_statement_is_one_line() -> None:
    lines = DATABASE.serve(PLAN).files["init.sql"].splitlines()
    assert len(lines) == 3
    assert all(line.endswith(";") and line.count(";") == 1 for line in lines)


@pytest.mark.parametrize("word", ["a'b", "a b", "", "a;b", "a\nb", "a\\b"])
def test_secrets_that_would_need_quoting_are_a_fault(word: str) -> None:
    for secrets in (Secrets("tare", word), Secrets(word, "x")):
        with pytest.raises(ValueError, match="letters, digits"):
            DATABASE.serve(replace(PLAN, secrets=secrets))


def test_settings_of_tare_are_refused_before_anything_is_made() -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match="reserved for tare"):
            command(replace(PLAN, settings={"datadir": "/"}))


def test_ready_is_an_answered_query_that_finds_the_account() -> None:
    inside = answering("1\n")
    assert DATABASE.ready(PLAN, inside)
    assert inside.asked[0][:2] == ("mariadb", "--defaults-file=/run/tare/client.cnf")


@pytest.mark.parametrize(
    "inside", [answering("0\n"), answering("", 1, "ERROR 2002 (HY000): Can't connect"), answering("")]
)
def test_anything_else_is_not_ready(inside: Inside) -> None:
    assert not DATABASE.ready(PLAN, inside)


def test_shutdown_drops_the_account_and_finishes_the_purge() -> None:
    inside = answering()
    DATABASE.shutdown(PLAN, inside)
    (argv,) = inside.asked
    assert argv[-1] == ("--execute=DROP USER IF EXISTS 'tare'@'%'; SET GLOBAL innodb_fast_shutdown = 0; SHUTDOWN")


def test_a_refused_shutdown_says_why() -> None:
    with pytest.raises(RunFailed, match="Access denied"):
        DATABASE.shutdown(PLAN, answering("", 1, "x\nERROR 1045 (28000): Access denied\n"))


def test_variables_of_a_real_server() -> None:
    variables = DATABASE.effective(PLAN, answering((DATA / "variables.tsv").read_text()))
    assert len(variables) == 656
    assert variables["version"] == "10.11.19-MariaDB-0+deb12u1"
    assert variables["port"] == "23306"
    assert variables["innodb_log_file_size"] == "100663296"
    assert variables["gtid_binlog_pos"] == ""
    assert variables["ft_boolean_syntax"] == '+ -><()~*:""&|'
    assert set(variables) >= PER_RUN


def test_escapes_are_read_back() -> None:
    variables = parse_variables((DATA / "escapes.tsv").read_text())
    assert variables["init_connect"] == 'SET @a="x\ty\nz\\\\w"'


@pytest.mark.parametrize("text", ["", "\n", "no tab\n", "a\tb\tc\n", "a\tb\na\tc\n", "\tx\n"])
def test_an_answer_that_is_no_list_of_variables_fails_the_run(text: str) -> None:
    with pytest.raises(RunFailed):
        parse_variables(text)


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["mariadb"], MariaDB)
    assert DATABASES["mariadb"].per_run == PER_RUN
