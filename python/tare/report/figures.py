"""How numbers are written, the same in every format."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tare.analyze.estimate import Estimate, Finding

NONE = "—"
_LEAST = 0.001

_MINUS = re.compile(r"(?<![\w-])-(?=\d)")


def percent(fraction: float | None, decimals: int = 1, *, signed: bool = True) -> str:
    """Format a fraction: -0.58 → `-58.0 %`; a dash if unknown."""
    return NONE if fraction is None else f"{_number(100 * fraction, decimals, signed=signed)} %"


def interval(estimate: Estimate) -> str:
    """Format an interval in percent: `[-58.9, -57.1]`; a dash if there is none."""
    if estimate.low is None or estimate.high is None:
        return NONE
    digits = decimals_of(estimate)
    low, high = (_number(100 * bound, digits, signed=True) for bound in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


WITHIN_RESOLUTION = "\N{DAGGER}"
"""Marks a difference within the resolution of the generator's histogram: no difference can be claimed."""


def point(finding: Finding) -> str:
    """Format the point of a finding: `+8.5 %`, or marked `+0.8 %†` if the generator cannot resolve it."""
    mark = WITHIN_RESOLUTION if finding.below_resolution else ""
    return percent(finding.estimate.point, decimals_of(finding.estimate)) + mark


def signed(text: str) -> str:
    """Replace hyphens before numbers by minus signs, for pages and pictures."""
    return _MINUS.sub("\N{MINUS SIGN}", text)


def unbroken(text: str) -> str:
    """Do what `signed` does, and keep a figure and its percent sign on one line."""
    return signed(text).replace(" %", "\N{NO-BREAK SPACE}%")


def decimals_of(estimate: Estimate) -> int:
    """Return as many decimals of a percentage as the interval supports."""
    if estimate.low is None or estimate.high is None:
        return 1
    half = 50 * (estimate.high - estimate.low)
    return 0 if half >= 10 else 1 if half >= 0.1 else 2


def amount(value: float | None) -> str:
    """Format a value with three significant digits: `1,905`, `8.41`; tiny values are `<0.001`."""
    if value is None:
        return NONE
    if 0 < value < _LEAST:
        return f"<{_LEAST}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:#.3g}"


def duration(seconds: float) -> str:
    """Format seconds: `48 s`, `4 min 12 s`, `5 h 20 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(count_bytes: float) -> str:
    """Format bytes: `8.0 GiB`."""
    value, unit = float(count_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def moment(epoch_s: float) -> str:
    """Format seconds since the epoch as date and minute, UTC."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def second(epoch_s: float) -> str:
    """Format seconds since the epoch as date and second, UTC."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _number(value: float, decimals: int, *, signed: bool) -> str:
    text = f"{value:+,.{decimals}f}" if signed else f"{value:,.{decimals}f}"
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("+-")
    return text
