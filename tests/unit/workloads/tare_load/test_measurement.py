"""tare-load's document and logs, as the program really wrote them: closed loop, open loop, overload, failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workloads.tare_load.cases import CLOSED, DATA, OPEN, OVER, changed, parameters, parse

from tare.errors import RunFailed
from tare.workloads.merged import percentile
from tare.workloads.tare_load.document import read_document
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.tare_load import TareLoad

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "reference" / "workloads" / "tare-load.md"


def test_a_closed_loop_is_read_whole_and_marked_blind(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "closed", **CLOSED)
    assert measurement.operations == sum(each.done for each in measurement.by_operation.values()) > 1000
    assert measurement.operations == sum(count for _, count in measurement.histogram)
    assert measurement.latency.blind_to_stalls
    assert measurement.latency.timed_from == "actual-send"
    assert [window.end_s for window in measurement.windows] == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert set(measurement.by_operation) == {"get", "set"}
    assert measurement.by_operation["get"].service_time is None


def test_throughput_is_of_what_was_completed_in_the_phase_whenever_it_began(tmp_path: Path) -> None:
    def complete(tree: dict[str, Any]) -> None:
        for window in tree["windows"]:
            window["completed"] = 1_000 if window["phase"] == "measure" else 77

    measurement = parse(tmp_path, "closed", document=changed("closed", complete), **CLOSED)
    assert measurement.throughput_per_s == 2_000
    assert [window.throughput_per_s for window in measurement.windows] == [2_000] * 4
    assert measurement.done > 4_000


def test_a_lost_operation_is_one_of_those_with_a_latency(tmp_path: Path) -> None:
    def lose(tree: dict[str, Any]) -> None:
        get = next(kind for kind in tree["measure"]["kinds"] if kind["name"] == "get")
        get.update(right=get["right"] - 1, lost=1)
        tree["measure"].update(right=tree["measure"]["right"] - 1, failed=1)
        window = next(window for window in tree["windows"] if window["phase"] == "measure")
        window.update(right=window["right"] - 1, failed=1)

    document = changed("closed", lose)
    measurement = parse(tmp_path, "closed", document=document, **{**CLOSED, "max_error_share": 0.01})
    assert sum(count for _, count in measurement.histogram) == measurement.done + 1
    assert measurement.by_operation["get"].answers["lost"] == 1


def test_connecting_is_an_operation_beside_the_throughput(tmp_path: Path) -> None:
    def renew(tree: dict[str, Any]) -> None:
        tree["plan"]["requests_per_connection"] = 10
        tree["measure"]["connect"] = tree["measure"]["kinds"].pop()
        tree["measure"]["connect"]["name"] = "connect"
        tree["measure"]["kinds"].append({**tree["measure"]["connect"], "name": "set"})

    renewed = {**CLOSED, "requests_per_connection": 10}
    document = changed("closed", renew)
    with pytest.raises(RunFailed, match=r"holds 0 of [0-9]+ connect"):
        parse(tmp_path, "closed", document=document, **renewed)
    tree = json.loads(document)
    tree["measure"]["connect"].update(right=0, errors=3, latency_ns=None)
    with pytest.raises(RunFailed, match=r"3 of [0-9]+ operations had no correct reply \(3 connect errors\)"):
        parse(tmp_path, "closed", document=json.dumps(tree), **renewed)
    measurement = parse(tmp_path, "closed", document=json.dumps(tree), **{**renewed, "max_error_share": 0.5})
    assert measurement.by_operation["connect"].answers == {"right": 0, "errors": 3}
    assert measurement.operations == sum(measurement.by_operation[name].done for name in ("get", "set"))
    with pytest.raises(RunFailed, match="requests_per_connection 10, but None"):
        parse(tmp_path, "closed", document=document, **CLOSED)


def test_a_quantile_that_no_value_lies_beyond_stays_missing(tmp_path: Path) -> None:
    def shorten(tree: dict[str, Any]) -> None:
        tree["measure"]["latency_ns"].update({"p99": None, "p99.9": None})
        tree["windows"][-2]["latency_ns"]["p95"] = None

    measurement = parse(tmp_path, "closed", document=changed("closed", shorten), **CLOSED)
    assert measurement.latency.p95_ms is not None
    assert measurement.latency.p99_ms is None
    assert "latency_p999_ms" not in measurement.details
    assert measurement.windows[-1].latency_p95_ms is None


def test_percentiles_of_document_and_histogram_are_one(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "closed", **CLOSED)
    for percent, message in (
        (50, measurement.latency.p50_ms),
        (95, measurement.latency.p95_ms),
        (99, measurement.latency.p99_ms),
    ):
        assert message == pytest.approx(percentile(measurement.histogram, percent), rel=2e-3)


def test_an_open_loop_is_timed_from_the_intended_send(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "open", **OPEN)
    assert not measurement.latency.blind_to_stalls
    assert measurement.latency.timed_from == "intended-send"
    assert measurement.details["missed"] == 0
    assert measurement.details["target_per_s"] == pytest.approx(2000, rel=0.1)
    assert measurement.details["delivered_share"] == pytest.approx(1.0, abs=0.02)
    service = measurement.by_operation["get"].service_time
    assert service is not None
    assert service.timed_from == "actual-send"


def test_missed_arrivals_are_counted_and_no_failure(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "over", **OVER)
    assert (measurement.details["missed"] or 0) > 0
    assert measurement.details["scheduled"] == 800_000
    assert (measurement.details["delivered_share"] or 0) < 0.1
    assert (measurement.throughput_per_s or 0) * 2.0 <= measurement.done


def test_the_parts_of_a_percentile_add_up_to_it(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "open", **OPEN)
    assert set(measurement.parts) == {"p50", "p99", "p99.9"}
    middle = measurement.parts["p50"]
    whole = middle.lag_ms + middle.waiting_ms + middle.server_ms + middle.unread_ms
    assert whole == pytest.approx(
        measurement.latency.p50_ms, rel=0.15
    )  # a group is an eighth of a power of two wide


def silent(tree: dict[str, Any]) -> None:
    """As of a server that was stopped in the warm-up: what was sent then belongs to no measure phase."""
    tree["measure"].update(right=0)
    tree["measure"]["kinds"][0].update(right=0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda tree: tree["end"].update(how="interrupted", reason="a signal"), "interrupted: a signal"),
        (lambda tree: tree["measure"].update(unfinished=3), "3 operations were never answered"),
        (lambda tree: tree["measure"].update(seconds=1.0), "cut short: 1 s of 2 s"),
        (lambda tree: tree["windows"].pop(-2), "windows of tare-load"),
        (lambda tree: tree["plan"].update(connections=3), "ran with connections 3, but 4"),
        (lambda tree: tree["plan"].update(kinds=["get"]), "kinds"),
        (lambda tree: tree["measure"]["kinds"][0].update(right=7), "get"),
        (silent, "^the server did not answer in the 2 s of the measure phase: it sent no answer$"),
        (lambda tree: tree.update(format=2), "document of format 2, and this tare reads 1"),
        (lambda tree: tree["measure"].pop("missed"), "measure.missed"),
    ],
)
def test_any_sign_that_a_run_is_not_whole_voids_it(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    with pytest.raises(RunFailed, match=why):
        parse(tmp_path, "closed", document=changed("closed", change), **CLOSED)


def test_logs_that_hold_less_than_was_counted_void_it(tmp_path: Path) -> None:
    own = parameters(**CLOSED)
    stdout, stderr, log = (tmp_path / f"measure.{name}" for name in ("stdout", "stderr", "latency.hlog"))
    stdout.write_text((DATA / "closed.stdout").read_text())
    stderr.touch()
    with pytest.raises(RunFailed, match="left no"):
        TareLoad().parse(own, stdout, stderr, 0)
    log.write_text("".join((DATA / "closed.latency.hlog").read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunFailed, match="holds"):
        TareLoad().parse(own, stdout, stderr, 0)


def test_missing_rows_are_no_successes(tmp_path: Path) -> None:
    given = {**CLOSED, "measure_s": 1.0, "window_s": 1.0}
    with pytest.raises(RunFailed, match=r"had no correct reply \(13663 get missing\)") as refusal:
        parse(tmp_path, "missing", **given)
    assert "were the data loaded?" in (refusal.value.hint or "")


def test_a_run_without_a_right_reply_is_told_by_its_errors(tmp_path: Path) -> None:
    def refuse(tree: dict[str, Any]) -> None:
        for kind in tree["measure"]["kinds"]:
            kind.update(errors=kind["right"], right=0)
        tree["measure"].update(failed=tree["measure"]["right"], right=0)
        tree["measure"]["errors"] = [{"kind": "get", "code": "OOM", "count": 9, "message": "OOM no memory"}]

    with pytest.raises(RunFailed, match=r"operations had no correct reply .* errors.*: OOM no memory"):
        parse(tmp_path, "closed", code=5, document=changed("closed", refuse), **CLOSED)


def test_a_server_that_goes_away_is_the_reason(tmp_path: Path) -> None:
    stderr = (DATA / "gone.stderr").read_text()
    with pytest.raises(RunFailed, match=r"the server went away: .*connection refused"):
        parse(tmp_path, "gone", code=4, stderr=stderr, **{**CLOSED, "measure_s": 3.0})


def test_what_it_says_when_it_cannot_begin_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"no server: 127\.0\.0\.1:1: connection refused"):
        parse(tmp_path, "x", code=3, document="", stderr="tare-load: 127.0.0.1:1: connection refused\n")
    with pytest.raises(RunFailed, match="printed nothing"):
        parse(tmp_path, "x", document="")


@pytest.mark.parametrize(("code", "name"), [(139, "SIGSEGV"), (-6, "SIGABRT")])
def test_a_signal_that_ended_it_is_the_reason(code: int, name: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=f"tare-load was ended by {name}"):
        parse(tmp_path, "x", code=code, document="")


def test_a_load_is_counted() -> None:
    document = read_document((DATA / "load.stdout").read_text())
    assert document.measure.right == 1000


@pytest.mark.parametrize("name", TareLoadParameters.model_fields)
def test_every_parameter_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()


def test_every_detail_is_documented(tmp_path: Path) -> None:
    measurement = parse(tmp_path, "open", **OPEN)
    page = PAGE.read_text()
    assert not [name for name in measurement.details if f"`{name}`" not in page]


def test_what_connections_agreed_on_is_told_by_its_registered_names(tmp_path: Path) -> None:
    def encrypt(tree: dict[str, Any]) -> None:
        tree["set_up"]["tls"] = {
            "suite": "TLSv1_3 TLS13_AES_256_GCM_SHA384",
            "handshake_ns": tree["measure"]["latency_ns"],
        }

    clear = parse(tmp_path, "closed", **CLOSED)
    assert clear.encryption is None
    encryption = parse(tmp_path, "closed", document=changed("closed", encrypt), **CLOSED).encryption
    assert encryption is not None
    assert (encryption.version, encryption.cipher) == ("TLSv1.3", "TLS_AES_256_GCM_SHA384")
    assert encryption.handshake_ms == clear.latency.p50_ms
