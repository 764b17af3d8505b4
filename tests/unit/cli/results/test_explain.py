"""`tare explain` on a store: profiles beside its runs, or none."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import known, store_of
from typer.testing import CliRunner, Result

from tare.cli import app
from tare.errors import StoreError, StudyError
from tare.record.run_record import RunRecord
from tare.store import open_store

BARE = [1000.0, 1010.0, 990.0]
S = 1_000_000_000
USER = "[db]"
TCP = "[db];do_syscall_64_[k];tcp_sendmsg_[k]"
NETFILTER = f"{TCP};nf_hook_slow_[k];nf_conntrack_in_[k]"
STACKS: Mapping[str, Mapping[tuple[str, str], int]] = {
    "bare": {("sut", USER): 600, ("sut", TCP): 200, ("client", USER): 200},
    "bridge": {("sut", USER): 600, ("sut", TCP): 200, ("sut", NETFILTER): 100, ("client", USER): 200},
}


def measured(record: RunRecord) -> RunRecord:
    """Ten seconds were measured, and sampled; 1,000 operations were made."""

    def change(tree: dict[str, Any]) -> None:
        tree["usage"] = {**(tree["usage"] or {}), "began_monotonic_s": 100.0, "ended_monotonic_s": 110.0}
        tree["measurement"]["operations"] = 1000
        tree["monitors"] = {"profile": {"samples": 1000}}

    return synthetic.changed(record, change)


def put_profile(path: Path, stacks: Mapping[tuple[str, str], int], symbols_missing: str | None = None) -> None:
    facts = {
        "profile_version": 1, "kernel": "6.18", "rate_hz": 100, "period_ns": 10_000_000, "cpus": 2,
        "began_ns": 99 * S, "ended_ns": 111 * S, "slot_ns": S, "samples": 2400, "lost": 0, "crowded": 0,
        "cpu_ns": 0,
        "kernel_symbols_missing": symbols_missing,
    }  # fmt: skip
    rows = [(100 * S, count, subject, "db", stack) for (subject, stack), count in stacks.items()]
    frame = pl.DataFrame(rows, schema=["at_ns", "samples", "subject", "command", "stack"], orient="row")
    path.parent.mkdir(parents=True)
    frame.write_parquet(path, metadata={"tare.profile": json.dumps(facts)})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rates = {"bare": BARE, "bridge": BARE, "baseline-again": BARE}
    made = store_of(tmp_path / "store", [measured(each) for each in known(rates)])
    opened = open_store(made)
    for record in opened.records():
        path = opened.raw(record, "monitors/profile/profile.parquet")
        put_profile(path, STACKS.get(record.arm, STACKS["bare"]))
    return made


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def test_each_arm_has_its_sentence_and_what_was_added_is_named(store: Path) -> None:
    result = call(store)
    assert result.exit_code == 0, result.output
    assert "bridge: 0.0 % CPU per operation; with client and kernel +10.0 points: netfilter" in " ".join(
        result.output.split()
    )
    assert "baseline-again: 0.0 % CPU per operation" in result.output


def test_one_arm_is_told_in_full_as_json(store: Path) -> None:
    (result,) = json.loads(call(store, "bridge", "--format", "json").output)["arms"]
    assert result["first"] == "netfilter"
    assert result["cpu"]["baseline"] == pytest.approx(10_000)
    added = {cause["name"]: cause["added"] for cause in result["causes"]}
    assert added["netfilter"] == pytest.approx(1000)
    assert added["tcp-ip"] == pytest.approx(0)


@pytest.mark.parametrize("style", ["collapsed", "speedscope", "flamegraph"])
def test_stacks_are_written_for_other_tools(store: Path, style: str, tmp_path: Path) -> None:
    output = tmp_path / "stacks"
    result = call(store, "bridge", "--format", style, "--output", output)
    assert result.exit_code == 0, result.output
    assert "nf_conntrack_in_[k]" in output.read_text()


def test_pprof_is_written_as_it_is(store: Path, tmp_path: Path) -> None:
    output = tmp_path / "stacks.pb.gz"
    result = call(store, "bridge", "--format", "pprof", "--output", output)
    assert result.exit_code == 0, result.output
    assert b"nf_conntrack_in_[k]" in gzip.decompress(output.read_bytes())


def test_stacks_are_of_one_arm(store: Path) -> None:
    refused = call(store, "--format", "flamegraph").exception
    assert isinstance(refused, StudyError)
    assert "one arm" in str(refused)


@pytest.mark.parametrize(("arm", "words"), [("brigde", "no arm 'brigde'"), ("bare", "is the baseline")])
def test_an_arm_that_cannot_be_explained_is_refused_by_name(store: Path, arm: str, words: str) -> None:
    refused = call(store, arm).exception
    assert isinstance(refused, StudyError)
    assert words in str(refused)


def test_without_symbols_the_sides_are_told_and_the_reason(store: Path) -> None:
    opened = open_store(store)
    for record in opened.records():
        path = opened.raw(record, "monitors/profile/profile.parquet")
        path.unlink()
        path.parent.rmdir()
        put_profile(path, {("sut", "[db];[unknown]_[k]"): 500, ("client", USER): 100}, "kptr_restrict")
    result = call(store, "bridge")
    text = " ".join(result.output.split())
    assert result.exit_code == 0
    assert "kernel (no names)" in text
    assert "functions of the kernel have no names, so there are no components: kptr_restrict" in text


def test_a_store_without_profiles_is_explained_as_far_as_counters_go(tmp_path: Path) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["usage"] = {
            **(tree["usage"] or {}), "began_monotonic_s": 100.0, "ended_monotonic_s": 110.0, "sut_cpu_s": 8.0
        }  # fmt: skip
        tree["measurement"]["operations"] = 1000

    records = [synthetic.changed(each, change) for each in known({"bare": BARE, "bridge": BARE})]
    plain = store_of(tmp_path / "store", records)
    result = call(plain)
    text = " ".join(result.output.split())
    assert "by the kernel's counters" in text
    assert "`tare run --profile`" in text
    refused = call(plain, "bridge", "--format", "flamegraph").exception
    assert isinstance(refused, StoreError)
    assert "no run of bridge has sampled stacks" in str(refused)
