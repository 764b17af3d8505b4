"""An engine that is restarted while a run between two hosts is under way, on the server's host or the client's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.hosts.meanwhile import once
from tests.integration.hosts.test_cluster_hosts import (
    RECIPE,
    assert_nothing_left,
    engine_restarts,
    must_answer,
    one_failed,
    play,
    small_plan,
)

from tare.record.run_record import Phase
from tare.sites.file import load_sites
from tools.lab import TestHost

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("side", ["server", "client"])
def test_an_engine_that_is_restarted_costs_one_attempt(
    side: str, engine_pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    recipe = tmp_path / "python.yaml"
    recipe.write_text(RECIPE)
    host = engine_pair[0 if side == "server" else 1]
    deployments = ("container", "bare") if side == "server" else ("bare", "container")
    plan = small_plan(recipe, deployments[0], nodes=1, client=deployments[1])
    spec = load_sites(engine_pair[0].lab.sites).chosen()
    try:
        played = play(spec, plan, tmp_path / "staging", once(Phase.MEASURE, engine_restarts(host)))
    finally:
        must_answer(host)
    why = one_failed(played)
    assert ("sut" if side == "server" else "client") in why or host.name in why
    assert_nothing_left(engine_pair)
