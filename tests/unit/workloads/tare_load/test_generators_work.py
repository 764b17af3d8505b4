"""Scripts of sysbench and workloads of YCSB by tare-load: commands, data sets, and refusals with their lines."""

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
from tare.study.registry import built_in
from tare.workloads import Target
from tare.workloads.registry import BUILT_IN as WORKLOADS
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.tare_load import TareLoad

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "workloads" / "tare-load-ycsb.md"
STUDY = """
format: 1
name: tiny
question: Is it read?
sut: {image: mariadb, database: DATABASE, deployment: container}
client: {image: tare-load, deployment: bare}
workload:
  name: tare-load
  measure_s: 30
WORK
factors:
  path: {sets: sut.network, levels: [host, bridge]}
baseline: host
"""


def target(database: str) -> Target:
    return Target(database, Endpoint("127.0.0.1", 3306), Secrets("tare", "geheim7"))


def parameters(**given: Any) -> TareLoadParameters:
    return TareLoadParameters.model_validate_json(json.dumps({"measure_s": 2.0, **given}))


def refused(**given: Any) -> str:
    with pytest.raises(ValidationError) as refusal:
        parameters(**given)
    return str(refusal.value)


def study_refused(work: str, database: str = "mariadb") -> StudyError:
    text = STUDY.replace("WORK", work).replace("DATABASE", database)
    text = text.replace("image: mariadb", "image: redis-7" if database == "redis" else "image: mariadb")
    with pytest.raises(StudyError) as refusal:
        loads(text, built_in())
    return refusal.value


def test_a_script_is_sent_with_every_option_said() -> None:
    given = {"script": "oltp_read_write", "tables": 8, "table_size": 500, "range_selects": False, "skip_trx": True}
    argv = TareLoad().measure(parameters(sysbench=given, connections=16), target("mariadb"), "/run/tare").argv
    assert argv[:2] == ("tare-load", "run")
    for word in (
        "--protocol=mysql", "--user=tare", "--database=tare", "--sysbench=oltp_read_write", "--tables=8",
        "--table-size=500", "--no-range-selects", "--skip-trx", "--rand-type=special", "--index-updates=1",
    ):  # fmt: skip
        assert word in argv


def test_tables_are_made_by_the_program_itself() -> None:
    command = TareLoad().load(parameters(sysbench={"tables": 2}), target("postgresql"), "/run/tare")
    assert command.argv[:3] == ("tare-load", "load", "--protocol=postgresql")
    assert command.setup_statements == ()
    assert not [word for word in command.argv if word.startswith(("--warm-up", "--duration", "--range-size"))]


def test_all_scripts_share_the_tables_of_one_size() -> None:
    one = TareLoad().dataset(parameters(sysbench={"script": "oltp_insert", "tables": 2}))
    assert one == TareLoad().dataset(parameters(sysbench={"range_size": 5, "tables": 2}, connections=9))
    assert one != TareLoad().dataset(parameters(sysbench={"tables": 3}))
    assert one != TareLoad().dataset(parameters(sysbench={"tables": 2, "rand_type": "uniform"}))


def test_only_scripts_that_commit_wait_for_the_disk() -> None:
    assert parameters(sysbench={"script": "oltp_read_only"}).waits_for_disk is None
    assert "commit waits" in str(parameters(sysbench={"script": "oltp_insert"}).waits_for_disk)


def test_ycsbs_properties_are_handed_over_in_a_file() -> None:
    own = parameters(
        ycsb={"core_workload": "a", "records": 50, "properties": {"fieldcount": 3, "dataintegrity": True}}
    )
    command = TareLoad().measure(own, target("postgresql"), "/run/tare")
    lines = command.files["ycsb.properties"].splitlines()
    for line in ("recordcount=50", "readproportion=0.5", "fieldcount=3", "dataintegrity=true"):
        assert line in lines
    assert "-P/run/tare/ycsb.properties" in command.argv
    assert "--duration=2.0" in command.argv
    assert own.work.kinds == ("read", "update")


