"""How numbers are written: the same in every format."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tare.analyze.estimate import Estimate, Finding

NONE = "—"
_LEAST = 0.001

_MINUS = re.compile(r"(?<![\w-])-(?=\d)")


def percent(fraction: float | None, decimals: int = 1, *, signed: bool = True) -> str:
    """-0.58 → `-58.0 %`; nothing known → a dash."""
    return NONE if fraction is None else f"{_number(100 * fraction, decimals, signed=signed)} %"


def interval(estimate: Estimate) -> str:
    """`[-58.9, -57.1]` in percent, a dash where there is no interval."""
    if estimate.low is None or estimate.high is None:
        return NONE
    digits = decimals_of(estimate)
    low, high = (_number(100 * bound, digits, signed=True) for bound in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


WITHIN_RESOLUTION = "\N{DAGGER}"
"""Marks a difference within the resolution of the generator's histogram: no difference can be claimed."""


def point(finding: Finding) -> str:
    """The point of a finding: `+8.5 %`, or marked `+0.8 %†` where the generator cannot resolve it."""
    mark = WITHIN_RESOLUTION if finding.below_resolution else ""
    return percent(finding.estimate.point, decimals_of(finding.estimate)) + mark


def signed(text: str) -> str:
    """Text with true minus signs where numbers begin with a hyphen; for pages and pictures."""
    return _MINUS.sub("\N{MINUS SIGN}", text)


def on_the_line(text: str) -> str:
    """The same, with a figure and its percent sign never on two lines."""
    return signed(text).replace(" %", "\N{NO-BREAK SPACE}%")


def decimals_of(estimate: Estimate) -> int:
    """As many decimals of a percentage as the interval bears out."""
    if estimate.low is None or estimate.high is None:
        return 1
    half = 50 * (estimate.high - estimate.low)
    return 0 if half >= 10 else 1 if half >= 0.1 else 2


def amount(value: float | None) -> str:
    """A value in its own unit with three digits that matter: `1,905`, `8.41`; next to nothing is `<0.001`."""
    if value is None:
        return NONE
    if 0 < value < _LEAST:
        return f"<{_LEAST}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:#.3g}"


def duration(seconds: float) -> str:
    """`48 s`, `4 min 12 s`, `5 h 20 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(count_bytes: float) -> str:
    """`8.0 GiB`."""
    value, unit = float(count_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def moment(epoch_s: float) -> str:
    """Seconds since the epoch as date and minute, UTC."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def second(epoch_s: float) -> str:
    """Seconds since the epoch as date and second, UTC."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _number(value: float, decimals: int, *, signed: bool) -> str:
    text = f"{value:+,.{decimals}f}" if signed else f"{value:,.{decimals}f}"
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("+-")
    return text
