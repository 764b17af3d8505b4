"""mongod: its command, file and questions. The answers are put together by its documentation, not captured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.mongodb.mongodb import CACHE_KEY, MongoDB, parse_effective
from tare.databases.registry import DATABASES
from tare.errors import RunFailed, StudyError
from tare.images.recipe.file import read_recipe, tree_files
from tare.sites import Completed

DATA = Path(__file__).parents[3] / "data" / "ferretdb"
REFUSED = "MongoServerError: no such command: 'shutdown'\n"
"""What mongosh 2.5.8 told of a server that would not (FerretDB 2.7.0)."""
DATABASE = MongoDB()
PLAN = ServerPlan(
    data_dir="/data/db",
    run_dir="/run/tare",
    listen="127.0.0.1",
    port=33060,
    settings={"wiredTigerCacheSizeGB": 1.5, "setParameter.ttlMonitorEnabled": False},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)
TOLD: dict[str, Any] = {
    "build": {"version": "7.0.14", "gitVersion": "ce59cfc6a3c5e5c067dca0d30697edd68d4f5188", "ok": 1},
    "parameters": {"ttlMonitorEnabled": False, "internalQueryFrameworkControl": "trySbeRestricted", "ok": 1},
    "options": {"argv": ["mongod"], "parsed": {"net": {"port": 33060}, "storage": {"dbPath": "/data/db"}}, "ok": 1},
    "status": {"wiredTiger": {"cache": {"maximum bytes configured": 1610612736}}, "ok": 1},
}


def test_the_recipe_of_the_page_makes_an_image_of_a_directory(tmp_path: Path) -> None:
    page = (DATA.parents[2] / "docs" / "reference" / "databases" / "mongodb.md").read_text(encoding="utf-8")
    text = next(block for block in page.split("```yaml\n") if block.startswith("format: 1")).partition("```")[0]
    (tmp_path / "mongodb.yaml").write_text(text)
    program = tmp_path / "mongodb" / "bin" / "mongod"
    program.parent.mkdir(parents=True)
    program.write_text("")
    recipe = read_recipe(tmp_path / "mongodb.yaml")
    (tree,) = recipe.trees
    assert [(name, file) for name, file in tree_files(tmp_path / "mongodb.yaml", tree)] == [("bin/mongod", program)]
    assert (recipe.config.data_dir, recipe.config.user) == ("/data/db", "mongodb")
    assert dict(recipe.config.env)["PATH"].startswith(f"{tree.path}/bin:")


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


def test_the_server_reads_one_file_of_the_studys_settings_and_tares() -> None:
    command = DATABASE.serve(PLAN)
    assert command.argv == ("mongod", "--config", "/run/tare/mongod.conf")
    assert json.loads(command.files["mongod.conf"]) == {
        "net": {"bindIp": "127.0.0.1", "port": 33060, "unixDomainSocket": {"pathPrefix": "/run/tare"}},
        "setParameter": {"ttlMonitorEnabled": False},
        "storage": {"dbPath": "/data/db", "wiredTiger": {"engineConfig": {"cacheSizeGB": 1.5}}},
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"net.port": 1}, "reserved for tare"),
        ({"storage.dbPath": "/"}, "reserved for tare"),
        ({"security.authorization": "enabled"}, "reserved for tare"),
        ({"systemLog.path": "/x"}, "reserved for tare"),
        ({"cacheSize": 1}, "not a key of mongod's"),
        ({"a b": 1}, "not a setting"),
        ({"wiredTigerCacheSizeGB": 1, CACHE_KEY: 2}, "given twice"),
        ({"storage.wiredTiger": "x", CACHE_KEY: 2}, "given twice"),
    ],
)
def test_settings_that_no_study_may_make(settings: dict[str, str | int], message: str) -> None:
    for command in (DATABASE.initialise, DATABASE.serve):
        with pytest.raises(StudyError, match=message):
            command(replace(PLAN, settings=settings))


def test_ready_is_an_answered_ping() -> None:
    inside = answering('{"ping":{"ok":1}}\n')
    assert DATABASE.ready(PLAN, inside)
    ((*argv, script),) = inside.asked
    assert argv == ["mongosh", "--quiet", "--norc", "--host", "127.0.0.1", "--port", "33060", "--eval"]
    assert script == "print(EJSON.stringify({ping: db.adminCommand({ping: 1})}))"
    for other in (
        answering("", 1, "ECONNREFUSED"),
        answering(""),
        answering('{"ping":{"ok":0}}'),
        answering("null"),
    ):
        assert not DATABASE.ready(PLAN, other)


def test_parameters_options_and_cache_are_told_with_the_name_of_the_server() -> None:
    effective = DATABASE.effective(PLAN, answering(json.dumps(TOLD)))
    assert (effective["server.name"], effective["server.version"]) == ("MongoDB", "7.0.14")
    assert effective["setParameter.ttlMonitorEnabled"] == "False"
    assert effective["net.port"] == "33060"
    assert effective["storage.dbPath"] == "/data/db"
    assert effective["cache.maximum_bytes_configured"] == "1610612736"
    assert "net.port" in DATABASE.per_run
    assert "cache.maximum_bytes_configured" in DATABASE.derived_settings["sut.settings.wiredTigerCacheSizeGB"]


def test_a_server_that_says_who_else_it_is_bears_that_name() -> None:
    percona = {**TOLD, "build": {"version": "7.0.14-8", "psmdbVersion": "7.0.14-8", "ok": 1}}
    assert parse_effective(json.dumps(percona))["server.name"] == "Percona Server for MongoDB"


def test_what_mongosh_told_of_a_real_server_is_read_and_ferretdb_is_not_taken_for_mongodb() -> None:
    """Captured: mongosh 2.5.8 asked FerretDB 2.7.0 all that `effective` asks."""
    with pytest.raises(RunFailed, match="FerretDB answers instead of MongoDB"):
        DATABASE.effective(PLAN, answering((DATA / "mongosh.json").read_text()))


def test_a_server_without_wiredtiger_has_no_such_cache() -> None:
    effective = parse_effective(json.dumps({**TOLD, "status": {"ok": 1}}))
    assert "cache.maximum_bytes_configured" not in effective


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps({**TOLD, "options": {"ok": 1}}), json.dumps({**TOLD, "build": {"ok": 1}})]
)
def test_answers_that_tell_no_settings_fail_the_run(text: str) -> None:
    with pytest.raises(RunFailed):
        parse_effective(text)


def test_a_refused_question_fails_the_run() -> None:
    refused = {**TOLD, "status": {"ok": 0, "errmsg": "not allowed"}}
    with pytest.raises(RunFailed, match="what it was asked: status"):
        parse_effective(json.dumps(refused))


def test_a_shutdown_ends_the_connection_or_is_refused() -> None:
    DATABASE.shutdown(PLAN, answering("", 1, "MongoNetworkError: connection closed"))
    DATABASE.shutdown(PLAN, answering('{"shutdown":{"ok":1}}'))
    for refused in (answering('{"shutdown":{"ok":0}}'), answering("", 1, REFUSED)):
        with pytest.raises(RunFailed, match="shut it down"):
            DATABASE.shutdown(PLAN, refused)


def test_it_is_registered() -> None:
    assert isinstance(DATABASES["mongodb"], MongoDB)