def test_a_load_makes_the_table_where_the_database_has_any() -> None:
    own = parameters(ycsb={"records": 50})
    made = {
        database: TareLoad().load(own, target(database), "/run/tare").files["ycsb.properties"]
        for database in ("mysql", "cassandra", "redis")
    }
    assert "jdbc.createtable=true" in made["mysql"]
    assert "cassandra.createtable=true" in made["cassandra"]
    assert "createtable" not in made["redis"]


def test_a_server_without_authentication_is_given_neither_user_nor_password() -> None:
    argv = TareLoad().measure(parameters(ycsb={}), target("ferretdb"), "/run/tare").argv
    assert "--protocol=mongodb" in argv
    assert "--database=tare" in argv
    assert not [word for word in argv if word.startswith(("--user", "--password"))]


def test_copies_of_a_row_are_loaded_at_every_replica() -> None:
    own = parameters(ycsb={"properties": {"cassandra.replicationfactor": 3}})
    assert own.replicas == 3
    loading = TareLoad().load(own, target("cassandra"), "/run/tare").files["ycsb.properties"]
    assert "cassandra.writeconsistencylevel=ALL" in loading
    with pytest.raises(StudyError, match=r"cassandra\.replicationfactor is for another database"):
        TareLoad().load(own, target("redis"), "/run/tare")


def test_so_many_operations_end_a_phase_before_its_time() -> None:
    argv = TareLoad().measure(parameters(ycsb={"operations": 70}), target("redis"), "/run/tare").argv
    assert not [word for word in argv if word.startswith("--duration")]
    assert "ends a closed loop or one `rate`" in refused(
        ycsb={"operations": 70}, stages=[{"seconds": 1.0, "rate": 5.0}]
    )


def test_a_property_file_is_read_with_the_study_and_kept_in_it(tmp_path: Path) -> None:
    file = tmp_path / "workloadx"
    file.write_text(
        "# as YCSB has it\nrecordcount=70\noperationcount=500\nworkload=site.ycsb.workloads.CoreWorkload\n"
        "readproportion=1\nupdateproportion: 0\n"
    )
    own = parameters(ycsb={"property_file": str(file), "records": 80})
    assert own.ycsb is not None
    assert (own.ycsb.records, own.ycsb.operations) == (80, 500)
    assert own.ycsb.property_file is None
    assert own.work.kinds == ("read",)
    assert TareLoadParameters.model_validate_json(own.model_dump_json()) == own


