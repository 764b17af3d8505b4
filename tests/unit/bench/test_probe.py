"""What the benchmark of tare-probe says where it cannot know."""

from __future__ import annotations

import pytest

from bench.probe import servers
from bench.probe.costs import caused, watch
from bench.probe.rates import scraped_hz
from bench.probe.tables import Cost, Rapid, goals, table

RAPID = Rapid("none", 8.0, 0.03, 0.03, 8000, 0, 20.0, 80.0, 200.0, 3.0, "fifo:20")


def test_what_a_tool_causes_in_daemons_is_what_they_use_more_than_without_it() -> None:
    during, idle = [0.031, 0.030, 0.032, 0.9] * 3, [0.001, 0.002, 0.001, 0.5] * 3
    assert caused(during, idle) == pytest.approx(0.031 - 0.004 / 3)


def test_a_small_use_is_seen_through_some_seconds_of_somebody_else_s() -> None:
    # As measured: docker stats of one container, and the daemons without it while images were built.
    during = [0.0055, 0.0076, 0.0084, 0.0084, 0.0088, 0.0096, 0.0099, 0.0101, 0.0102, 0.0104, 0.0137, 0.0199]
    idle = [0.0009, 0.0009, 0.0010, 0.0011, 0.0012, 0.0015, 0.0018, 0.0019, 0.0023, 0.0073, 0.0158, 0.0476]
    assert caused(during, idle) == pytest.approx(0.0078, abs=0.001)


@pytest.mark.parametrize("idle", [[0.1, 0.2, 0.3, 0.4], [0.02, 0.3, 0.02, 0.3]])
def test_daemons_that_others_use_leave_the_figure_not_known_and_never_0(idle: list[float]) -> None:
    assert caused([0.03, 0.03, 0.03, 0.03] * 3, idle * 3) is None


def test_a_figure_that_is_not_known_reaches_no_goal_and_misses_none() -> None:
    costs = [Cost(tool, n, 0.1, 0.0, 2.0) for tool in ("floor", "tare-probe") for n in (1, 10)]
    costs += [Cost("docker stats", 1, 2.0, None, 20.0), Cost("docker stats", 10, 2.0, 30.0, 20.0)]
    lines = goals(costs, [RAPID])
    assert [line for line in lines if "not known" in line] == [
        "- not known: 50 x cheaper than docker stats, 1 containers: what others made the engine do hides it"
    ]
    assert "- reached: 50 x cheaper than docker stats, 10 containers: 320.00 x" in lines
    assert "| docker stats | 1 | not known | not known |" in table(costs, [RAPID], {})


def test_a_server_that_is_not_scraped_has_no_cost_and_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "UP_S", 0.0)
    with pytest.raises(SystemExit, match="did not answer"):
        watch(set(), 1.0, servers.scrape(1))
    with pytest.raises(SystemExit, match="does not answer"):
        scraped_hz(["sleep", "60"], "http://127.0.0.1:1/metrics", 1.0)
