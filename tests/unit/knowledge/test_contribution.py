"""A contributed claim is accepted, or refused with a sentence and a hint for each fault."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.knowledge.test_claims import RIGHT
from tests.unit.knowledge.test_own import plan, records
from typer.testing import CliRunner

from tare.cli import app
from tare.knowledge.claim import load_claim, load_claims
from tare.knowledge.contribution import checked
from tare.knowledge.own import claims_of, write_claims
from tare.plan.model import Plan
from tare.record.run_record import RunRecord

__all__ = ["plan", "records"]
NOW = datetime(2026, 11, 25, tzinfo=UTC)


@pytest.fixture
def own(plan: Plan, records: list[RunRecord], tmp_path: Path) -> Path:
    """The file of one's own finding, as `tare knowledge add` writes it."""
    paths = write_claims(claims_of(plan, records, lambda key: 0.01), tmp_path / "own")
    return next(path for path in paths if "throughput" in path.name)


def test_a_right_claim_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(RIGHT)
    assert checked(tmp_path / "mine.yaml", load_claims(), NOW).faults == ()


@pytest.mark.parametrize(
    ("old", "new", "what", "hint"),
    [
        ("metric: throughput", "metric: througput", "have a metric 'througput'", "throughput"),
        ("year: 2020", "year: 2031", "is of 2031, which is in the future", "year that the source states"),
        ("read: whole", "read: notes", "notes on its source", "read the source"),
        ("  n: 8", "  n: 2", "a standard error of 2 is none", "leave `se` and `n` out"),
        ("log_ratio: -0.1054", "log_ratio: 9.2103", "a factor of 10000", "check units"),
        ("format: 1", "format: 2", "newer than this tare", "newer tare"),
        (', url: "https://example.org/"', "", "needs a source", ""),
        ('url: "https://example.org/"', "store: abc", "not the digest of a plan", "tare knowledge add"),
    ],
)
def test_each_fault_has_a_sentence_and_a_hint(old: str, new: str, what: str, hint: str, tmp_path: Path) -> None:
    text = RIGHT.replace(old, new, 1)
    if "9.2103" in new:
        text = text.replace("relative: -0.1", "relative: 9999")
    assert text != RIGHT
    (tmp_path / "mine.yaml").write_text(text)
    faults = checked(tmp_path / "mine.yaml", load_claims(), NOW).faults
    (fault,) = [each for each in faults if what in each.what]
    assert hint in fault.do
    assert fault.do


def test_a_claim_that_is_there_already_is_refused_by_id_and_by_what_it_says(tmp_path: Path) -> None:
    known = load_claims()
    shipped = next(each for each in known if each.id == "moby-11911-host")
    for name in ("moby-11911-host", "another"):
        (tmp_path / f"{name}.yaml").write_text(shipped.file.read_text())
    assert "already" in checked(tmp_path / "moby-11911-host.yaml", known, NOW).faults[0].what
    assert "says the same" in checked(tmp_path / "another.yaml", known, NOW).faults[0].what


def test_every_claim_that_comes_with_tare_would_be_accepted_but_for_notes() -> None:
    known = load_claims()
    faults = {fault.what for each in known for fault in checked(each.file, known, NOW).faults}
    assert faults <= {"it was written from notes on its source"}


def test_a_finding_of_one_s_own_carries_what_it_is_judged_by(own: Path) -> None:
    evidence = load_claim(own).claim.evidence
    assert evidence is not None
    assert (evidence.failed, evidence.calibrated_spread) == (0, 0.01)
    assert evidence.runs == 24
    assert len(evidence.machine) == len(evidence.versions) == 16
    assert evidence.control == pytest.approx(0, abs=0.01)
    assert checked(own, (), NOW).faults == ()


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("control_low", "0.02", "its control differs from the baseline"),
        ("spread", "0.5", "standard error does not follow from spread and n"),
        ("evidence", None, "needs `evidence`"),
        ("control", None, "has no control"),
        ("control_low", None, "its control has no interval"),
        ("parity", "unknown", "its parity is unknown"),
        ("alarms", "['machine-noise: others used the machine']", None),
    ],
)
def test_a_finding_that_cannot_be_judged_or_may_not_stand_is_refused(
    key: str, value: str | None, what: str | None, own: Path
) -> None:
    lines = own.read_text().splitlines(keepends=True)
    (at,) = [n for n, line in enumerate(lines) if line.strip().startswith(f"{key}:")]
    indent = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and (
        len(lines[end]) - len(lines[end].lstrip()) > indent or lines[end].startswith(" " * indent + "-")
    ):
        end += 1
    lines[at:end] = [] if value is None else [f"{' ' * indent}{key}: {value}\n"]
    own.write_text("".join(lines))
    result = checked(own, (), NOW)
    if what is None:
        assert result.faults == ()
        assert result.notes == ("its study breaks a rule: machine-noise: others used the machine",)
    else:
        assert [each.what for each in result.faults if what in each.what]


def test_the_command_says_each_fault_and_ends_with_1(tmp_path: Path) -> None:
    good, bad = tmp_path / "mine.yaml", tmp_path / "bad.yaml"
    good.write_text(RIGHT)
    bad.write_text(RIGHT.replace("metric: throughput", "metric: nope").replace("study: mine", "study: other"))
    fine = CliRunner().invoke(app, ["knowledge", "check", str(good)])
    assert (fine.exit_code, fine.stdout) == (0, f"{good}: accepted\n")
    refused = CliRunner().invoke(app, ["knowledge", "check", str(good), str(bad)])
    assert refused.exit_code == 1
    assert f"{bad}: refused\n  neither claims nor reports have a metric 'nope'\n    " in refused.stdout
