"""The ledger of known truths: it only grows, survives what cuts it off, and is summed up as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.truth.__main__ import LEDGER, ROOT, chosen_kinds, write_down
from bench.truth.figures import ALL, covered, proved
from bench.truth.ledger import Comparison, add, read
from bench.truth.page import BEGIN, END, chart, tables, within
from bench.truth.studies import AS_PUBLISHED, CELLS, KINDS, PROTOCOLS
from tare.plan.expand import CONTROL, expand

PAGE = ROOT / "docs" / "guides" / "calibration.md"


def comparison(number: int, **changes: Any) -> Comparison:
    tree: dict[str, Any] = {
        "store": f"store-{number}", "at": 1.0, "tare": "0.1.0", "commit": None, "machine": "m", "versions": "v",
        "cpu_model": "A", "cpus": 2, "kernel": "6", "engine": None, "engine_version": None, "load": 0.1,
        "protocol": "interleave", "database": "redis", "path": "bare", "seed": number, "arm": CONTROL,
        "injected": None, "truth": 0.0, "n": 8, "point": 0.0, "low": -0.01, "high": 0.01, "run_s": 3.0,
    }  # fmt: skip
    return Comparison.model_validate({**tree, **changes})


def injected(number: int, point: float, half: float = 0.02, **changes: Any) -> Comparison:
    values = {"arm": "more-work", "injected": "work +5 %", "truth": math.log(1 / 1.05), "point": point}
    return comparison(number, **{**values, "low": point - half, "high": point + half, **changes})


def test_a_comparison_is_added_once_and_lines_never_change(tmp_path: Path) -> None:
    ledger = tmp_path / "deep" / "ledger.jsonl"
    assert add(ledger, [comparison(1), injected(1, 0.0)]) == 2
    before = ledger.read_bytes()
    assert add(ledger, [comparison(1), comparison(2)]) == 1
    assert ledger.read_bytes().startswith(before)
    assert len(read([ledger]).comparisons) == 3


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    add(ledger, [comparison(1), comparison(2)])
    ledger.write_bytes(ledger.read_bytes()[:-40])
    assert add(ledger, [comparison(2), comparison(3)]) == 2
    ledgers = read([ledger])
    assert ([each.store for each in ledgers.comparisons], ledgers.torn) == (["store-1", "store-2", "store-3"], 0)


def test_a_line_that_was_cut_off_and_never_written_again_is_counted(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    add(ledger, [comparison(1), comparison(2)])
    ledger.write_bytes(ledger.read_bytes()[:-40])
    add(ledger, [comparison(3)])
    ledgers = read([ledger])
    assert ([each.store for each in ledgers.comparisons], ledgers.torn) == (["store-1", "store-3"], 1)
    assert "crashes cut them off" in tables(proved(ledgers.comparisons, ledgers.torn))


def test_two_arms_of_a_store_are_told_apart_where_one_was_cut_off(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    add(ledger, [injected(1, 0.0), comparison(1)])
    ledger.write_bytes(ledger.read_bytes()[:-40])
    assert read([ledger]).torn == 1
    assert add(ledger, [injected(1, 0.0), comparison(1)]) == 1
    assert (len(read([ledger]).comparisons), read([ledger]).torn) == (2, 0)


def test_a_line_behind_one_that_was_cut_off_is_not_lost_with_it(tmp_path: Path) -> None:
    one, other, joined = (tmp_path / name for name in ("one", "other", "joined"))
    add(one, [comparison(1)])
    add(other, [comparison(2)])
    joined.write_bytes(one.read_bytes()[:-40] + other.read_bytes())
    assert ([each.store for each in read([joined]).comparisons], read([joined]).torn) == (["store-2"], 1)


def test_of_two_lines_for_one_comparison_the_last_one_counts(tmp_path: Path) -> None:
    lines = [each.model_dump_json() for each in (comparison(1, n=8), comparison(2), comparison(1, n=12))]
    (tmp_path / "ledger.jsonl").write_text("\n".join(lines) + "\n")
    assert [(each.store, each.n) for each in read([tmp_path / "ledger.jsonl"]).comparisons] == [
        ("store-1", 12),
        ("store-2", 8),
    ]


def test_a_study_of_which_a_crash_cut_a_line_off_is_written_down_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, lines = SimpleNamespace(path=tmp_path), [injected(1, 0.0), comparison(1)]
    night: Any = SimpleNamespace(
        ledger=tmp_path / "ledger.jsonl",
        identity=None,
        archive=SimpleNamespace(
            places=lambda _: [place],
            studied=lambda _: SimpleNamespace(observed=[each.as_result() for each in lines]),
        ),
    )
    monkeypatch.setattr("bench.truth.__main__.open_store", lambda _: SimpleNamespace(id="store-1"))
    monkeypatch.setattr(
        "bench.truth.__main__._comparison",
        lambda _place, _store, seen: next(each for each in lines if each.arm == seen.arm),
    )
    add(night.ledger, lines[:1])
    assert write_down(night) == 1
    assert write_down(night) == 0
    assert len(read([night.ledger]).comparisons) == 2


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_wherever_a_crash_cuts_the_next_writer_goes_on(tmp_path: Path, cut: int) -> None:
    ledger = tmp_path / "ledger.jsonl"
    add(ledger, [comparison(1), comparison(2)])
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-cut])
    add(ledger, [comparison(1), comparison(2), comparison(3)])
    assert {each.store for each in read([ledger]).comparisons} == {"store-1", "store-2", "store-3"}


def test_ledgers_of_several_machines_are_one(tmp_path: Path) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    add(here, [comparison(1)])
    add(there, [comparison(1), comparison(2, machine="other")])
    assert len(read([here, there, tmp_path / "none.jsonl"]).comparisons) == 2
    assert add(here, read([there]).comparisons) == 1
    assert {row.name for row in proved(read([here]).comparisons).machines} == {"m", "other"}


def test_a_link_in_the_place_of_the_ledger_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=r"symbolic link|ELOOP|levels"):
        add(tmp_path / "ledger.jsonl", [comparison(1)])


def test_false_positives_are_counted_by_protocol_and_published_ways_are_left_out_of_the_whole() -> None:
    seen = [comparison(n) for n in range(18)] + [comparison(n, low=0.001, high=0.02) for n in range(18, 20)]
    seen += [comparison(n, protocol="fixed", low=0.001, high=0.02) for n in range(20, 30)]
    rows = {row.name: row.false for row in proved(seen).protocols}
    assert (rows["interleave"].count, rows["interleave"].of) == (2, 20)
    assert rows["fixed"].share == 1.0
    assert (rows[ALL].count, rows[ALL].of) == (2, 20)
    assert rows[ALL].high == pytest.approx(0.317, abs=1e-3)  # 2 of 20, any table of Clopper and Pearson


def test_a_study_is_judged_by_the_truth_that_others_of_its_group_tell() -> None:
    truth = math.log(1 / 1.05)
    rng = np.random.default_rng(1)
    points = [truth + float(each) for each in rng.normal(0, 0.004, 10)]
    group = [injected(n, point, truth=truth + float(rng.normal(0, 0.001))) for n, point in enumerate(points)]
    assert covered(group).of == 10
    assert covered(group).share == 1.0
    assert covered([*group, injected(99, 0.05)]).count == 10
    assert covered([injected(n, truth, database=name) for n, name in enumerate(("redis", "mariadb"))]).of == 0


def one_of_each() -> Sequence[Comparison]:
    rng = np.random.default_rng(2)
    return [
        each
        for n, protocol in enumerate(list(PROTOCOLS) * 4)
        for each in (
            comparison(n, protocol=protocol),
            injected(n, float(rng.normal(-0.049, 0.004)), protocol=protocol),
        )
    ]


def test_the_page_takes_tables_between_its_marks_and_keeps_the_rest() -> None:
    known = proved(one_of_each())
    page = within(f"before\n{BEGIN}\nold\n{END}\nafter\n", known)
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"\n{END}\nafter\n")
    assert "old" not in page
    assert within(page, known) == page
    with pytest.raises(ValueError, match="lacks"):
        within("no marks", known)


def test_goals_are_not_met_before_there_is_enough() -> None:
    assert "not decided yet" in tables(proved(one_of_each()))
    many = [comparison(n) for n in range(400)]
    assert "least: met." in tables(proved(many))
    assert "least: missed." in tables(proved([*many, *(comparison(n, low=0.001) for n in range(400, 450))]))


def test_an_empty_ledger_proves_nothing() -> None:
    assert "none judged" in tables(proved([]))
    assert chart(proved([])).startswith("<svg")


def test_the_chart_names_every_protocol_and_its_figures() -> None:
    drawn = chart(proved(one_of_each()))
    for protocol in PROTOCOLS:
        assert f">{protocol}<" in drawn
    assert f"0 of {4 * len(PROTOCOLS.keys() - AS_PUBLISHED)}" in drawn


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_a_study_that_can_be_planned(name: str) -> None:
    cell, kind = CELLS[name], KINDS[name]
    plan = expand(kind.make(3))
    arms = {arm.name for arm in plan.study.arms}
    assert plan.seed == 3
    assert {contrast.arm for contrast in kind.contrasts} | {"same"} == arms
    assert cell.injected == (len(arms) > 2)
    assert expand(kind.make(3)).digest == plan.digest != expand(kind.make(4)).digest


def test_kinds_are_chosen_by_words_of_their_names() -> None:
    assert chosen_kinds(["redis", "duet", "bare"], sites=False) == ["duet-redis-bare"]
    assert not any(name.startswith("sites") for name in chosen_kinds([], sites=False))
    assert any(name.startswith("sites") for name in chosen_kinds([], sites=True))


def test_the_page_says_what_the_ledger_holds() -> None:
    ledger = read([LEDGER])
    text = PAGE.read_text(encoding="utf-8")
    assert within(text, proved(ledger.comparisons, ledger.torn)) == text, "make truth-page"
