"""The published files of grambow-2018, taken for runs of the study that runs it anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.record.parts import as_tree

from tare.analyze import analyze
from tare.analyze.runs import folded
from tare.imports import collect, load_mapping
from tare.study.catalogue import studies
from tare.study.reading.load import load
from tare.study.registry import installed

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "grambow-2018"
MAPPING = ROOT / "studies" / "grambow-2018" / "import.yaml"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the published files (martingrambow/dockerExperiments) are not in ../shared/data"
)


def test_the_study_s_own_conditions_come_to_the_same_table() -> None:
    """The published runs, taken for runs of the study `grambow-2018` and its 144 arms."""
    result = collect(load_mapping(MAPPING), DATA)
    study = load(studies()["grambow-2018"], installed())
    short = {"threads": "t{}", "key_cache": "{}"}
    arms = {tuple(arm.levels.values()): arm for arm in study.arms}
    made = []
    for run in result.runs:
        levels = dict(run.record.levels)
        levels = {name: short.get(name, "{}").format(levels[name]) for name in study.factors}
        levels["key_cache"] = {"0": "kc0"}.get(levels["key_cache"], levels["key_cache"])
        arm = arms[tuple(levels.values())]
        block = int(as_tree(run.record.imported)["repetition"])
        made.append(run.record.model_copy(update={"levels": arm.levels, "arm": arm.name, "block": block}))
    as_study, as_imported = (
        analyze(*folded(study, made)),
        analyze(result.plan.study, [run.record for run in result.runs]),
    )
    names = {"docker-bare": "II", "bare-docker": "III", "docker-docker": "IV"}
    compared = 0
    for one, other in zip(as_study.strata, as_imported.strata, strict=True):
        for finding in one.findings:
            theirs = other.finding(names[finding.arm], finding.metric)
            assert (finding.as_published is None) == (theirs.as_published is None)
            if finding.as_published is not None and theirs.as_published is not None:
                assert finding.as_published.point == pytest.approx(theirs.as_published.point, abs=1e-12)
            assert finding.published == theirs.published
            compared += finding.published is not None
    assert compared == 18
