"""The tables of `bench.load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bench.load import java
from bench.load.cpu import CASES, chosen, commands, cpu_us, lacking, ratio, row
from bench.load.open_loop import delivered_row, stop_row, truth_s
from bench.load.servers import Lab


def test_ratios_are_those_of_pairs() -> None:
    assert ratio([1.0, 3.0, 2.0], [2.0, 2.0, 2.0]) == (1.0, 0.5, 1.5)


def test_a_row_says_whether_the_goal_is_met() -> None:
    case = CASES[0]
    assert row(case, [6.0], [12.0]).endswith(
        "| 6.00 | redis-benchmark: 12.00 | 0.50 (0.50 to 0.50), 1 pairs | 0.70: met |"
    )
    assert row(case, [12.0], [12.0]).endswith("0.70: missed |")


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "ycsb_jars", lambda: None)
    monkeypatch.setattr(java, "cassandra_root", lambda: None)


def test_both_programs_of_a_case_send_equally_much(tmp_path: Path) -> None:
    for case in CASES:
        words = commands(case, Lab(Path("tare-load"), tmp_path, 0, 0), 1, 0.1)
        ours, theirs = words["tare-load"], " ".join(words[case.peer])
        count = case.operations // 10
        assert ours[ours.index("--operations") + 1] == str(count)
        each = count // case.connections
        asked = (
            f"-n {count} ",
            f"--events={count} ",
            f"-t {each} ",
            f"--requests={each}",
            f"operationcount={count} ",
            f"--duration {count} ",
        )
        assert any(word in theirs for word in (*asked, f"read n={count} ")), theirs


def test_cases_are_chosen_by_words_of_their_names_and_peers() -> None:
    assert chosen([]) == list(CASES)
    assert {case.peer for case in chosen(["MariaDB", "latte"])} == {"sysbench", "sysbench-tpcc", "YCSB", "latte"}
    assert all("MariaDB" in case.name or case.peer == "latte" for case in chosen(["MariaDB", "latte"]))
    assert chosen(["Oracle"]) == []


def test_the_truth_of_a_stop_needs_no_run() -> None:
    assert truth_s(0.95) == pytest.approx(1.5)
    assert truth_s(0.99) == pytest.approx(1.9)
    assert truth_s(0.5) == 0.0


def test_what_a_program_does_not_tell_is_said() -> None:
    line = stop_row("sysbench", 1_000, {"p99": 1.9})
    assert line == "| sysbench | 1,000 | not told | 1.900 s of 1.900 s (+0.0%) | not told |  |"


def test_a_stop_that_is_not_seen_misses_the_goal() -> None:
    assert stop_row("tare-load", 1_000, {"p99": 1.87}).endswith("| met |")
    assert stop_row("tare-load", 1_000, {"p99": 1.80}).endswith("| missed |")


def test_what_is_not_installed_is_left_out_and_said() -> None:
    for case in CASES:
        if case.peer in ("YCSB", "cassandra-stress", "latte", "sysbench-tpcc"):
            assert lacking(case)
        elif case.peer != "memtier":
            assert lacking(case) is None


def test_generators_built_elsewhere_are_found_in_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "memtier_benchmark"
    built.write_text("")
    built.chmod(0o755)
    monkeypatch.setenv("PEERS", str(tmp_path))
    case = next(case for case in CASES if case.peer == "memtier")
    assert lacking(case) is None
    assert str(built) in commands(case, Lab(Path("tare-load"), tmp_path, 0, 0), 1, 0.1)["memtier"]


def test_a_generator_s_own_logs_stay_out_of_the_repository(tmp_path: Path) -> None:
    cpu_us(["sh", "-c", "echo >latte-1.log"], min(os.sched_getaffinity(0)), 1, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latte-1.log"]


def test_a_rate_is_delivered_in_part() -> None:
    def measured(right: int, lag_us: int) -> dict[str, Any]:
        used = {"cpu_ns": right * 20_000}
        return {"right": right, "missed": 1_000 - right, "lag_ns": {"p99": lag_us * 1000}, "usage": used}

    good, short, late = measured(1_000, 45), measured(990, 45), measured(1_000, 145)
    row = delivered_row(100, [good, short], [late, late], 10)
    assert row == "| 100 | 99.0000% | 10 | 45 | 20.0 | 145 | 20.0 | missed |"
    assert delivered_row(100, [good], [late], 10).endswith("| met |")
    assert delivered_row(100, [late, good, late], [good], 10).endswith("| missed |")
