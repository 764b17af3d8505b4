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
