"""Whatever one value of a study is changed to, it is read, or refused with a `StudyError` that names a place."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry

SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8), st.sampled_from(["bare", "host", "bridge", "shared", "load", "16", "sut.limits", "oci:x"]),
)  # fmt: skip
VALUE = st.recursive(
    SCALAR,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "load", "levels", "sets", "sut.network", "name", "x"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


def places(tree: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(place for key, value in items for place in places(value, (*path, key)))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_value_is_read_or_refused_with_its_place(
    data: st.DataObject, text: str, registry: Registry
) -> None:
    tree = YAML(typ="safe", pure=True).load(text)
    *way, last = data.draw(st.sampled_from(places(tree)[1:]))
    changed = copy.deepcopy(tree)
    holder: Any = changed
    for key in way:
        holder = holder[key]
    holder[last] = data.draw(VALUE)
    try:
        study = loads(json.dumps(changed), registry)
    except StudyError as error:
        place, _, _ = error.what.partition(": ")
        if not place.startswith("study.yaml:1:"):
            raise AssertionError(error.what) from error
        return
    assert study.baseline in {arm.name for arm in study.arms}
    assert len({arm.name for arm in study.arms}) == len(study.arms)
