"""An explanation as a versioned JSON file; its keys are documented in docs/reference/explain.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tare.analyze.estimate import Estimate
from tare.analyze.explain.components import components
from tare.analyze.explain.explanation import ArmExplanation, Explanation, Part
from tare.report.explain.words import notes, sentence
from tare.version import __version__

FORMAT = 1


def render(explanation: Explanation, arms: Sequence[ArmExplanation]) -> str:
    """Return the file's text: microseconds per operation, and fractions."""
    tree = {
        "format": FORMAT,
        "tare": __version__,
        "study": explanation.study,
        "components": {
            "version": explanation.table_version,
            "titles": {each.name: each.title for each in components().components},
        },
        "runs": explanation.runs,
        "profiled_runs": explanation.profiled,
        "notes": list(notes(explanation, arms)),
        "arms": [_arm(arm) for arm in arms],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _arm(arm: ArmExplanation) -> dict[str, Any]:
    first = arm.first
    return {
        "arm": arm.arm,
        "baseline": arm.baseline,
        "sentence": sentence(arm),
        "first": None if first is None else first.name,
        "overhead": _estimate(arm.overhead),
        "cpu": None if arm.total is None else _part(arm.total),
        "causes": [_part(part) for part in arm.causes],
        "cells": [_part(part) for part in arm.cells],
        "sides": [_part(part) for part in arm.sides],
        "waits": [_part(part) for part in arm.waits],
        "machine": None if arm.whole is None else _part(arm.whole),
        "machine_rest": [_part(part) for part in arm.rest],
        "counts": [_part(part) for part in arm.counts],
        "unnamed": arm.unnamed,
        "unsampled": arm.unsampled,
        "lacks": list(arm.lacks),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "title": part.title,
        "arm": part.us,
        "baseline": part.baseline_us,
        "added": part.change.added_us,
        "low": part.change.low,
        "high": part.change.high,
        "n": part.change.n,
        "why": part.change.why,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "point": estimate.point,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "confidence": estimate.confidence,
        "estimator": estimate.method,
        "why": estimate.why,
    }
