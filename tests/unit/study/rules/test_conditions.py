"""Conditions are factors that the baseline does not name, and strata are conditions."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry

WHOLE = "baseline: {path: bare, load: 16}"
PUBLISHED = "published:\n  - {levels: {path: host}, metric: throughput, relative: 0.1, where: text}\n"


@pytest.fixture
def plain(text: str) -> str:
    """The study without what its product leaves out and without figures."""
    return text[: text.index("exclude:")] + WHOLE + "\n"


@pytest.mark.parametrize(
    ("keys", "where", "what"),
    [
        ("conditions: [lode]", "conditions[0]", "there is no factor 'lode'"),
        ("conditions: [load, load]", "conditions[1]", "'load' is listed twice"),
        ("conditions: [load]\nstrata: [path]", "strata[0]", "there is no condition 'path'"),
        ("conditions: [path, load]", "conditions", "every factor is a condition"),
        ("conditions: [load]", "baseline", "the baseline must name one level of every other factor"),
    ],
)
def test_what_cannot_be_is_told_by_its_key(
    keys: str, where: str, what: str, plain: str, registry: Registry
) -> None:
    with pytest.raises(StudyError) as error:
        loads(f"{plain}{keys}\n", registry)
    assert f" {where}: " in error.value.what
    assert what in error.value.what


def test_a_published_figure_names_no_condition_but_those_of_strata(plain: str, registry: Registry) -> None:
    study = plain.replace(WHOLE, "baseline: {path: bare}") + "conditions: [load]\nstrata: [load]\n"
    (figure,) = loads(study + PUBLISHED, registry).published
    assert figure.levels == {"path": "host"}
    of_stratum = PUBLISHED.replace("path: host", "path: host, load: 16")
    (figure,) = loads(study + of_stratum, registry).published
    assert figure.levels == {"path": "host", "load": "16"}
    with pytest.raises(StudyError, match="there is no factor 'load'"):
        loads(study.replace("strata: [load]\n", "") + of_stratum, registry)
