"""An explanation as a versioned JSON file; its keys are documented in docs/guides/explain.md#json."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tare.analyze.estimate import Estimate
from tare.analyze.explain.components import components
from tare.analyze.explain.explanation import ArmExplanation, Explanation
from tare.analyze.explain.parts import Part
from tare.report.entries import Added, Entries, Shape
from tare.report.explain.words import notes, sentence
from tare.traps.met import Met
from tare.version import __version__

FORMAT = 1
_ENTRIES = Entries(
    {
        Estimate: Shape(rename={"method": "estimator"}),
        Part: Shape(inline=("change",), rename={"us": "arm", "baseline_us": "baseline", "added_us": "added"}),
        ArmExplanation: Shape(
            rename={"total": "cpu", "whole": "machine", "rest": "machine_rest"},
            added={
                "sentence": Added(str, sentence),
                "first": Added(str | None, lambda arm: None if arm.first is None else arm.first.name),
            },
        ),
    }
)


def render(explanation: Explanation, arms: Sequence[ArmExplanation], traps: Sequence[Met] = ()) -> str:
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
        "traps": [dict(each.tree) for each in traps],
        "arms": _ENTRIES.tree(arms),
    }
    return json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
