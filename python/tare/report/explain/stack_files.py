"""Stacks in the formats of other tools."""

from __future__ import annotations

import json
from typing import Any

from tare.analyze.explain.stacks import ArmStacks
from tare.report.plain import plain
from tare.version import __version__

_NS = 1000.0
_LONGEST_FRAME = 2000


def collapsed(stacks: ArmStacks) -> str:
    """Return a line a stack: frames from the root, and ns per operation, for flamegraph.pl and speedscope."""
    rounded = {stack: round(used * _NS) for stack, used in stacks.stacks.items()}
    return "".join(f"{_shown(stack)} {used_ns}\n" for stack, used_ns in rounded.items() if used_ns > 0)


def _shown(stack: str) -> str:
    """Make each frame's name showable: it is a program's, and goes to the terminal."""
    return ";".join(plain(frame, _LONGEST_FRAME) for frame in stack.split(";"))


def speedscope(arm_stacks: ArmStacks) -> str:
    """Return arm and baseline as profiles of speedscope (https://www.speedscope.app/file-format-schema.json)."""
    frames: dict[str, int] = {}
    profiles = [
        _profile(f"{name}, an operation", stacks, frames)
        for name, stacks in ((arm_stacks.arm, arm_stacks.stacks), (arm_stacks.baseline, arm_stacks.baseline_stacks))
        if stacks
    ]
    tree = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": f"{arm_stacks.study}: {arm_stacks.arm} beside {arm_stacks.baseline}",
        "exporter": f"tare {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return json.dumps(tree, ensure_ascii=False) + "\n"


def _profile(name: str, stacks: Any, frames: dict[str, int]) -> dict[str, Any]:
    samples = [[frames.setdefault(frame, len(frames)) for frame in stack.split(";")] for stack in stacks]
    weights = list(stacks.values())
    return {
        "type": "sampled",
        "name": name,
        "unit": "microseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
