"""Approved texts: what may differ from them, and what may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.approved import assert_as_approved

APPROVED = "host,-0.0690627221,6.860811742489414e-09,5\n"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept.csv"
    path.write_text(APPROVED, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [APPROVED, "host,-0.0690627221,6.860811742489499e-09,5\n"])
def test_another_last_digit_is_as_approved(text: str, kept: Path) -> None:
    assert_as_approved(text, kept)


@pytest.mark.parametrize(
    "text",
    [
        "host,-0.0690628,6.860811742489414e-09,5\n",
        "host,0.0690627221,6.860811742489414e-09,5\n",
        "host,-0.0690627221,6.860811742489414e-09,6\n",
        "bare,-0.0690627221,6.860811742489414e-09,5\n",
        "host,-0.0690627221,,5\n",
    ],
    ids=["value", "sign", "count", "word", "missing"],
)
def test_anything_else_is_not(text: str, kept: Path) -> None:
    with pytest.raises(AssertionError):
        assert_as_approved(text, kept)


def test_a_text_that_is_meant_is_written_with_the_digits_that_still_hold(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARE_WRITE_GOLDEN", "1")
    assert_as_approved("new,0.5\nhost,-0.0690627221,6.860811742489499e-09,5\n", kept)
    assert kept.read_text(encoding="utf-8") == f"new,0.5\n{APPROVED}"


def test_what_differs_is_shown_by_line(kept: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)TARE_WRITE_GOLDEN.*-host,.*\+bare,"):
        assert_as_approved(APPROVED.replace("host", "bare"), kept)
