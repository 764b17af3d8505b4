"""What arms are compared with, in words."""

from __future__ import annotations

from tare.report.plain import plain
from tare.study.model import Study

_LONGEST = 60


def against(study: Study) -> str:
    """`bare`; where each arm has a baseline of its own, `bare, all else alike`."""
    if not study.baseline_levels:
        return plain(study.baseline, _LONGEST)
    return f"{plain(', '.join(study.baseline_levels.values()), _LONGEST)}, all else alike"
