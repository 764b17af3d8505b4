"""How numbers are written."""

from __future__ import annotations

import pytest

from tare.report.figures import amount


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EM DASH}"),
        (0.0, "0.00"),
        (2.12e-05, "<0.001"),
        (0.001, "0.00100"),
        (8.412, "8.41"),
        (38.64, "38.6"),
        (1904.6, "1,905"),
    ],
)
def test_an_amount_has_three_digits_and_never_an_exponent(value: float | None, text: str) -> None:
    assert amount(value) == text
