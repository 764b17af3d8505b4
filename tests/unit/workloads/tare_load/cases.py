"""The job by which the outputs in tests/data/tare-load were made, and how they are read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.workloads import Measurement, Target
from tare.workloads.tare_load.parameters import TareLoadParameters
from tare.workloads.tare_load.tare_load import TareLoad

DATA = Path(__file__).parents[3] / "data" / "tare-load"
JOB: dict[str, Any] = {
    "generators": {"id": {"uniform": {"from": 0, "to": 999}}, "value": {"text": {"length": 100}}},
    "operations": [
        {"name": "get", "weight": 9.0, "steps": [{"send": "GET key:{id}", "expect": {"bytes": 100}}]},
        {"name": "set", "steps": [{"send": "SET key:{id} {value}"}]},
    ],
    "load": {"records": 1000, "steps": [{"send": "SET key:{record} {value}"}]},
}
OPEN: dict[str, Any] = {"rate": 2000.0, "measure_s": 2.0, "warmup_s": 0.5, "window_s": 0.5, "connections": 4}
OVER: dict[str, Any] = {**OPEN, "rate": 400_000.0, "connections": 2, "most_waiting": 2000, "spacing": "even"}
CLOSED: dict[str, Any] = {"measure_s": 2.0, "warmup_s": 1.0, "window_s": 0.5, "connections": 4}
TARGET = Target("redis", Endpoint("127.0.0.1", 6379), Secrets("tare", "geheim7"))


def parameters(job: dict[str, Any] | None = None, **given: Any) -> TareLoadParameters:
    """As a study gives them."""
    return TareLoadParameters.model_validate_json(json.dumps({"job": job or JOB, "measure_s": 2.0, **given}))


def parse(
    tmp_path: Path, name: str, code: int = 0, document: str | None = None, stderr: str = "", **given: Any
) -> Measurement:
    """What is read of a kept output, or of `document` in its place."""
    stdout = tmp_path / "measure.stdout"
    stdout.write_text((DATA / f"{name}.stdout").read_text() if document is None else document)
    (tmp_path / "measure.stderr").write_text(stderr)
    log = DATA / f"{name}.latency.hlog"
    if log.exists():
        shutil.copy(log, tmp_path / "measure.latency.hlog")
    return TareLoad().parse(parameters(**given), stdout, tmp_path / "measure.stderr", code)


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> str:
    """A document of which one thing is otherwise."""
    tree = json.loads((DATA / f"{name}.stdout").read_text())
    change(tree)
    return json.dumps(tree)
