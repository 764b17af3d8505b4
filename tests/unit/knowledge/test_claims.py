"""Claims that come with tare are right as they stand; wrong ones are refused, with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tare.errors import StudyError
from tare.knowledge.claim import Between, ClaimFile, Measured, claim_called, load_claim, load_claims
from tare.knowledge.schema import CLAIM_SCHEMA
from tare.study.catalogue import claims_folder

RIGHT = """\
format: 1
study: mine
says: "In a container, it did a tenth less."
context:
  database: {name: redis}
  load: {workload: redis-benchmark, operation: SET}
  arm: {deployment: container, network: host, storage: bind, engine: docker, runtime: runc}
  baseline: {deployment: bare, network: host, storage: host, engine: "none", runtime: "none"}
  client_host: same
effect:
  kind: measured
  metric: throughput
  log_ratio: -0.1054
  se: 0.01
  n: 8
  printed: {relative: -0.1}
how: {statistic: mean, parity: known, repetitions: 8}
source: {title: A, authors: B, year: 2020, url: "https://example.org/", where: "Table 1", read: whole}
"""


@pytest.fixture(scope="module")
def shipped() -> tuple[ClaimFile, ...]:
    return load_claims()


def tree(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def written(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_claim_that_comes_with_tare_fits_the_schema(shipped: tuple[ClaimFile, ...]) -> None:
    schema = CLAIM_SCHEMA.tree()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert [error.message for known in shipped for error in validator.iter_errors(tree(known.file))] == []


def test_every_claim_lies_in_the_folder_of_its_study(shipped: tuple[ClaimFile, ...]) -> None:
    assert [known.id for known in shipped if known.file.parent.name != known.study] == []
    assert {known.file.parent.parent for known in shipped} == {claims_folder()}


def test_the_report_of_grambow_is_in_it_row_by_row(shipped: tuple[ClaimFile, ...]) -> None:
    rows = [each for each in shipped if "Table" in each.claim.source.where and each.study == "grambow-2018"]
    assert len(rows) == 2 * 8 * 3
    seen = {each.id: each.claim.effect for each in rows}
    twelve = seen["grambow-2018-m3-large-t30-update-iv"]
    assert isinstance(twelve, Measured)
    assert twelve.printed.relative == 0.1207
    assert twelve.n == 30
    averages = [each for each in rows if each.claim.how.summary_of]
    assert len(averages) == 2 * 2 * 3
    assert all(isinstance(each.claim.effect, Measured) and each.claim.effect.se is None for each in averages)


@pytest.mark.parametrize(
    ("claim", "relative"),
    [
        ("percona-2016-published-port", 2200 / 7100 - 1),
        ("percona-2016-bridge", 6300 / 7100 - 1),
        ("percona-2016-host", 0.0),
        ("percona-2016-shared", 0.0),
        ("moby-11911-published-port", -0.554),
        ("moby-11911-host", -0.0127),
        ("moby-11911-remote-client", -0.0171),
        ("gvisor-redis-set", -0.491),
        ("gvisor-redis-lrange-600", -0.339),
        ("gvisor-fio-fio-randwrite", -0.358),
        ("serverdevworker-kvm", -0.066),
        ("esequeira-mitigations-count", -0.377),
        ("mamememo-seccomp-default", 2.452876383 / 1.321703922 - 1),
        ("rootlesskit-ports-slirp4netns", 9.78 / 35.6 - 1),
    ],
)
def test_figures_are_the_published_ones(claim: str, relative: float, shipped: tuple[ClaimFile, ...]) -> None:
    effect = claim_called(shipped, claim).claim.effect
    assert isinstance(effect, Measured)
    assert 2.718281828459045**effect.log_ratio - 1 == pytest.approx(relative, abs=6e-4)


def test_a_range_keeps_its_open_end(shipped: tuple[ClaimFile, ...]) -> None:
    effect = claim_called(shipped, "casalicchio-2017-cpu-high").claim.effect
    assert isinstance(effect, Between)
    assert effect.low is None
    assert effect.absolute


def test_a_right_claim_is_read(tmp_path: Path) -> None:
    known = load_claim(written(tmp_path, RIGHT))
    assert known.id == "mine"
    assert known.claim.effect.metric == "throughput"


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("source: {", "sauce: {", ":1:1:", "a claim needs a source"),
        (', url: "https://example.org/"', "", ":18:1:", "a claim needs a source"),
        ('url: "https://example.org/"', "url: example.org", ":18:", "not of the form"),
        (', where: "Table 1"', "", ":18:", "missing"),
        ("log_ratio: -0.1054", "log_ratio: -0.2", ":10:1:", "not what `printed` gives"),
        ("  n: 8\n", "", ":10:1:", "independent units"),
        ("se: 0.01", "se: 0", ":14:3:", "greater than 0"),
        ("kind: measured", "kind: guessed", ":10:1:", ""),
        ("deployment: container", "deployment: contaner", ":7:9:", 'did you mean "container"'),
        ("operation: SET", "operatoin: SET", ":6:37:", 'did you mean "operation"'),
        ("{relative: -0.1}", "{}", ":16:3:", "needs `relative`"),
        ("format: 1", "format: 2", ":1:1:", "newer than this tare"),
        ("statistic: mean", "statistic: average", ":17:7:", "unknown value"),
        ("read: whole}", "read: whole, weak: true}", ":18:", "the reason in `weak_because`"),
        ("read: whole}", "read: whole, weak_because: slides}", ":18:", "needs `weak: true`"),
    ],
)
def test_a_wrong_claim_is_refused_at_its_line(old: str, new: str, where: str, what: str, tmp_path: Path) -> None:
    text = RIGHT.replace(old, new, 1)
    assert text != RIGHT
    with pytest.raises(StudyError) as raised:
        load_claim(written(tmp_path, text))
    assert where in str(raised.value)
    assert what in str(raised.value)


def test_a_figure_without_context_is_refused(tmp_path: Path) -> None:
    lines = RIGHT.splitlines(keepends=True)
    with pytest.raises(StudyError, match="needs `context`"):
        load_claim(written(tmp_path, "".join(lines[:3] + lines[9:])))


def test_an_id_is_there_once(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, RIGHT)
    with pytest.raises(StudyError, match="already exists"):
        load_claims([tmp_path])


def test_a_folder_that_is_not_there_holds_no_claims(tmp_path: Path) -> None:
    assert load_claims([tmp_path / "nothing"]) == ()


def test_a_name_nearly_right_is_suggested(shipped: tuple[ClaimFile, ...]) -> None:
    with pytest.raises(StudyError, match="percona-2016-host"):
        claim_called(shipped, "percona-2016-hots")


def test_drift_of_the_schema_is_found(tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path)]
    assert CLAIM_SCHEMA.keep(["--check", *folder]) is not None
    assert CLAIM_SCHEMA.keep(folder) is None
    assert CLAIM_SCHEMA.keep(["--check", *folder]) is None
    kept = tmp_path / "claim.schema.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "title": "another"}))
    assert "out of date" in (CLAIM_SCHEMA.keep(["--check", *folder]) or "")


def test_a_source_may_leave_its_authors_and_its_year_untold(tmp_path: Path) -> None:
    source = load_claim(written(tmp_path, RIGHT.replace(" authors: B, year: 2020,", ""))).claim.source
    assert (source.authors, source.year) == (None, None)


def test_every_weak_source_that_comes_with_tare_says_why(shipped: tuple[ClaimFile, ...]) -> None:
    weak = {known.study for known in shipped if known.claim.source.weak}
    assert weak == {
        "temper-cpu-limits", "serverdevworker", "rostedt-vm-tracing", "sigmonsays-docker-proxy",
        "techplained-overlay2", "karna-2021", "duke-2014", "joyson-2020",
    }  # fmt: skip