def test_a_wrong_line_of_a_property_file_is_told_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "workloadx"
    file.write_text("recordcount=70\nreadproportion=most\n")
    assert f"{file}:2: readproportion must be" in refused(ycsb={"property_file": str(file)})
    file.write_text("recordcount=70\n\nthreadcount=4\n")
    assert f"{file}:3: threadcount is set by the key workload.connections" in refused(
        ycsb={"property_file": str(file)}
    )
    assert "cannot read the property file" in refused(ycsb={"property_file": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("properties", "line", "why"),
    [
        ("{readproportion: 1, fieldcuont: 3}", "fieldcuont", 'did you mean "fieldcount"?'),
        ("{requestdistribution: zipf}", "requestdistribution", "ycsb-compat"),
        ("{spin.sleep: true}", "spin.sleep", "never spins"),
        ("{recordcount: 5}", "recordcount", "set by the key workload.ycsb.records"),
        ("{target: 5}", "target", "set by the key workload.rate"),
        ("{redis.host: there}", "redis.host", "set by tare"),
        ("{fieldlengthdistribution: histogram}", "fieldlengthdistribution", "constant, uniform, zipfian"),
        ("{exponential.percentile: 100}", "exponential.percentile", "from 0.001 to 99.999"),
        ("{core_workload_insertion_retry_limit: 3}", "core_workload_insertion_retry_limit", "not tried again"),
        ("{table: user table}", "table", "a plain name"),
    ],
)
def test_each_wrong_property_has_its_own_line(properties: str, line: str, why: str) -> None:
    words = properties.strip("{}").split(", ")
    written = "\n".join(f"      {word}" for word in words)
    error = study_refused(f"  ycsb:\n    properties:\n{written}")
    assert f"workload.ycsb.properties.{line}" in str(error)
    assert f"study.yaml:{11 + len(words)}:" in str(error)
    assert why in f"{error} {error.hint}"


@pytest.mark.parametrize(
    ("work", "database", "why"),
    [
        ("", "mariadb", "there is nothing to send; `job`, `sysbench` or `ycsb` says what"),
        ("  sysbench: {}\n  ycsb: {}", "mariadb", "`sysbench` and `ycsb` are both set"),
        ("  sysbench: {script: oltp_raed_only}", "mariadb", "oltp_read_only"),
        ("  sysbench: {tabels: 3}", "mariadb", 'did you mean "tables"?'),
        ("  sysbench: {}", "redis", "sysbench's scripts are SQL"),
        ("  sysbench: {}\n  pipeline: 2", "mariadb", "`pipeline` must be 1"),
        ("  ycsb: {core_workload: d}\n  pipeline: 2", "redis", "takes several requests with redis"),
        ("  ycsb: {core_workload: e}", "mariadb", "need `operations`"),
        ("  ycsb: {properties: {readproportion: 0, updateproportion: 0}}", "mariadb", "no kind of operation"),
        ("  ycsb: {properties: {insertstart: 5000}}", "mariadb", "go beyond the 1000 records"),
        ("  ycsb: {properties: {minscanlength: 50, maxscanlength: 5}}", "mariadb", "above maxscanlength"),
    ],
)
def test_what_cannot_be_is_refused_when_the_study_is_read(work: str, database: str, why: str) -> None:
    error = study_refused(work, database)
    assert why in f"{error} {error.hint}"


def test_a_load_that_is_not_whole_has_failed() -> None:
    check = TareLoad().load(parameters(ycsb={"records": 5}), target("redis"), "/run/tare").check_output
    assert check is not None
    with pytest.raises(RunFailed, match=r"loading the data: 127\.0\.0\.1:1: connection refused"):
        check("", "tare-load: 127.0.0.1:1: connection refused\n")
    document = (ROOT / "tests" / "data" / "tare-load" / "load.stdout").read_text()
    with pytest.raises(RunFailed, match="1000 of 5 records were loaded"):
        check(document, "")


def test_the_scripts_are_those_of_sysbenchs_own_workload() -> None:
    ours = TareLoadParameters.model_json_schema()["$defs"]["OltpSpec"]["properties"]
    theirs = WORKLOADS["sysbench"].parameters.model_json_schema()["properties"]
    assert ours["script"]["enum"] == theirs["script"]["enum"]
    shared = set(ours) & set(theirs) - {"rand_type"}
    assert len(shared) > 15
    assert {name: ours[name]["default"] for name in shared} == {name: theirs[name]["default"] for name in shared}


def test_every_property_that_a_study_can_set_is_documented() -> None:
    from tare.workloads.tare_load.core_workload import KEYS, KNOWN

    page = PAGE.read_text()
    assert not [name for name in (*KNOWN, *KEYS) if f"`{name}`" not in page]


def test_a_level_may_put_another_generator_in_the_place_of_the_whole_workload() -> None:
    text = STUDY.replace("DATABASE", "mariadb").replace("WORK", "  sysbench: {tables: 2}\n  connections: 16")
    text = text[: text.index("  path:")] + (
        "  generator:\n    sets: [client.image, workload]\n    levels:\n      native: {}\n"
        "      peer: {client.image: sysbench, workload: {name: sysbench, tables: 2, threads: 16, measure_s: 30}}\n"
        "baseline: native\n"
    )
    study = loads(text, built_in())
    native, peer = (arm.settings for arm in study.arms)
    assert (native.workload_name, peer.workload_name) == ("tare-load", "sysbench")
    assert "connections" not in peer.workload
    assert study.varies["generator"] == ("client.image", "workload")
