"""What a study may say of tare-load, refused when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError
from tests.unit.workloads.tare_load.cases import JOB, parameters

from tare.errors import StudyError
from tare.workloads.tare_load.parameters import TareLoadParameters


def refusal(**given: Any) -> str:
    with pytest.raises(ValidationError) as refusal:
        parameters(**given)
    return str(refusal.value)


def job(**changed: Any) -> dict[str, Any]:
    return {**JOB, **changed}


def operation(send: str, **more: Any) -> dict[str, Any]:
    return {"name": "get", "steps": [{"send": send}], **more}


def test_what_is_stored_of_a_study_is_read_again_as_the_same() -> None:
    own = parameters(stages=[{"seconds": 1.0, "from": 5.0, "to": 9.0}])
    assert TareLoadParameters.model_validate_json(own.model_dump_json()) == own


def test_a_generator_that_nobody_knows_is_told_with_those_that_are_there() -> None:
    message = refusal(job=job(operations=[operation("GET key:{idd}")]))
    assert "no generator 'idd'" in message
    assert "there are id, value" in message
    assert "unclosed brace" in refusal(job=job(operations=[operation("GET key:{id")]))


def test_a_later_step_uses_what_a_reply_said() -> None:
    first = {"send": "HGET k f", "keep": {"v": 1}}
    own = parameters(job=job(operations=[{"name": "move", "steps": [first, {"send": "SET k {v}"}], "tries": 3}]))
    assert TareLoadParameters.model_validate_json(own.model_dump_json()) == own
    file = json.loads(own.work.measure_invocation("redis", "/run", 1.0).files["job.json"])
    assert file["operations"][0]["steps"][0]["keep"] == {"v": 1}
    assert file["operations"][0]["tries"] == 3
    with pytest.raises(StudyError, match="keeps no values of replies with the protocol cql"):
        own.work.measure_invocation("cql", "/run", 1.0)
    early = {"name": "move", "steps": [{"send": "SET k {v}"}, first]}
    assert "no generator 'v'" in refusal(job=job(operations=[early]))
    clash = {"name": "move", "steps": [{"send": "GET k", "keep": {"id": 1}}]}
    assert "'id' is a generator, and also" in refusal(job=job(operations=[clash]))
    load = {"records": 1, "steps": [{"send": "GET k", "keep": {"v": 1}}]}
    assert "`keep` is for operations" in refusal(job=job(load=load))


def test_who_thinks_does_so_in_a_closed_loop_on_a_connection_alone() -> None:
    thinks = job(operations=[operation("GET key:{id}", think_ms=2.5)])
    assert parameters(job=thinks).work.has_steps("redis")
    assert "closed loop" in refusal(job=thinks, rate=10.0)
    assert "`pipeline` must be 1" in refusal(job=thinks, pipeline=2)


def test_keys_that_came_later_are_no_part_of_an_older_job() -> None:
    stored = json.loads(parameters().model_dump_json())["job"]["operations"][0]
    assert set(stored) == {"name", "weight", "steps"}
    assert set(stored["steps"][0]) == {"send", "expect"}


def test_the_number_of_a_record_is_known_to_the_load_alone() -> None:
    assert "no generator 'record'" in refusal(job=job(operations=[operation("GET key:{record}")]))
    own = {"record": {"uniform": {"from": 0, "to": 1}}}
    assert "rename yours" in refusal(job=job(generators={**JOB["generators"], **own}))


@pytest.mark.parametrize(
    ("generator", "why"),
    [
        ({"uniform": {"from": 2, "to": 1}}, "`to` is below `from`"),
        ({}, "exactly one of"),
        ({"uniform": {"from": 0, "to": 1}, "text": {"length": 1}}, "exactly one of"),
        ({"zipfian": {"from": 0, "to": 1}}, "exponent"),
        ({"hotspot": {"from": 0, "to": 1, "data": 2.0, "operations": 0.5}}, "less than or equal to 1"),
        ({"choice": []}, "at least 1 item"),
        ({"gaussian": {"from": 0, "to": 1}}, "gaussian"),
    ],
)
def test_generators_are_typed(generator: dict[str, Any], why: str) -> None:
    assert why in refusal(job=job(generators={**JOB["generators"], "id": generator}))


def test_arrivals_are_told_once() -> None:
    assert "arrivals are set twice: by rate and stages" in refusal(rate=5.0, stages=[{"seconds": 1.0, "rate": 5.0}])
    assert "either `rate`, or both" in refusal(stages=[{"seconds": 1.0, "from": 5.0}])
    assert "no stage has a rate above 0" in refusal(stages=[{"seconds": 1.0, "rate": 0.0}])


def test_steps_forbid_a_pipeline() -> None:
    two = {"name": "both", "steps": [{"send": "GET a"}, {"send": "GET b"}]}
    assert "`pipeline` must be 1" in refusal(job=job(operations=[two]), pipeline=2)
    assert "more than the 2 connections" in refusal(threads=3, connections=2)
    assert "two operations are called 'get'" in refusal(job=job(operations=[operation("A"), operation("B")]))
    assert "longer than the measure phase" in refusal(window_s=3.0)


@pytest.mark.parametrize("name", ["arrivals.csv", "headed.csv", "arrivals.parquet"])
def test_a_trace_is_read_with_the_study(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pl.DataFrame({"at_s": [0.5, 1.0, 2.5]}).write_parquet(path)
    else:
        path.write_text(("at_s,what\n" if name == "headed.csv" else "") + "0.5,a\n1,b\n2.5,c\n")
    own = parameters(trace=str(path))
    assert own.trace == (0.5, 1.0, 2.5)
    assert own.open_loop
    assert TareLoadParameters.model_validate_json(own.model_dump_json()) == own


@pytest.mark.parametrize("name", ["arrivals.csv", "arrivals.parquet"])
def test_operations_of_a_trace_are_read_with_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        at = {"at_s": [0.5, 1.0], "host": ["a", "b"], "operation": ["set", "get"]}
        pl.DataFrame(at).write_parquet(path)
    else:
        path.write_text("at_s,host,Operation\n0.5,a,set\n1,b, get\n")
    own = parameters(trace=str(path))
    assert own.trace == ((0.5, "set"), (1.0, "get"))
    assert TareLoadParameters.model_validate_json(own.model_dump_json()) == own
    assert TareLoadParameters.model_validate(own.model_dump()) == own


def test_operations_of_a_trace_are_those_of_the_job(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.csv"
    path.write_text("at_s,operation\n0.5,get\n1,scan\n")
    assert "the trace has 'scan', which is not one of get, set" in refusal(trace=str(path))
    path.write_text("at_s,operation\n0.5,get\n1,\n")
    assert "the trace has ''" in refusal(trace=str(path))
    assert "some have none" in refusal(trace=[[0.5, "get"], 1.0])


def test_a_trace_that_is_none_is_told_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.csv"
    assert "cannot read the trace" in refusal(trace=str(path))
    path.write_text("1.0\n0.5\n")
    assert "arrival 2 is earlier than the previous one" in refusal(trace=str(path))
    path.write_text("at_s\nsoon\n")
    assert "first column must be seconds" in refusal(trace=str(path))
    path.write_text("0.1\n0.2\n")
    assert "within the warm-up" in refusal(trace=str(path), warmup_s=1.0)
    path.write_bytes(b"0.1\n\xff\n")
    assert f"cannot read the trace {path}" in refusal(trace=str(path))
    path.write_bytes(b"\xff0.1\n")
    assert f"cannot read the trace {path}" in refusal(trace=str(path))


@pytest.mark.parametrize("last", ["inf", "1e999", "1e300", "31622401"])
def test_an_arrival_later_than_a_year_is_refused(tmp_path: Path, last: str) -> None:
    path = tmp_path / "arrivals.csv"
    path.write_text(f"0.1\n{last}\n")
    assert "arrival 2 is later than 31622400 s, a year" in refusal(trace=str(path))
    assert "each arrival is at 0 to 31622400 s" in refusal(trace=[0.1, float(last)])
