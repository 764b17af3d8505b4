"""FerretDB's programs and files, and the reading of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.ferretdb.ferretdb import FerretDB
from tare.databases.ferretdb.together import read_steps
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

DATA = Path(__file__).parents[3] / "data"
ANSWERS = (DATA / "ferretdb" / "answers.txt").read_text()
DATABASE = FerretDB()
PLAN = ServerPlan(
    data_dir="/var/lib/postgresql/data",
    run_dir="/run/tare",
    listen="0.0.0.0",
    port=33060,
    settings={"shared_buffers": "1GB", "documentdb.enableNewOperatorSelectivity": True},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Answers each program by its first words, and keeps what was asked."""

    answers: dict[str, Completed]
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        self.asked.append(tuple(argv))
        return self.answers[argv[0]]


def done(text: str = "", code: int = 0, stderr: str = "") -> Completed:
    return Completed((), code, text.encode(), stderr.encode())


def test_postgresql_listens_to_its_socket_alone_and_documentdb_reaches_it_there() -> None:
    """FerretDB has the port: a connection of DocumentDB's own to `localhost` would be answered by it, or never."""
    lines = DATABASE.serve(replace(PLAN, settings={"shared_buffers": "1GB"})).files["postgresql.conf"].splitlines()
    assert lines[0] == "include '/var/lib/postgresql/data/postgresql.conf'"
    assert "listen_addresses = ''" in lines
    assert "documentdb.localhost_connection_string = 'host=/run/tare'" in lines
    assert "shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'" in lines
    assert "cron.database_name = 'postgres'" in lines
    assert lines[-1] == "shared_buffers = '1GB'"


def test_one_program_starts_both_and_the_extension_is_made_between() -> None:
    command = DATABASE.serve(replace(PLAN, settings={}))
    assert command.argv == ("python3", "-I", "/run/tare/together.py", "run", "/run/tare/steps")
    postgres, until, once, ferretdb = read_steps(command.files["steps"])
    assert postgres[:3] == ["start", "SIGINT", "postgres"]
    assert (until[0], until[-1]) == ("until", "--command=SELECT 1")
    assert (once[0], once[-1]) == ("once", "--command=CREATE EXTENSION IF NOT EXISTS documentdb CASCADE")
    assert ferretdb[:4] == ["start", "SIGTERM", "ferretdb", "--listen-addr=0.0.0.0:33060"]
    assert "--postgresql-url=postgres://postgres@/postgres?host=/run/tare&port=33060" in ferretdb
    assert {"--no-auth", "--telemetry=disable"} <= set(ferretdb)
    assert command.files["pg_hba.conf"] == "local all all peer map=tare\n"
    assert command.files["pg_ident.conf"] == "tare postgres all\n"


@pytest.mark.parametrize(
    "name", ["shared_preload_libraries", "cron.database_name", "documentdb.localhost_connection_string", "port"]
)
def test_settings_of_tare_are_refused(name: str) -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match="reserved for tare"):
            command(replace(PLAN, settings={name: "x"}))


def test_its_data_directory_is_made_as_postgresqls() -> None:
    argv = DATABASE.initialise(replace(PLAN, settings={"data_checksums": True})).argv
    assert (argv[0], argv[-1]) == ("initdb", "--data-checksums")


def test_ready_is_a_command_that_goes_through_both() -> None:
    inside = Inside({"python3": done("{'databases': [], 'totalSize': 18388671, 'ok': 1.0}\n")})
    assert DATABASE.ready(PLAN, inside)
    assert inside.asked[0][4:] == ("127.0.0.1", "33060", "", "{'listDatabases': 1}")
    refused = done("{'ok': 0.0, 'errmsg': 'no', 'code': 1}\n")
    for answer in (done("", 1, "[Errno 111] Connection refused"), refused):
        assert not DATABASE.ready(PLAN, Inside({"python3": answer}))


def test_what_it_tells_bears_the_name_of_the_server_that_answered() -> None:
    settings = (DATA / "postgresql" / "settings.json").read_text()
    effective = DATABASE.effective(PLAN, Inside({"psql": done(settings), "python3": done(ANSWERS)}))
    assert effective["server.name"] == "FerretDB"
    assert effective["server.version"] == "v2.7.0"
    assert effective["server.protocol"] == "7.0.77"
    assert effective["parameter.featureCompatibilityVersion.version"] == "7.0"
    assert effective["shared_buffers"] == "128MB"
    assert not [name for name in effective if name.endswith(".ok")]


def test_another_server_in_its_place_fails_the_run() -> None:
    other = done("{'version': '7.0.14', 'ok': 1.0}\n{'ok': 1.0}\n")
    with pytest.raises(RunFailed, match="MongoDB answers instead of FerretDB"):
        DATABASE.effective(PLAN, Inside({"psql": done("{}"), "python3": other}))


def test_shutdown_tidies_up_and_ends_both() -> None:
    inside = Inside({"psql": done(), "python3": done()})
    DATABASE.shutdown(PLAN, inside)
    assert [argv[0] for argv in inside.asked] == ["psql", "python3"]
    assert inside.asked[1][-2:] == ("end", "/run/tare/steps")
    with pytest.raises(RunFailed, match="shut it down: no such process"):
        DATABASE.shutdown(PLAN, Inside({"psql": done(), "python3": done("", 1, "no such process\n")}))


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["ferretdb"], FerretDB)
