"""Settings of a study become lines of an option file, and nothing but the lines that they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.databases import Secrets, ServerPlan
from tare.databases.mariadb import MariaDB
from tare.databases.mysql import MySQL
from tare.databases.option_file import OUTSIDE_DATA_DIR, RESERVED, Setting, check_settings, render_section
from tare.errors import StudyError


def test_every_kind_of_value_has_its_spelling() -> None:
    settings: dict[str, Setting] = {
        "innodb_buffer_pool_size": "128M",
        "max-connections": 200,
        "innodb_max_dirty_pages_pct": 75.5,
        "innodb_flush_log_at_trx_commit": 0,
        "general_log": True,
        "performance_schema": False,
        "sql_mode": "",
        "init_connect": "SET NAMES utf8mb4; # no comment",
    }
    assert render_section("mariadbd", settings).splitlines() == [
        "[mariadbd]",
        "innodb_buffer_pool_size = 128M",
        "max-connections = 200",
        "innodb_max_dirty_pages_pct = 75.5",
        "innodb_flush_log_at_trx_commit = 0",
        "general_log = ON",
        "performance_schema = OFF",
        'sql_mode = ""',
        'init_connect = "SET NAMES utf8mb4; # no comment"',
    ]


@pytest.mark.parametrize(
    "name",
    ["", "!include", "a b", "a=b", "a\nb", "[client]", "Datadir", "#x", "-x", "a\x00", "ä", "a.b"],
)
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match="not a server setting"):
        check_settings({name: 1})


@pytest.mark.parametrize("value", ["a\nskip_grant_tables", "a\rb", 'a"b', "a'b", "a\\nb", "a\x00b", "é", "a\tb"])
def test_a_value_that_could_leave_its_line_is_refused(value: str) -> None:
    with pytest.raises(StudyError, match="cannot be written in an option file"):
        check_settings({"init_connect": value})


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_what_tare_sets_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match=r"reserved for tare"):
        check_settings({name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        "skip-grant-tables",
        "loose_datadir",
        "loose-skip_grant_tables",
        "datad",
        "skip-networking",
        "soc",
        "bind-addr",
    ],
)
def test_other_spellings_of_what_tare_sets_are_refused(name: str) -> None:
    with pytest.raises(StudyError, match=r"reserved for tare"):
        check_settings({name: "x"})


@pytest.mark.parametrize("name", sorted(OUTSIDE_DATA_DIR))
def test_data_outside_the_data_directory_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match="outside the data directory"):
        check_settings({name: "/elsewhere"})


def test_one_setting_in_two_spellings_is_refused() -> None:
    with pytest.raises(StudyError, match="given twice"):
        check_settings({"max_connections": 1, "max-connections": 2})


@pytest.mark.parametrize(
    "name", ["innodb_log_file_size", "port_extra", "tmp_table_size", "log_bin", "user_stat_tables", "skip_log_bin"]
)
def test_settings_that_only_look_alike_are_allowed(name: str) -> None:
    check_settings({name: 1})


@given(
    st.dictionaries(
        st.text(max_size=20), st.one_of(st.text(max_size=30), st.integers(), st.booleans(), st.floats()), max_size=4
    )
)
def test_no_settings_make_more_lines_than_settings(settings: dict[str, Setting]) -> None:
    try:
        check_settings(settings)
    except StudyError:
        return
    lines = render_section("mariadbd", settings).split("\n")
    assert len(lines) == len(settings) + 2
    assert all(line.isprintable() and " = " in line for line in lines[1:-1])


@pytest.mark.parametrize("value", ["", "<script>", "../../etc", True, 1.5, "3GB", "x"])
def test_a_size_that_is_none_is_refused(value: Setting) -> None:
    with pytest.raises(StudyError, match="must be a size"):
        check_settings({"innodb_buffer_pool_size": value})


@pytest.mark.parametrize("value", [0, -1, 4096, "4096", "512M", "2g"])
def test_a_size_is_a_number_with_a_suffix_or_without(value: Setting) -> None:
    check_settings({"innodb-buffer-pool-size": value})


def test_names_may_be_looked_up() -> None:
    plan = ServerPlan("/data", "/run/tare", "127.0.0.1", 1, {"skip_name_resolve": False}, Secrets("u", "p"))
    for server in (MariaDB(), MySQL()):
        lines = server.serve(plan).files["server.cnf"].splitlines()
        assert [line for line in lines if "name_resolve" in line] == ["skip_name_resolve = OFF"]
    with pytest.raises(StudyError, match="must be true or false"):
        MariaDB().serve(replace(plan, settings={"skip_name_resolve": "localhost"}))
