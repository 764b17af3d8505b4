"""`tare plan` shows the plan for people and for programs, and starts nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tare.cli import app
from tare.cli.study import planned
from tare.errors import EnvironmentLacks, StudyError
from tare.plan.estimate import RUN_OVERHEAD_S
from tare.plan.model import Plan
from tare.run import local
from tare.study.registry import Registry
from tare.workloads.fake import FakeWorkload

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "plan"
STUDY = """\
format: 1
name: paths
question: What does a network path cost, and does it depend on the number of clients?
sut: {image: tiny, database: fake, deployment: container, limits: {cpus: "0", memory: 512M}, settings: {a: true}}
client: {image: tiny, deployment: bare}
workload: {name: fake, rows: 1000000, warmup_s: 1, measure_s: 4.5}
protocol: {blocks: 3, seed: 7}
factors:
  path: {levels: {bare: {sut.deployment: bare}, host: {}, bridge: {sut.network: bridge}}}
  clients: {sets: workload.threads, levels: [1, 16]}
exclude: [{path: bridge, clients: 1}]
baseline: bare-clients-1
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    registry = Registry(
        databases={"fake": lambda _: None},
        workloads={"fake": FakeWorkload.parameters},
        deployments={"bare": False, "container": True},
        protocols=frozenset({"interleave", "fixed", "buckets"}),
        recipes=frozenset({"tiny"}),
    )
    monkeypatch.setattr(planned, "installed", lambda: registry)
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", "--elsewhere", *arguments])


@pytest.mark.parametrize("output", ["text", "json"])
def test_the_plan_is_shown_as_it_always_was(study: Path, output: str) -> None:
    shown = plan(str(study), "--format", output, "--verbose")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == (GOLDEN / f"paths.{'txt' if output == 'text' else 'json'}").read_text()


def test_the_plan_fits_80_columns(study: Path) -> None:
    assert max(len(line) for line in plan(str(study)).stdout.splitlines()) <= 80


def test_time_disk_and_arms_come_first_and_the_rest_is_for_those_who_ask(study: Path) -> None:
    lines = plan(str(study)).stdout.splitlines()
    starts = ("Blocks:", "Estimated time:", "Estimated disk:", "arm ")
    assert [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in starts] == [3, 4, 6, 9]
    assert not [line for line in lines if "runs in order" in line or "sut.limits.memory" in line]


def test_a_question_cannot_turn_the_terminal_s_writing_or_end_its_line(study: Path) -> None:
    question = "What does a network path cost, and does it depend on the number of clients?"
    hostile = '"<script>\\u200eexe.gnp\\nnewline\\e[2J' + "x" * 10_000 + '"'
    study.write_text(study.read_text().replace(question, hostile))
    output = plan(str(study)).stdout
    assert "<script>" in output
    assert not {"\u200e", "\x1b"} & set(output)
    assert len(output) < 5000


def test_the_same_seed_shows_the_same_plan_and_another_another(study: Path) -> None:
    first, again, other = (plan(str(study), "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_json_holds_runs_settings_and_estimate(study: Path) -> None:
    tree = json.loads(plan(str(study), "--format", "json").stdout)
    assert [run["index"] for run in tree["runs"]] == list(range(18))
    assert tree["estimate"]["data_sets"] == 1
    assert tree["estimate"]["block_run_s"] == pytest.approx(6 * (5.5 + RUN_OVERHEAD_S))
    assert tree["estimate"]["blocks"] == {"fewest": 3, "expected": 3, "most": 3}
    assert "text" not in tree["study"]


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        ("{blocks: 3, seed: 7}", "Blocks: 3, by the cap on blocks, fewer than the 8"),
        ("{max_minutes: 3}", "Blocks: 2, by the cap on time, fewer than the 8"),
        ("{target: 0.01}", "until every interval is within ±1 %, 8 at least and 40 at most; 20 if arms"),
        ("{name: fixed, blocks: 9}", "Blocks: 9, whatever the result."),
    ],
)
def test_least_expected_and_most_blocks_are_told(study: Path, protocol: str, sentence: str) -> None:
    study.write_text(STUDY.replace("{blocks: 3, seed: 7}", protocol))
    assert sentence in " ".join(plan(str(study)).stdout.split())


def test_runs_that_are_kept_together_are_shown_by_arm(study: Path) -> None:
    study.write_text(STUDY.replace("{blocks: 3, seed: 7}", "{name: fixed, blocks: 9, sequence: together}"))
    assert "1 to 9 bare-clients-1" in " ".join(plan(str(study), "--verbose").stdout.split())


def test_a_wrong_study_is_an_error_and_prints_no_plan(study: Path) -> None:
    study.write_text(STUDY.replace("rows: 1000000", "rowz: 1"))
    shown = plan(str(study))
    assert isinstance(shown.exception, StudyError)
    assert "workload.rowz: unknown key" in str(shown.exception)
    assert 'did you mean "rows"?' in str(shown.exception)
    assert shown.stdout == ""


def test_an_unknown_scale_is_an_error(study: Path) -> None:
    assert isinstance(plan(str(study), "--scale", "demo").exception, StudyError)


def test_what_the_machine_lacks_is_said_when_the_plan_is_made(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(plan: Plan, disk_bytes: float | None) -> None:
        raise EnvironmentLacks(f"no root for {len(plan.runs)} runs and {disk_bytes is not None}")

    monkeypatch.setattr(local, "refuse_without_rights", refuse)
    refused = CliRunner().invoke(app, ["plan", str(study)])
    assert isinstance(refused.exception, EnvironmentLacks)
    assert "arms" in refused.stdout, "the plan is shown all the same"
    assert plan(str(study)).exit_code == 0
