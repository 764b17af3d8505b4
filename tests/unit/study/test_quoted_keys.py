"""Keys of a study that hold names with dots: as they are where nothing follows, in quotes anywhere."""

from __future__ import annotations

import json

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry


@pytest.mark.parametrize("key", ["sut.settings.storage.cache.size", 'sut.settings."storage.cache.size"'])
def test_a_factor_may_vary_a_name_with_dots(key: str, text: str, registry: Registry) -> None:
    sets = text.replace("sets: workload.threads", f"sets: {json.dumps(key)}")
    study = loads(sets, registry)
    assert {arm.settings.sut.settings["storage.cache.size"] for arm in study.arms} == {1, 16}
    assert study.varies["load"] == ("sut.settings.storage.cache.size",)


def test_a_quoted_key_is_the_key_without_quotes(text: str, registry: Registry) -> None:
    named = text.replace("  path:\n", "  path:\n    sets: [sut.deployment, sut.network]\n")
    quoted = named.replace("{sut.deployment: bare}", "{'sut.\"deployment\"': bare}")
    assert loads(quoted, registry).arms == loads(named, registry).arms
    with pytest.raises(StudyError, match="which factor 'path' sets too"):
        loads(quoted.replace("sets: workload.threads", "sets: 'sut.\"network\"'"), registry)


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (
            ("host: {}", "host: {'sut.settings.\"a.b': 1}"),
            'levels.host.sut.settings."a.b',
            "a quote is not closed",
        ),
        (("host: {}", "host: {sut.limits..cpus: 1}"), "levels.host.sut.limits..cpus", "a part of the key is empty"),
        (
            ("sets: workload.threads", "sets: 'workload.\"threads'"),
            "factors.load.sets",
            "a quote is not closed",
        ),
    ],
)
def test_what_is_no_key_is_told_with_its_line(
    change: tuple[str, str], where: str, what: str, text: str, registry: Registry
) -> None:
    changed = text.replace(*change)
    line = 1 + text[: text.index(change[0])].count("\n")
    with pytest.raises(StudyError) as error:
        loads(changed, registry)
    assert f"study.yaml:{line}:" in error.value.what
    assert where in error.value.what
    assert what in error.value.what
    assert "put the whole name into quotes" in (error.value.hint or "")
