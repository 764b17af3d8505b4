"""The report of cassandra-stress as somebody else has kept it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Operation, Window
from tare.workloads.cassandra_stress_output import TOTAL, Printed, read_output

_NEEDED = ("op_rate", "mean_ms", "errors")


def measurement_of_cassandra_stress(text: str, max_error_share: float) -> Measurement:
    """What the report tells. Raises `RunFailed` where it is cut short, tells of a failure or of too many errors."""
    printed = read_output(text)
    if printed.complaints or printed.exceptions:
        raise RunFailed(f"cassandra-stress: {' / '.join((*printed.exceptions[:1], *printed.complaints[:1]))}")
    if missing := [name for name in _NEEDED if name not in printed.results]:
        raise RunFailed(f"cassandra-stress's report is cut short: it lacks {', '.join(missing)}")
    totals = [each for each in printed.intervals if each.kind == TOTAL]
    if not totals or not printed.ended:
        raise RunFailed("cassandra-stress's report is cut short")
    operations, errors = totals[-1].operations, int(printed.results["errors"][TOTAL])
    if errors > max_error_share * operations:
        raise RunFailed(f"{errors} errors in {operations} operations")
    kinds = [kind for kind in printed.results["mean_ms"] if kind != TOTAL]
    return Measurement(
        operations=operations,
        unit="operations",
        duration_s=totals[-1].figures["time_s"],
        throughput_per_s=printed.results["op_rate"][TOTAL],
        queries_per_s=None,
        errors=errors,
        reconnects=0,
        latency=_latency(printed, TOTAL),
        histogram=(),
        windows=tuple(
            Window(
                end_s=each.figures["time_s"],
                throughput_per_s=each.figures["op_rate"],
                latency_p95_ms=each.figures["p95_ms"],
                errors_per_s=0.0,
                reconnects_per_s=0.0,
            )
            for each in totals
        ),
        by_operation={kind.lower().replace("_", "-"): _operation(printed, kind) for kind in kinds},
    )


def _operation(printed: Printed, kind: str) -> Operation:
    lines = [each for each in printed.intervals if each.kind == kind]
    partitions = printed.results.get("partitions", {}).get(kind, 0.0)
    return Operation(
        operations=lines[-1].operations if lines else int(partitions),
        errors=int(printed.results["errors"].get(kind, 0.0)),
        latency=_latency(printed, kind),
    )


def _latency(printed: Printed, kind: str) -> Latency:
    """3.11 does not say whether a rate was `fixed=`, from the intended send, or `throttle=`: it is not known."""
    told: Mapping[str, float | None] = {
        name: values.get(kind) for name, values in printed.results.items() if name.endswith("_ms")
    }

    def one(name: str) -> float | None:
        value = told.get(name)
        return value if value is not None and math.isfinite(value) else None

    return Latency(
        mean_ms=one("mean_ms"),
        min_ms=None,
        max_ms=one("max_ms"),
        p50_ms=one("median_ms"),
        p95_ms=one("p95_ms"),
        p99_ms=one("p99_ms"),
        resolution=None,
        blind_to_stalls=True,
        timed_from="actual-send" if printed.rate_per_s is None else None,
    )
