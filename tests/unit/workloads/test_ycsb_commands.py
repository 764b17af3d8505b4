"""What YCSB is told, and what a study may not say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.errors import RunFailed, StudyError
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.starter import starter
from tare.workloads import ClientCommand, Target
from tare.workloads.ycsb.parameters import YcsbParameters
from tare.workloads.ycsb.properties import DATA as DATA_PROPERTIES
from tare.workloads.ycsb.properties import MIXES, known_properties, read_properties, refusal
from tare.workloads.ycsb.ycsb import FILE, Ycsb

DATA = Path(__file__).parents[2] / "data" / "ycsb"
TARGET = Target("mariadb", Endpoint("127.0.0.1", 3307), Secrets(user="tare", password="abc123"))


def asked(**keys: Any) -> YcsbParameters:
    return YcsbParameters.model_validate_json(json.dumps({"measure_s": 5, **keys}))


def properties(command: ClientCommand | None) -> dict[str, str]:
    assert command is not None
    return {name: value for name, (value, _) in read_properties(command.files[FILE]).items()}


def test_the_measure_phase_is_bounded_by_time_and_times_from_both_sends() -> None:
    command = Ycsb().measure(asked(core_workload="a", threads=4, target=100), TARGET, "/run/tare")
    written = properties(command)
    assert command.argv[0] == "java"
    assert command.argv[-2:] == ("-P", f"/run/tare/{FILE}")
    assert "site.ycsb.Client" in command.argv
    assert written["operationcount"] == str(2**31 - 1)  # 0 would be no threads at all
    assert (written["maxexecutiontime"], written["threadcount"], written["target"]) == ("5", "4", "100")
    assert (written["measurement.interval"], written["measurementtype"]) == ("both", "hdrhistogram")
    assert (written["readproportion"], written["requestdistribution"]) == ("0.5", "zipfian")
    assert written["db"] == "tare.ycsb.JdbcBinding"
    assert written["db.url"] == "jdbc:mariadb://127.0.0.1:3307/tare"


def test_the_password_is_in_no_argument() -> None:
    for command in (Ycsb().load(asked(), TARGET, "/r"), Ycsb().measure(asked(), TARGET, "/r")):
        assert not [word for word in command.argv if "abc123" in word]
        assert properties(command)["db.passwd"] == "abc123"


def test_the_load_makes_the_table_and_is_judged_by_what_was_inserted() -> None:
    command = Ycsb().load(asked(records=1000), TARGET, "/r")
    assert "-load" in command.argv
    assert properties(command)["jdbc.createtable"] == "true"
    assert command.check_output is not None
    whole = ((DATA / "load.stdout").read_text(), (DATA / "load.stderr").read_text())
    command.check_output(*whole)
    short = Ycsb().load(asked(records=1001), TARGET, "/r").check_output
    assert short is not None
    with pytest.raises(RunFailed, match="did 1000 operations of 1001"):
        short(*whole)


def test_a_warm_up_inserts_nothing() -> None:
    warm = properties(Ycsb().warm_up(asked(core_workload="d", warmup_s=2), TARGET, "/r"))
    assert (warm["insertproportion"], warm["updateproportion"], warm["maxexecutiontime"]) == ("0", "0.05", "2")
    assert Ycsb().warm_up(asked(core_workload="d"), TARGET, "/r") is None


def test_a_users_own_ycsb_is_called_by_its_own_names_and_the_server_is_told_of_its_table() -> None:
    load = Ycsb().load(asked(home="/opt/mine", properties={"fieldcount": 2}), TARGET, "/r")
    assert "/opt/mine/conf:/opt/mine/lib/*:/opt/mine/jdbc-binding/lib/*" in load.argv
    assert load.setup_statements == (
        "CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, field0 TEXT, field1 TEXT)",
    )
    assert properties(load)["db"] == "site.ycsb.db.JdbcDBClient"
    assert "jdbc.createtable" not in properties(load)
    assert Ycsb().load(asked(), TARGET, "/r").setup_statements == ()


def test_a_users_own_ycsb_finds_a_keyspace_and_a_table_as_the_study_says() -> None:
    own = {"fieldcount": 1, "cassandra.replicationfactor": 3, "cassandra.tableoptions": "gc_grace_seconds = 5"}
    target = Target("cassandra", TARGET.endpoint, TARGET.secrets)
    assert Ycsb().load(asked(home="/opt/mine", properties=own), target, "/r").setup_statements == (
        "CREATE KEYSPACE tare WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
        "CREATE TABLE tare.usertable (y_id varchar PRIMARY KEY, field0 varchar) WITH gc_grace_seconds = 5",
    )


def test_a_name_of_a_table_that_would_be_more_than_a_name_is_refused() -> None:
    own = asked(home="/opt/mine", properties={"table": "t; DROP TABLE u"})
    with pytest.raises(StudyError, match="not a plain name"):
        Ycsb().load(own, TARGET, "/r")


def test_another_database_is_refused_by_name() -> None:
    target = Target("fake", TARGET.endpoint, TARGET.secrets)
    with pytest.raises(StudyError, match="does not support fake"):
        Ycsb().measure(asked(), target, "/r")


def test_a_binding_that_does_not_drive_the_database_is_refused() -> None:
    with pytest.raises(StudyError, match=r"the binding cql does not support mariadb .jdbc does"):
        Ycsb().measure(asked(binding="cql"), TARGET, "/r")
    assert Ycsb().measure(asked(binding="jdbc"), TARGET, "/r")


def test_the_data_set_is_records_and_their_shape_and_not_the_mix() -> None:
    shape = {"fieldlength": 10, "readproportion": 1}
    assert Ycsb().dataset(asked(records=7, properties=shape, core_workload="c", threads=3)) == {
        "record_count": 7,
        "fieldlength": "10",
    }


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"properties": {"readpropotion": 1}}, "no property 'readpropotion' .did you mean \"readproportion\""),
        ({"properties": {"recordcount": 1}}, "set by the key records"),
        ({"properties": {"fieldcount": "ten"}}, "must be a whole number from 1 to 2147483647, and not 'ten'"),
        ({"properties": {"fieldcount": 10.0}}, r"a whole number .*, and not '10\.0'"),
        ({"properties": {"insertcount": 2**31}}, "a whole number from 1 to 2147483647"),
        (
            {"properties": {"readproportion": "half"}},
            r"readproportion must be a number from 0 to .*, and not 'half'",
        ),
        ({"properties": {"insertproportion": -0.1}}, r"a number from 0 to 1,000,000, and not '-0\.1'"),
        ({"properties": {"readallfields": "yes"}}, "readallfields must be true or false, and not 'yes'"),
        ({"properties": {"insertorder": "hash"}}, "insertorder must be one of hashed, ordered, and not 'hash'"),
        ({"properties": {"mongodb.writeConcern": "w1"}}, "mongodb.writeConcern must be one of errors_ignored"),
        ({"properties": {"cassandra.readconsistencylevel": "one"}}, "must be one of ANY, ONE"),
        ({"properties": {"hdrhistogram.percentiles": "50"}}, "set by tare: leave it out"),
        ({"properties": {"db.url": "jdbc:mariadb://elsewhere"}}, "db.url is set by tare"),
        ({"properties": {"workload": "site.ycsb.workloads.CoreWorkload"}}, "workload is always site.ycsb"),
        (
            {"target": 1, "threads": 3},
            "waits more than 2.1 s between operations, which YCSB does not support: use fewer",
        ),
        ({"properties": {"table": "usertable\n"}}, "table must be plain ASCII on one line"),
        ({"properties": {"fieldnameprefix": "f\u00fc"}}, "must be plain ASCII"),
        ({"properties": {"readproportion": 0, "updateproportion": 0}}, "no kind of operation has a share above 0"),
        ({"properties": {"insertstart": 500}}, "insertstart needs insertcount"),
        ({"properties": {"insertstart": 500, "insertcount": 501}}, "go beyond the 1000 records"),
        ({"core_workload": "e"}, "need `operations`"),
        ({"operations": 3, "threads": 4}, "fewer than the 4 threads"),
        ({"measure_s": 1.5}, "whole seconds"),
        ({"window_s": 9}, "longer than the measure phase"),
        ({"property_file": "/no/such.file"}, "cannot read the property file"),
        ({"core_workload": "g"}, "core_workload"),
        ({"heap": "lots"}, "heap"),
    ],
)
def test_what_cannot_be_meant_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        asked(**keys)


@pytest.mark.parametrize(
    ("name", "value"),
    [("db.batchsize", 10), ("jdbc.batchupdateapi", True), ("batchsize", 10), ("cassandra.tracing", True)],
)
def test_a_property_that_only_a_ycsb_of_ones_own_reads_is_refused_without_one(name: str, value: int) -> None:
    with pytest.raises(ValidationError, match=f"{name} applies only to YCSB's own binding"):
        YcsbParameters(measure_s=10, properties={name: value})
    assert YcsbParameters(measure_s=10, home="/opt/mine", properties={name: value}).properties == {name: value}


def test_a_property_file_counts_where_the_study_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text(
        "# mine\nworkload=site.ycsb.workloads.CoreWorkload\nrecordcount = 500\noperationcount: 0\n"
        "readproportion=0.9\nupdate\\\nproportion=0.1\n"
    )
    written = asked(property_file=str(file), properties={"readproportion": 0.8})
    assert (written.records, written.operations, written.property_file) == (500, None, None)
    assert written.mix == {"readproportion": "0.8", "updateproportion": "0.1"}
    assert asked(property_file=str(file), records=9).records == 9


def test_a_wrong_key_in_a_property_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("recordcount=5\nreadproportoin=1\n")
    with pytest.raises(ValidationError, match=r"mine:2: YCSB has no property 'readproportoin'"):
        asked(property_file=str(file))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "workload is always site.ycsb.workloads.CoreWorkload"),
        ("scanlengthdistribution=unifrom", "scanlengthdistribution must be one of uniform, zipfian"),
        ("measurement.trackjvm=True", "measurement.trackjvm must be true or false, and not 'True'"),
        ("threadcount=-1", "threadcount must be a whole number from 1"),
        ("recordcount=1e3", "recordcount must be a whole number from 0"),
        ("measurementtype=hdr", "measurementtype must be one of hdrhistogram, "),
        ("exportfile=/tmp/out", "exportfile is set by tare"),
    ],
)
def test_what_ycsb_would_do_otherwise_than_a_property_file_says_is_refused(
    line: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine"
    file.write_text(f"recordcount=5\n{line}\n")
    with pytest.raises(ValidationError, match=f"mine:2: {why}"):
        asked(property_file=str(file))


def test_a_property_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"\xef\xbb\xbfrecordcount=100\r\n")
    assert asked(property_file=str(tmp_path / "mine")).records == 100


def test_a_property_file_of_an_older_ycsb_names_the_same_workload(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("workload=com.yahoo.ycsb.workloads.CoreWorkload\nfieldcount=3\n")
    assert asked(property_file=str(tmp_path / "mine")).mix == {"fieldcount": "3"}


def test_every_mix_and_every_property_of_the_data_is_one_that_a_study_may_set() -> None:
    known = known_properties()
    assert set(DATA_PROPERTIES) <= set(known)
    assert not [refusal(*each) for mix in MIXES.values() for each in mix.items() if refusal(*each)]


def test_a_study_names_its_property_file_relative_to_itself_and_keeps_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("readproportion=1\nfieldlength=7\n")
    text = starter("mine")
    begin, end = text.index("\nworkload:"), text.index("\n\n", text.index("\nworkload:"))
    ycsb = "\nworkload:\n  name: ycsb\n  property_file: mine\n  measure_s: 5\n"
    text = text[:begin] + ycsb + text[end:]
    text = "\n".join(line for line in text.splitlines() if "workload." not in line)
    text = text.replace("name: rotate", "name: interleave").replace("generations:", "blocks:")
    text = "\n".join(line for line in text.splitlines() if "cpus:" not in line)
    study = loads(text, installed(), file=str(tmp_path / "study.yaml"))
    kept = study.arms[0].settings.workload
    assert (kept["properties"], kept["property_file"]) == ({"readproportion": "1", "fieldlength": "7"}, None)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\n", {"a": ("1", 1)}),
        ("  a : 1 \n", {"a": ("1", 1)}),
        ("a 1\n", {"a": ("1", 1)}),
        ("# c\n! d\n\na=\n", {"a": ("", 4)}),
        ("a=1,\\\n  2\nb=3\n", {"a": ("1,2", 1), "b": ("3", 3)}),
        ("a=b=c\n", {"a": ("b=c", 1)}),
    ],
)
def test_property_files_are_read_as_java_reads_them(text: str, properties: dict[str, tuple[str, int]]) -> None:
    assert read_properties(text) == properties
