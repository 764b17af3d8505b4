"""A setting of Cassandra's is of the type of the value that it is shipped with."""

from __future__ import annotations

import pytest

from tare.databases.cassandra.release import V3_11, V5_0, Release
from tare.databases.cassandra.settings import checked
from tare.databases.option_file import Setting
from tare.errors import StudyError


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("hinted_handoff_enabled", 1, "must be true or false"),
        ("hinted_handoff_enabled", "", "must be true or false"),
        ("num_tokens", True, "must be a number"),
        ("num_tokens", "<script>", "must be a number"),
        ("num_tokens", "", "must be a number"),
        ("key_cache_size_in_mb", True, "must be a number"),
        ("key_cache_size_in_mb", "automatic", "must be a number"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Setting, why: str) -> None:
    with pytest.raises(StudyError, match=why):
        checked({name: value})


@pytest.mark.parametrize(
    ("release", "name", "value"),
    [
        (V3_11, "hinted_handoff_enabled", False),
        (V3_11, "num_tokens", 16),
        (V3_11, "num_tokens", "16"),
        (V3_11, "key_cache_size_in_mb", 0),
        (V3_11, "key_cache_size_in_mb", "auto"),
        (V5_0, "key_cache_size", "32MiB"),
        (V5_0, "max_hint_window", "3h"),
    ],
)
def test_a_value_of_its_type_is_taken(release: Release, name: str, value: Setting) -> None:
    assert checked({name: value}, release).yaml[name] == (None if value == "auto" else value)
