"""How tare-load is called: one process that warms up and measures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.workloads.tare_load.cases import CLOSED, JOB, OPEN, TARGET, parameters

from tare.databases import Certificate
from tare.errors import RunFailed, StudyError
from tare.workloads import Target
from tare.workloads.tare_load.tare_load import TareLoad

RUN_DIR = "/run/tare"


def measured(**given: Any) -> str:
    return " ".join(TareLoad().measure(parameters(**given), TARGET, RUN_DIR).argv)


def test_one_process_warms_up_and_measures() -> None:
    own = parameters(**CLOSED)
    assert TareLoad().warm_up(own, TARGET, RUN_DIR) is None
    command = TareLoad().measure(own, TARGET, RUN_DIR)
    assert "--warm-up=1.0" in command.argv
    assert "--duration=2.0" in command.argv
    assert command.own_warmup_s == 1.0


def test_the_closed_loop_has_no_arrivals() -> None:
    argv = measured(**CLOSED)
    assert not [word for word in ("--rate", "--stages", "--trace") if word in argv]


def test_arrivals_are_told_as_asked() -> None:
    assert "--rate=2000.0 --spacing=poisson" in measured(**OPEN)
    assert "--spacing=even --most-waiting=50" in measured(**OPEN, spacing="even", most_waiting=50)
    stages = [{"seconds": 1.0, "rate": 100.0}, {"seconds": 2.5, "from": 100.0, "to": 900.0}]
    assert "--stages=1.0:100.0,2.5:100.0..900.0 --spacing=poisson" in measured(stages=stages)


def test_connections_are_renewed_as_asked() -> None:
    assert "--requests-per-connection" not in measured(**CLOSED)
    assert "--requests-per-connection=10" in measured(**CLOSED, requests_per_connection=10)


def test_operations_of_a_trace_are_handed_over() -> None:
    def file(trace: list[Any]) -> str:
        return TareLoad().measure(parameters(trace=trace), TARGET, RUN_DIR).files["arrivals.csv"]

    assert file([0.5, 1.0]) == "0.5\n1.0\n"
    assert file([[0.5, "set"], [1.0, "get"]]) == "seconds,operation\n0.5,set\n1.0,get\n"


def test_a_unix_socket_takes_the_place_of_the_address() -> None:
    target = replace(TARGET, socket="/run/tare-socket/redis.sock")
    command = TareLoad().measure(parameters(**CLOSED), target, RUN_DIR)
    assert [word for word in command.argv if "address" in word] == ["--address=unix:/run/tare-socket/redis.sock"]


def test_each_node_of_a_cluster_of_cassandra_is_told() -> None:
    statement = {"operations": [{"name": "get", "steps": [{"send": "SELECT v FROM k.t WHERE id = 1"}]}]}
    nodes = replace(TARGET, database="cassandra", others=("10.0.0.2", "10.0.0.3"))
    command = TareLoad().measure(parameters(job=statement), nodes, RUN_DIR)
    address, port = TARGET.endpoint.address, TARGET.endpoint.port
    assert f"--address={address}:{port},10.0.0.2:{port},10.0.0.3:{port}" in command.argv


def test_the_password_is_in_a_file_and_a_user_only_where_one_is_made() -> None:
    command = TareLoad().measure(parameters(), TARGET, RUN_DIR)
    assert command.files["secret"] == "geheim7\n"
    assert "geheim7" not in " ".join(command.argv)
    assert "--user" not in " ".join(command.argv)


def test_the_job_is_handed_over_as_the_program_takes_it() -> None:
    job = json.loads(TareLoad().measure(parameters(), TARGET, RUN_DIR).files["job.json"])
    assert job["format"] == 1
    assert job["generators"]["id"] == {"uniform": {"from": 0, "to": 999}}
    assert [each["name"] for each in job["operations"]] == ["get", "set"]


def test_a_load_sends_every_record_once_and_is_judged_by_their_number() -> None:
    command = TareLoad().load(parameters(), TARGET, RUN_DIR)
    assert "--operations=1000" in command.argv
    job = json.loads(command.files["job.json"])
    assert job["generators"]["record"] == {"sequential": {"from": 0, "to": 999}}
    assert command.check_output is not None
    with pytest.raises(RunFailed, match="printed nothing"):
        command.check_output("", "")


def test_data_are_named_by_what_is_loaded_and_nothing_else() -> None:
    data = TareLoad().dataset(parameters())
    assert data == TareLoad().dataset(parameters(connections=50, rate=5.0, pipeline=4))
    bigger = {**JOB, "load": {**JOB["load"], "records": 2000}}
    assert data != TareLoad().dataset(parameters(job=bigger))
    without = {key: value for key, value in JOB.items() if key != "load"}
    assert TareLoad().dataset(parameters(job=without)) == {}


def test_a_database_that_it_does_not_speak_with_is_refused() -> None:
    target = Target("berkeleydb", TARGET.endpoint, TARGET.secrets)
    with pytest.raises(StudyError, match="does not support berkeleydb"):
        TareLoad().measure(parameters(), target, RUN_DIR)


def test_a_server_with_a_certificate_is_known_by_its_authority() -> None:
    made = Certificate(authority="AUTHORITY", certificate="CERTIFICATE", key="KEY")
    target = replace(TARGET, secrets=replace(TARGET.secrets, certificate=made))
    for command in (
        TareLoad().load(parameters(), target, RUN_DIR),
        TareLoad().measure(parameters(), target, RUN_DIR),
    ):
        assert {"--tls", "--tls-verify=ca", f"--ca={RUN_DIR}/authority.pem"} <= set(command.argv)
        assert command.files["authority.pem"] == "AUTHORITY"
        assert not {"CERTIFICATE", "KEY"} & set(command.files.values())
    assert "--tls" not in measured()
