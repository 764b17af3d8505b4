"""Traps that come with tare: each is recognised by the facts that it names, and by no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tare.errors import StudyError
from tare.knowledge.claim import load_claims
from tare.knowledge.schema import TRAP_SCHEMA
from tare.study.catalogue import claims_folder, traps_folder
from tare.traps.facts import FACTS
from tare.traps.predicate import Answer
from tare.traps.trap import TrapFile, load_trap, load_traps

TRAPS = load_traps()
ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference" / "traps.md"
each_trap = pytest.mark.parametrize("known", TRAPS, ids=lambda known: known.id)


@each_trap
def test_a_trap_fits_the_schema_and_its_examples(known: TrapFile) -> None:
    tree = YAML(typ="safe", pure=True).load(known.file.read_text())
    assert [error.message for error in Draft202012Validator(TRAP_SCHEMA.tree()).iter_errors(tree)] == []
    examples = known.trap.examples
    assert {known.trap.ask(facts) for facts in examples.met} == {Answer.YES}
    assert {known.trap.ask(facts) for facts in examples.not_met} == {Answer.NO}


@each_trap
def test_without_its_facts_a_trap_is_neither_met_nor_missed(known: TrapFile) -> None:
    assert known.trap.ask({}) is Answer.UNKNOWN
    for facts in known.trap.examples.met:
        for name in facts:
            fewer = {fact: value for fact, value in facts.items() if fact != name}
            assert known.trap.ask(fewer) is not Answer.NO, f"without {name}"


@each_trap
def test_a_trap_hits_no_other_database(known: TrapFile) -> None:
    if known.trap.hits.databases:
        for facts in known.trap.examples.met:
            assert known.trap.ask({**facts, "database": "nginx"}) is Answer.NO


def test_traps_quote_claims_that_exist_and_no_claim_is_a_trap() -> None:
    claims = {claim.id for claim in load_claims()}
    assert {claim for known in TRAPS for claim in known.trap.cost.claims} <= claims
    assert not {known.id for known in load_traps()} & claims
    assert traps_folder().parent == claims_folder()


def test_there_are_the_thirteen_reports_and_more_and_a_weak_source_says_why() -> None:
    assert len(TRAPS) >= 43
    urls = [source.url for known in TRAPS for source in known.trap.sources]
    for report in (
        "docker-library/postgres/issues/416", "docker-library/mysql/issues/579", "containers/podman/issues/16796",
        "docker-library/mongo/issues/311", "docker-library/postgres/issues/809",
        "kubernetes/kubernetes/issues/67577",
        "moby/moby/issues/47537", "docker/for-linux/issues/1068", "moby/moby/issues/37471",
        "MariaDB/mariadb-docker/issues/478", "TechEmpower/FrameworkBenchmarks/issues/6486", "moby/moby/issues/8119",
        "docker-library/mysql/issues/52", "docker-library/postgres/issues/1147",
    ):  # fmt: skip
        assert any(url.endswith(report) for url in urls), report


def test_every_fact_is_asked_for_by_a_trap_or_shown_and_the_page_has_all() -> None:
    page = REFERENCE.read_text()
    missing = [name for name in FACTS if f"| `{name}` |" not in page]
    assert missing == []
    assert [known.id for known in TRAPS if f"`{known.id}`" not in page] == []


BROKEN = """\
format: 1
title: t
says: s
when: {WHEN}
cost: {says: c}
remedy: {says: r}
sources: [{title: t, url: "https://example.org/", read: part}]
examples: {met: [{shm.bytes: 1}], not_met: [{shm.bytes: 1000000000}]}
"""


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("{fact: shm.size, below: 64M}", "not a fact"),
        ("{fact: shm.bytes, below: 64M, above: 1}", "needs one of"),
        ("{fact: shm.bytes, above: 64M}", "example 1 of `met`"),
        ("{fact: shm.bytes, below: 2G}", "example 1 of `not_met`"),
        ("{all: []}", "all"),
    ],
)
def test_a_trap_that_is_wrong_is_refused_with_the_reason(tmp_path: Path, when: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(BROKEN.replace("{WHEN}", when))
    with pytest.raises(StudyError, match=message):
        load_trap(path)


def test_the_schema_on_disk_is_the_model() -> None:
    kept = Path(__file__).resolve().parents[3] / "schemas" / TRAP_SCHEMA.name
    assert json.loads(kept.read_text()) == TRAP_SCHEMA.tree()


def test_the_readme_counts_the_traps() -> None:
    assert f"out of {len(TRAPS)} [traps]" in (ROOT / "README.md").read_text()
