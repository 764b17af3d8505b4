"""Machines from EC2 after they were made: listed, destroyed, left by a tare that was killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.sites.cloud.aws import CLEAN, Aws, Faults
from tests.unit.sites.cloud.calls import done, planned, refused
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine import sites as command

ROOT = Path(__file__).resolve().parents[4]


def test_list_shows_what_runs_and_destroy_removes_all_of_it(aws: Aws, place: Path) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    for words in (("sites",), ("sites", "list")):
        shown = done(*words).stdout
        assert "grambow-2018" in shown
        assert "4 of 4" in shown
    gone = done("sites", "destroy", "--yes").stdout
    assert gone.count("removed machine tare-pairs-") == 4
    assert gone.count("removed firewall ") == 1
    assert gone.count("removed placement group ") == 2
    assert aws.left() == []
    assert not list((place / "home" / "rentals").glob("pairs-*"))
    assert done("sites", "list").stdout == "no machines from a cloud\n"


def test_destroying_twice_is_no_error(aws: Aws) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    done("sites", "destroy", "plan.yaml", "--yes")
    assert done("sites", "destroy", "plan.yaml", "--yes").stdout == "nothing to remove\n"
    assert done("sites", "destroy", "--yes").stdout == "nothing to remove\n"
    assert "knows no machines called 'pairs'" in str(refused("sites", "destroy", "pairs", "--yes"))


def test_destroy_asks_first(aws: Aws) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    assert CliRunner().invoke(app, ["sites", "destroy"], input="n\n").exit_code == 1
    assert "would remove machine tare-pairs-" in done("sites", "destroy", "--dry-run").stdout
    assert len(aws.instances()) == 4


KILLED = """
import os, signal, sys
from functools import partial
import boto3
from tare import cli
from tare.cli.machine import sites
from tare.sites.cloud.ec2 import offering
from tare.sites.cloud.waits import Waits
event, operation, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv[1:] = sys.argv[4:]
seen = []
def kill(**_):
    seen.append(1)
    if len(seen) == number:
        os.kill(os.getpid(), signal.SIGKILL)
real = boto3.Session
def hooked(**given):
    session = real(**given)
    session.events.register(f"{event}.ec2.{operation}", kill)
    return session
boto3.Session = hooked
offering.machine_here = lambda: "x86_64"
sites._READY = lambda *_: None
sites.Waits = partial(Waits, poll_s=0.01)
cli.main()
"""
MOMENTS = [
    ("before-send", "CreateSecurityGroup", 1),
    ("response-received", "CreateSecurityGroup", 1),
    ("before-send", "AuthorizeSecurityGroupIngress", 1),
    ("response-received", "CreatePlacementGroup", 1),
    ("before-send", "RunInstances", 1),
    ("response-received", "RunInstances", 1),
    ("response-received", "RunInstances", 4),
]


@pytest.mark.parametrize(
    ("event", "operation", "number"), MOMENTS, ids=["-".join(map(str, each)) for each in MOMENTS]
)
def test_what_a_killed_tare_asked_for_is_removed(
    aws: Aws, place: Path, event: str, operation: str, number: int
) -> None:
    planned(aws)
    env = {**os.environ, **CLEAN, "PYTHONPATH": str(ROOT / "python"), "AWS_ENDPOINT_URL": aws.url}
    argv = [sys.executable, "-c", KILLED, event, operation, str(number), "sites", "create", "plan.yaml", "--yes"]
    ended = preloaded.run(argv, env=env, timeout=120)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not Path("sites.yaml").exists()
    assert "machines of the plan pairs exist already" in str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "tare sites destroy pairs-" in done("sites", "list").stderr
    done("sites", "destroy", "--yes") if number == 1 else done("clean", "--sites", "plan.yaml", "--yes")
    assert aws.left() == []
    assert not list((place / "home" / "rentals").glob("pairs-*"))
    done("sites", "create", "plan.yaml", "--yes")


def test_machines_of_a_lost_ledger_are_destroyed_by_the_plan_s_tag(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    monkeypatch.setenv("TARE_HOME", str(place / "another"))
    assert "made by " in done("clean", "--sites", "plan.yaml", "--dry-run").stdout
    gone = json.loads(done("clean", "--sites", "plan.yaml", "--yes", "--format", "json").stdout)
    assert len(gone["removed"]) >= 7
    assert aws.left() == []


def test_what_others_made_by_the_same_plan_is_left_alone_unless_it_is_asked_for(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    made = len(aws.instances())
    monkeypatch.setenv("TARE_HOME", str(place / "another"))
    monkeypatch.setattr("getpass.getuser", lambda: "colleague")
    for words in (("clean", "--sites", "plan.yaml", "--yes"), ("sites", "destroy", "plan.yaml", "--yes")):
        kept = done(*words)
        assert "nothing to remove" in kept.stdout
        assert "was not destroyed" in kept.stderr
        assert len(aws.instances()) == made
    done("sites", "destroy", "plan.yaml", "--yes", "--others")
    assert aws.left() == []


def test_machines_of_another_plan_are_left_alone(aws: Aws) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    ec2 = aws.client()
    other = ec2.run_instances(ImageId=aws.image(), MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    Path("others.yaml").write_text(Path("plan.yaml").read_text().replace("name: pairs", "name: pair"))
    done("sites", "create", "others.yaml", "--yes", "--output", "others-sites.yaml")
    done("sites", "destroy", "pairs", "--yes")
    left = aws.instances()
    assert other in [each["InstanceId"] for each in left]
    assert len(left) == 5


def test_machines_that_a_running_tare_makes_are_not_taken_from_it(
    aws: Aws, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(aws)
    errors: list[str] = []

    def meanwhile(operation: str) -> None:
        if operation == "RunInstances" and not errors:
            words = [sys.executable, "-c", "from tare import cli; cli.main()", "sites", "destroy", "--yes"]
            env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
            ended = preloaded.run(words, env=env, timeout=60)
            errors.append(ended.stderr)

    faults.before = meanwhile
    done("sites", "create", "plan.yaml", "--yes")
    assert f"a running tare (process {os.getpid()}) is making the machines of pairs-" in errors[0]
    assert len(aws.instances()) == 4


def test_machines_past_their_end_of_life_are_named(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # UTC, as asked
            return datetime.now(UTC) + timedelta(hours=11)

    monkeypatch.setattr(command, "datetime", Later)
    result = done("sites")
    assert "past by 3.0 h" in result.stdout
    assert "is past its end of life (4 still running): tare sites destroy pairs-" in result.stderr
    assert json.loads(done("sites", "list", "--json").stdout)["rentals"][0]["past_end_of_life"] is True


def test_a_list_without_an_answer_says_so(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = done("sites", "list")
    assert "? of 4" in result.stdout
    assert "Unable to locate credentials" in result.stderr
