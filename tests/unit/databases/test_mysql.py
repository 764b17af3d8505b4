"""MySQL's commands and files, and the reading of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.mysql import OWN, PER_RUN, MySQL, server_product
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

VARIABLES = (Path(__file__).parents[2] / "data" / "mysql" / "variables.tsv").read_text()
DATABASE = MySQL()
PLAN = ServerPlan(
    data_dir="/var/lib/mysql",
    run_dir="/run/tare",
    listen="127.0.0.1",
    port=33061,
    settings={"innodb_buffer_pool_size": "128M"},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Gives its answers one after the other, the last one for ever, and keeps what was asked."""

    answers: list[Completed]
    asked: list[str] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        assert argv[:2] == ("mysql", "--defaults-file=/run/tare/client.cnf")
        self.asked.append(argv[-1].removeprefix("--execute="))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def answering(*texts: str, code: int = 0, stderr: str = "") -> Inside:
    return Inside([Completed((), code, text.encode(), stderr.encode()) for text in texts or ("",)])


def test_the_server_reads_one_option_file_that_holds_all_that_tare_sets() -> None:
    command = DATABASE.serve(PLAN)
    assert command.argv == ("mysqld", "--defaults-file=/run/tare/server.cnf")
    assert command.files["server.cnf"].splitlines() == [
        "[mysqld]",
        "datadir = /var/lib/mysql",
        "bind_address = 127.0.0.1",
        "port = 33061",
        "socket = /run/tare/mysqld.sock",
        "pid_file = /run/tare/mysqld.pid",
        "tmpdir = /run/tare",
        "secure_file_priv = NULL",
        "skip_name_resolve = ON",
        "mysqlx = OFF",
        "plugin_load_add = auth_socket.so",
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
    assert command.argv == ("mysqld", "--defaults-file=/run/tare/server.cnf", "--initialize-insecure")
    assert set(command.files) == {"server.cnf"}
    assert "innodb_buffer_pool_size = 128M" in command.files["server.cnf"]
    assert "init_file" not in command.files["server.cnf"]


def test_accounts_are_made_outside_of_the_binary_log_and_root_goes() -> None:
    lines = DATABASE.serve(PLAN).files["init.sql"].splitlines()
    assert all(line.endswith(";") and line.count(";") == 1 for line in lines)
    assert lines[0] == "SET sql_log_bin = 0;"
    assert "DROP USER IF EXISTS 'root'@'localhost';" in lines


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_tare_sets_of_this_server_is_refused(name: str) -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match="reserved for tare"):
            command(replace(PLAN, settings={name: "x"}))


def test_ready_is_an_answered_query_that_finds_the_account() -> None:
    assert DATABASE.ready(PLAN, answering("1\n"))
    for inside in (answering("0\n"), answering("", code=1, stderr="ERROR 2002 (HY000)"), answering("")):
        assert not DATABASE.ready(PLAN, inside)


def test_variables_of_a_real_server() -> None:
    settings = DATABASE.effective(PLAN, answering(VARIABLES, "caching_sha2_password\n"))
    assert len(settings) == 604 + 2
    assert settings["version"] == "9.7.4-2"
    assert settings["server.product"] == "MySQL"
    assert settings["account.plugin"] == "caching_sha2_password"
    in_replicas_too = {"relay_log", "relay_log_basename", "relay_log_index"}
    assert set(settings) >= PER_RUN - in_replicas_too


def test_shutdown_drops_the_account_and_finishes_the_purge() -> None:
    inside = answering()
    DATABASE.shutdown(PLAN, inside)
    assert inside.asked == [
        "SET sql_log_bin = 0; DROP USER IF EXISTS 'tare'@'%'; SET GLOBAL innodb_fast_shutdown = 0; SHUTDOWN"
    ]


def test_a_refused_shutdown_says_why() -> None:
    with pytest.raises(RunFailed, match="MySQL did not let tare shut it down: ERROR 1045"):
        DATABASE.shutdown(PLAN, answering(code=1, stderr="x\nERROR 1045 (28000): Access denied\n"))


@pytest.mark.parametrize(
    ("version", "comment", "who"),
    [
        ("8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19", "Percona Server"),
        ("8.4.3", "MySQL Community Server - GPL", "MySQL"),
        ("9.7.4-2", "(Debian)", "MySQL"),
    ],
)
def test_who_answers_is_what_the_server_says(version: str, comment: str, who: str) -> None:
    assert server_product({"version": version, "version_comment": comment}) == who


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"version": "10.11.19-MariaDB-0+deb12u1", "version_comment": "Debian 12"}, "MariaDB answers"),
        ({"version": "5.7.44", "version_comment": "MySQL Community Server (GPL)"}, "too old"),
        ({"version_comment": "x"}, "no version"),
    ],
)
def test_another_server_fails_the_run(variables: dict[str, str], why: str) -> None:
    with pytest.raises(RunFailed, match=why):
        server_product(variables)


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["mysql"], MySQL)
