"""Findings of one's own become claims with their context; what is none is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import as_tree, rate_of, with_parts
from tests.unit.stores import of_plan
from typer.testing import CliRunner

from tare.analyze import analyze
from tare.cli import app
from tare.errors import StudyError
from tare.knowledge.benchmark import setup_of
from tare.knowledge.claim import Measured, load_claims
from tare.knowledge.own import claims_of, workload_words, write_claims
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.store import resume_store
from tare.study.model import Imported, StorageSpec
from tare.study.protocol_spec import BucketsSpec, DuetSpec, FixedSpec, ProtocolSpec
from tare.study.values import NetworkKind

ARMS = ("bare", "bridge")


@pytest.fixture
def plan() -> Plan:
    return expand(synthetic.study(ARMS, blocks=8))


@pytest.fixture
def records(plan: Plan) -> list[RunRecord]:
    """Of 8 blocks, all that the plan has; the control is the baseline but for a thousandth."""
    made = [each.model_copy(update={"block": each.block + 1}) for each in synthetic.records(ARMS, 8)]
    rates = {each.block: rate_of(each) for each in made if each.arm == "bare"}
    again = [synthetic.record(n, "baseline-again", rate * (1 + (-1) ** n / 1000)) for n, rate in rates.items()]
    return of_plan(plan, [*made, *again])


def test_a_finding_becomes_a_claim_with_its_context(plan: Plan, records: list[RunRecord], tmp_path: Path) -> None:
    write_claims(claims_of(plan, records), tmp_path)
    (known,) = [each for each in load_claims([tmp_path]) if each.claim.effect.metric == "throughput"]
    effect, context = known.claim.effect, known.claim.context
    assert isinstance(effect, Measured)
    logs = [
        math.log(rate_of(next(r for r in records if (r.block, r.arm) == (block, "bridge")))
                 / rate_of(next(r for r in records if (r.block, r.arm) == (block, "bare"))))
        for block in range(1, 9)
    ]  # fmt: skip
    assert effect.log_ratio == pytest.approx(sum(logs) / 8)
    assert effect.n == 8
    assert context is not None
    assert (context.database.name, context.arm.deployment, context.baseline.deployment) == (
        "mariadb", "container", "bare",
    )  # fmt: skip
    assert (context.arm.engine, context.arm.storage, context.baseline.storage) == ("docker", "bind", "host")
    assert (context.load.workload, context.load.threads) == ("sysbench oltp_read_only", 16)
    assert known.claim.how.parity == "known"
    assert known.claim.source.store == plan.digest
    assert known.claim.source.year == 2026


def test_every_metric_of_an_arm_becomes_a_claim(plan: Plan, records: list[RunRecord]) -> None:
    seen = [
        with_parts(run, usage={"sut_cpu_s": 1.0 + part, "sut_read_bytes": 0.0, "sut_write_bytes": 1e6 * (1 + part)})
        for run in records
        for part in [0.01 * (run.block % 3) + (run.arm == "bridge") * (0.1 + 0.01 * (run.block % 2))]
    ]
    known = {each.metric for each in analyze(plan.study, seen).findings if each.estimate.low is not None}
    assert {"cpu_per_operation", "io_per_operation"} <= known
    assert {claim.effect.metric for claim in claims_of(plan, seen).values()} == known


def test_a_folder_that_is_none_is_told(plan: Plan, records: list[RunRecord], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StudyError, match=r"cannot be written to .*file.*--to"):
        write_claims(claims_of(plan, records), tmp_path / "file")


def test_nothing_is_overwritten(plan: Plan, records: list[RunRecord], tmp_path: Path) -> None:
    claims = claims_of(plan, records)
    write_claims(claims, tmp_path)
    with pytest.raises(StudyError, match="exists already"):
        write_claims(claims, tmp_path)


def test_emulated_runs_are_refused(plan: Plan, records: list[RunRecord]) -> None:
    emulated = records[-1].model_copy(update={"emulated": ("client",)})
    with pytest.raises(StudyError, match="emulated"):
        claims_of(plan, [*records[:-1], emulated])


@pytest.mark.parametrize(
    ("protocol", "why"),
    [
        (DuetSpec(name="duet"), "operating point"),
        (FixedSpec(name="fixed", sequence="together"), "not in pairs"),
        (BucketsSpec(name="buckets"), "not in pairs"),
    ],
)
def test_what_is_of_another_kind_is_not_mixed_with_the_claims(
    protocol: ProtocolSpec, why: str, plan: Plan, records: list[RunRecord]
) -> None:
    study = plan.study.model_copy(update={"protocol": protocol})
    with pytest.raises(StudyError, match=why):
        claims_of(plan.model_copy(update={"study": study}), records)


def test_spread_runs_of_a_published_protocol_are_pairs_as_good_as_any(plan: Plan, records: list[RunRecord]) -> None:
    study = plan.study.model_copy(update={"protocol": FixedSpec(name="fixed")})
    assert claims_of(plan.model_copy(update={"study": study}), records)


def test_imported_results_are_refused(plan: Plan, records: list[RunRecord]) -> None:
    study = plan.study.model_copy(update={"imported": Imported(origin="x", parser="csv", files=1)})
    with pytest.raises(StudyError, match="imported"):
        claims_of(plan.model_copy(update={"study": study}), records)


def test_too_few_blocks_make_no_claim(plan: Plan, records: list[RunRecord]) -> None:
    with pytest.raises(StudyError, match="without an interval for any arm: it needs 3 blocks") as refused:
        claims_of(expand(synthetic.study(ARMS, blocks=2)), [record for record in records if record.block < 3])
    assert "higher cap" in (refused.value.hint or ""), "a study that has ended goes on by no `tare run` alone"


def test_a_study_that_has_not_ended_is_refused(plan: Plan, records: list[RunRecord]) -> None:
    with pytest.raises(StudyError, match="has not ended"):
        claims_of(plan, [record for record in records if record.block < 8])


def test_where_the_data_lie_is_told_as_the_arm_has_it(plan: Plan) -> None:
    settings = plan.arm("bridge").settings
    kept = settings.sut.model_copy(update={"storage": StorageSpec(kind="layer")})
    arm = plan.arm("bridge").model_copy(update={"settings": settings.model_copy(update={"sut": kept})})
    assert setup_of(arm).storage == "layer"
    assert setup_of(arm, "volume").storage == "layer", "what the arm says goes before --storage"
    assert setup_of(plan.arm("bridge"), "volume").storage == "volume"


@pytest.mark.parametrize(
    ("sut", "at", "client", "by", "engine", "runtime", "network"),
    [
        ("bare", "host", "pod", "pod", "containerd", None, "bridge"),
        ("bare", "host", "pod", "host", "containerd", None, "host"),
        ("pod", "cluster-ip", "pod", "pod", "containerd", None, "cluster-ip"),
        ("pod", "pod", "bare", "host", "containerd", None, "pod"),
        ("container", "host", "pod", "pod", "docker", "runc", "bridge"),
        ("bare", "host", "bare", "host", "none", "none", "host"),
    ],
)
def test_pods_are_told_with_the_clusters_engine_and_their_path(  # noqa: PLR0917 - a row
    plan: Plan, sut: str, at: str, client: str, by: str, engine: str, runtime: str | None, network: str
) -> None:
    arm = plan.arm("bridge")
    settings = arm.settings
    assert settings.client is not None
    placed = {
        "sut": settings.sut.model_copy(update={"deployment": sut, "network": NetworkKind(at)}),
        "client": settings.client.model_copy(update={"deployment": client, "network": NetworkKind(by)}),
    }
    setup = setup_of(arm.model_copy(update={"settings": settings.model_copy(update=placed)}))
    assert (setup.engine, setup.runtime, setup.network) == (engine, runtime, network)


def test_only_the_metrics_that_were_asked_for_are_added(plan: Plan, records: list[RunRecord]) -> None:
    (known,) = claims_of(plan, records, metrics=["throughput"]).values()
    assert known.effect.metric == "throughput"
    with pytest.raises(StudyError, match="no finding of this study has a metric 'troughput'"):
        claims_of(plan, records, metrics=["troughput"])


def test_an_arm_with_a_rate_to_keep_has_no_claim_on_throughput(plan: Plan, records: list[RunRecord]) -> None:
    kept = [
        with_parts(each, measurement={**as_tree(each.measurement), "details": {"delivered_share": 1.0}})
        if each.arm == "bridge"
        else each
        for each in records
    ]
    metrics = {each.effect.metric for each in claims_of(plan, kept).values()}
    assert "throughput" not in metrics
    assert "latency_p95" in metrics


def test_a_mix_of_ycsb_is_called_as_in_the_publications(plan: Plan) -> None:
    settings = plan.arm("bridge").settings
    mixed = {"workload_name": "ycsb", "workload": {"core_workload": "a", "threads": 4}}
    assert workload_words(settings.model_copy(update=mixed)) == "YCSB A"
    sent = {"workload_name": "tare-load", "workload": {"sysbench": {"script": "oltp_read_only"}, "rate": 300.0}}
    assert workload_words(settings.model_copy(update=sent)) == "sysbench oltp_read_only at 300/s"
    sent = {"workload_name": "tare-load", "workload": {"ycsb": {"core_workload": "a"}, "connections": 4}}
    assert workload_words(settings.model_copy(update=sent)) == "YCSB A"
    assert (
        workload_words(settings.model_copy(update={"workload_name": "sysbench-cpu", "workload": {}}))
        == "sysbench-cpu"
    )


def test_the_command_adds_a_store_and_advice_takes_it_into_account(
    plan: Plan, records: list[RunRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    published = _claims_on_throughput()
    with resume_store(tmp_path / "store", plan) as writer:
        for record in records:
            place = writer.staging / f"{record.run_id}-{record.attempt}"
            place.mkdir(parents=True)
            (place / "client.stdout").write_text("out\n")
            writer.commit(record.model_copy(update={"plan_digest": plan.digest}))
    shown = CliRunner().invoke(app, ["knowledge", "add", str(tmp_path / "store")])
    assert shown.exit_code == 0, shown.exception
    added = [Path(line) for line in shown.stdout.splitlines()]
    assert added
    assert all(path.parent == tmp_path / "home" / "knowledge" for path in added)
    assert _claims_on_throughput() == published + 1
    assert "`tare advise` uses them" in shown.stderr
    apart = CliRunner().invoke(app, ["knowledge", "add", str(tmp_path / "store"), "--to", str(tmp_path / "apart")])
    assert f"`tare advise --claims {tmp_path / 'apart'}` uses them" in apart.stderr


def _claims_on_throughput() -> int:
    """How many of this study `tare knowledge list` counts."""
    listed = CliRunner().invoke(app, ["knowledge", "list", "--study", "percona-2016", "--metric", "throughput"])
    return int(listed.stderr.split()[0])
