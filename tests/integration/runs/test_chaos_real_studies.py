"""A few faults at random moments of studies of Redis on a test host with an engine of its own."""

from __future__ import annotations

import pytest
from tests.integration.runs.test_chaos import chaos


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("study", ["redis", "stages"])
def test_faults_of_each_part_of_a_real_study_cost_no_more_than_attempts(study: str) -> None:
    chaos("--study", study, "--faults", "15", "--seed", "5", "--minutes", "5")


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_demo_survives_kills() -> None:
    chaos(
        "--study",
        "percona-2016",
        "--kinds",
        "kill -9 tare",
        "--faults",
        "10",
        "--longest-s",
        "25",
        "--minutes",
        "9",
    )


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_pair_of_hosts_survives_cuts_silences_and_kills() -> None:
    chaos("--study", "pair", "--faults", "6", "--seed", "1", "--minutes", "9")
