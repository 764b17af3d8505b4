"""Values that no server takes are refused before an image is built."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1.0e308", "cannot be 1e.308"),
        ("1" + 30 * "0", "cannot be 1e.30"),
        (r'"a\nb"', "cannot be printed"),
        (r'"a\u202Eb"', "cannot be printed"),
        (r'"\0"', "cannot be printed"),
        ('"' + 3000 * "x" + '"', "has 3000 characters"),
    ],
    ids=["float", "int", "line-break", "right-to-left", "nul", "long"],
)
def test_what_no_server_takes_is_refused_with_its_place(
    text: str, registry: Registry, value: str, why: str
) -> None:
    with pytest.raises(StudyError, match=rf"sut\.settings\.innodb_flush_method: .*{why}"):
        loads(text.replace("O_DIRECT", value), registry)


@pytest.mark.parametrize("value", ['""', "-1", "true", "18446744073709551615", "0.5"])
def test_what_some_server_takes_is_the_database_s_to_judge(text: str, registry: Registry, value: str) -> None:
    assert loads(text.replace("O_DIRECT", value), registry).arms
