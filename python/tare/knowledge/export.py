"""Claims as JSON, and as CSV with a row a claim."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping

from tare.knowledge.claim import Between, Claim, Measured
from tare.knowledge.read import Known

COLUMNS = (
    "id", "study", "says", "database", "version", "workload", "operation", "threads", "level", "bound",
    "deployment", "client", "network", "storage", "engine", "engine_version", "runtime",
    "baseline_deployment", "baseline_network", "baseline_storage", "machine", "client_host",
    "kind", "metric", "log_ratio", "se", "n", "low", "high", "statistic", "parity", "repetitions", "summary_of",
    "title", "year", "url", "doi", "where", "read",
)  # fmt: skip
"""Of the CSV, documented in docs/reference/knowledge.md."""


def as_json(claims: Iterable[Known]) -> str:
    """All of every claim, with its id."""
    tree = [{"id": known.id, **known.claim.model_dump(mode="json", exclude_none=True)} for known in claims]
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def as_csv(claims: Iterable[Known]) -> str:
    """A row a claim; what is not told is empty. A text that a spreadsheet would run begins with an apostrophe."""
    from tare.report.frames.files import harmless  # reports are slow to import

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for known in claims:
        row = {"id": known.id, **_row(known.claim)}
        writer.writerow({name: harmless(cell) if isinstance(cell, str) else cell for name, cell in row.items()})
    return text.getvalue()


EXPORTS: Mapping[str, Callable[[Iterable[Known]], str]] = {"json": as_json, "csv": as_csv}


def _row(claim: Claim) -> dict[str, object]:
    row: dict[str, object] = {"study": claim.study, "says": claim.says, "kind": claim.effect.kind}
    row["metric"] = claim.effect.metric
    if claim.context is not None:
        database, load, arm, baseline = (
            claim.context.database, claim.context.load, claim.context.arm, claim.context.baseline,
        )  # fmt: skip
        row |= {"database": database.name, "version": database.version, **load.model_dump(), **arm.model_dump()}
        row |= {f"baseline_{key}": getattr(baseline, key) for key in ("deployment", "network", "storage")}
        row |= {"machine": claim.context.machine, "client_host": claim.context.client_host}
    if isinstance(claim.effect, Measured):
        row |= {"log_ratio": claim.effect.log_ratio, "se": claim.effect.se, "n": claim.effect.n}
    elif isinstance(claim.effect, Between):
        row |= {"low": claim.effect.low, "high": claim.effect.high}
    row |= claim.how.model_dump(exclude={"order"})
    return row | claim.source.model_dump(exclude={"authors", "store"})
