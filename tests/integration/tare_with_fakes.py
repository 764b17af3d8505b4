"""The `tare` command with the fakes let in, for tests that need a whole process to kill: no study can name them."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from tare import cli
from tare.cli import run
from tare.deployments import DEPLOYMENTS
from tare.study.registry import Registry, installed
from tare.workloads import WORKLOADS


def with_fakes() -> Registry:
    """What is installed, and the fakes."""
    known = installed()
    return replace(
        known,
        databases={**known.databases, "fake": lambda _: None},
        workloads={name: workload.parameters for name, workload in WORKLOADS.items()},
        deployments={name: deployment.isolates_network for name, deployment in DEPLOYMENTS.items()},
    )


if __name__ == "__main__":
    with patch.object(run, "installed", with_fakes):
        cli.main()
