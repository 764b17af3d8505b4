"""A folder of its own for each test, machines that are ready at once, and EC2 as moto has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.unit.sites.cloud.aws import Aws, Faults, emptied, serving

from tare.cli.machine import sites as command
from tare.sites.cloud.ec2 import offering
from tare.sites.cloud.waits import Waits

QUICK = partial(Waits, poll_s=0.01, settle_s=0.0, start_s=0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture
def aws(server: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    return emptied(server, monkeypatch)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    monkeypatch.setattr("tare.sites.cloud.ec2.provider.boto3.Session", lambda **_: made.session())
    return made


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with machines that are ready at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(command, "Waits", QUICK)
    monkeypatch.setattr(command, "_READY", lambda *_: None)
    monkeypatch.setattr(offering, "machine_here", lambda: "x86_64")
    return tmp_path
