"""Calling tare in a folder of its own, with a plan for EC2."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sites.cloud.aws import Aws
from typer.testing import CliRunner, Result

from tare.cli import app
from tare.errors import TareError

PLAN = """\
format: 1
name: pairs
study: grambow-2018
provider: ec2
region: eu-central-1
machine: m5.large
image: IMAGE
sites: 2
placement: cluster
disk: {size_gb: 20, kind: gp3}
lifetime_h: 8
ssh_from: 203.0.113.7/32
packages: [docker.io]
"""


def planned(aws: Aws, *, old: str = "", new: str = "") -> None:
    assert old in PLAN
    Path("plan.yaml").write_text(PLAN.replace(old, new, 1).replace("IMAGE", aws.image()))


def tare(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def done(*words: str) -> Result:
    result = tare(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def refused(*words: str) -> TareError:
    result = tare(*words)
    assert isinstance(result.exception, TareError), (result.output, result.exception)
    return result.exception
