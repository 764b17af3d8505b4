"""Two hosts are calibrated as a pair: kept by both machines, quoted for runs between them and for no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.calibrate.conftest import Series
from tests.unit.calibrate.test_session import KIND, Destination
from tests.unit.run.conftest import a_rig
from typer.testing import CliRunner

from tare.calibrate.archive import Archive
from tare.calibrate.kinds import KINDS
from tare.calibrate.quote import NOT_CALIBRATED, PAIR_NOT_CALIBRATED, quote, quote_for
from tare.calibrate.session import calibrate
from tare.calibrate.summary import Effort, Identity, identity_of, identity_of_run, pair_of, summarise
from tare.cli import app
from tare.cli.study.calibrate import _kinds
from tare.cli.study.calibration_text import machines
from tare.errors import StudyError
from tare.record.run_record import RunRecord

SERVER = identity_of(replace(synthetic.HOST, boot_id="one"), synthetic.ENGINE)
CLIENT = SERVER.model_copy(update={"cpu_model": "Another", "kernel": "6.2"})
PAIR = pair_of(SERVER, CLIENT, one_kernel=False)


def between(record: RunRecord, *, boot: str = "two") -> RunRecord:
    """The same run with its client on another host."""
    client = replace(synthetic.HOST, cpu_model="Another", kernel="6.2", boot_id=boot)
    own = replace(synthetic.HOST, boot_id="one")
    return record.model_copy(update={"host": own, "client_host": client, "client_engine": synthetic.ENGINE})


def test_a_pair_is_named_by_both_machines_in_their_parts() -> None:
    turned = pair_of(CLIENT, SERVER, one_kernel=False)
    keys = {each.machine_key for each in (SERVER, CLIENT, PAIR, turned)}
    assert len(keys) == 4
    assert PAIR.machine_key == f"{SERVER.machine_key}-{CLIENT.machine_key}"
    assert PAIR.versions_key == f"{SERVER.versions_key}-{CLIENT.versions_key}"


def test_two_hosts_of_one_machine_speak_for_no_two_machines() -> None:
    assert pair_of(SERVER, CLIENT, one_kernel=True).machine_key == f"{PAIR.machine_key}-one-kernel"


def test_the_identity_of_a_run_is_that_of_the_hosts_it_was_made_between() -> None:
    record = synthetic.records()[-1]
    assert identity_of_run(record) == identity_of(record.host, record.engine)
    assert identity_of_run(between(record)) == PAIR
    assert identity_of_run(between(record, boot="one")).one_kernel


def test_a_pair_s_calibration_is_found_for_its_runs_alone(tmp_path: Path, series: Series) -> None:
    record = synthetic.records()[-1]
    archive, effort = Archive(tmp_path), Effort(studies=4, runs=9, failed=0, machine_s=9.0, finished_at=1.0)
    assert quote_for([between(record)], tmp_path) == PAIR_NOT_CALIBRATED
    archive.keep(summarise(PAIR, series(4, ["work"]), effort, "0"))
    quotation = quote_for([between(record)], tmp_path)
    assert quotation is not None
    assert quotation.startswith("Between these two hosts 4 A/A comparisons gave")
    assert quote_for([record], tmp_path) == NOT_CALIBRATED
    assert archive.spread(PAIR.machine_key) is not None
    assert archive.spread(SERVER.machine_key) is None


def test_what_the_client_s_host_ran_under_then_is_told(tmp_path: Path, series: Series) -> None:
    archive, effort = Archive(tmp_path), Effort(studies=4, runs=9, failed=0, machine_s=9.0, finished_at=1.0)
    older = CLIENT.model_copy(update={"kernel": "6.0"})
    archive.keep(summarise(pair_of(SERVER, older, one_kernel=False), series(4, ["work"]), effort, "0"))
    assert quote(archive, PAIR).endswith("That calibration was made under kernel 6.0 on the client's host.")


def test_a_pair_is_calibrated_as_a_machine_is(tmp_path: Path) -> None:
    with a_rig(tmp_path) as rig:
        made = Destination(rig, Archive(tmp_path / "calibration", {"fake": KIND}))
        summary = calibrate(replace(made.session(), identity=PAIR), None, studies=1)
    assert summary.false_positives.of == 1
    assert summary.injections[0].estimate.n == 1
    (kept,) = made.archive.summaries(PAIR.machine_key)
    assert kept.identity == PAIR
    assert made.archive.summaries(SERVER.machine_key) == ()


def test_both_hosts_are_shown() -> None:
    server, client = machines(PAIR)
    assert server.startswith("server: ")
    assert "Another" in client
    assert machines(pair_of(SERVER, CLIENT, one_kernel=True))[2].startswith("Both hosts are the same machine")
    assert len(machines(SERVER)) == 1


def test_a_kind_without_a_client_shows_nothing_of_two_hosts() -> None:
    every = list(KINDS)
    assert _kinds(every, given=False, between=False) == every
    assert _kinds(every, given=False, between=True) == ["work", "quota", "delay", "aa"]
    with pytest.raises(StudyError, match="the kind io has no client"):
        _kinds(["io"], given=True, between=True)


def test_a_site_needs_a_file() -> None:
    done = CliRunner().invoke(app, ["calibrate", "--show", "--site", "rack"])
    assert isinstance(done.exception, StudyError)


def test_an_identity_of_an_earlier_tare_is_that_of_one_machine() -> None:
    kept = SERVER.model_dump()
    del kept["client"], kept["one_kernel"]
    assert Identity.model_validate(kept) == SERVER
