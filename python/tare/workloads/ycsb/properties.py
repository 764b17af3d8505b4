"""Properties that YCSB 0.17's core reads. YCSB silently ignores any other, so tare refuses wrong names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tare.study.suggest import did_you_mean
from tare.workloads.ycsb.bindings import BINDINGS
from tare.workloads.ycsb.values import Value, flag, one_of, plain, real, whole

CORE: Mapping[str, Value] = {
    "table": plain, "fieldcount": whole(1), "fieldlength": whole(), "minfieldlength": whole(),
    "fieldlengthdistribution": one_of("constant", "uniform", "zipfian", "histogram"),
    "fieldlengthhistogram": plain, "fieldnameprefix": plain, "dataintegrity": flag,
    "readallfields": flag, "writeallfields": flag,
    "readproportion": real(1e6), "updateproportion": real(1e6), "insertproportion": real(1e6),
    "scanproportion": real(1e6), "readmodifywriteproportion": real(1e6),
    "requestdistribution": one_of(
        "uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"
    ),
    "hotspotdatafraction": real(1), "hotspotopnfraction": real(1),
    "exponential.percentile": real(100), "exponential.frac": real(),
    "minscanlength": whole(1), "maxscanlength": whole(1), "scanlengthdistribution": one_of("uniform", "zipfian"),
    "insertstart": whole(), "insertcount": whole(1), "insertorder": one_of("hashed", "ordered"),
    "zeropadding": whole(), "core_workload_insertion_retry_limit": whole(),
    "core_workload_insertion_retry_interval": whole(), "spin.sleep": flag, "histogram.buckets": whole(1),
    "timeseries.granularity": whole(1), "reportlatencyforeacherror": flag, "latencytrackederrors": plain,
    "measurement.trackjvm": flag,
}  # fmt: skip
"""Properties that a study may set by `properties` and `property_file` → check of their values."""

OWN: Mapping[str, str] = {
    "recordcount": "records",
    "operationcount": "operations",
    "threadcount": "threads",
    "target": "target",
    "maxexecutiontime": "measure_s",
    "status.interval": "window_s",
    "measurementtype": "measurementtype",
    "measurement.interval": "measurement_interval",
}
"""Properties that a study sets by one of its keys → that key."""

_OF_OWN: Mapping[str, Value] = {
    **dict.fromkeys(OWN, whole()),
    "threadcount": whole(1),
    "measurementtype": one_of(
        "hdrhistogram", "hdrhistogram+histogram", "hdrhistogram+raw", "histogram", "timeseries", "raw"
    ),
    "measurement.interval": one_of("op", "intended", "both"),
}  # fmt: skip
"""The same properties in a property file → check of their values."""

WORKLOAD, CORE_WORKLOAD = "workload", "site.ycsb.workloads.CoreWorkload"
"""A property file may name the workload, as YCSB's own files do, also by its name before 0.17."""

TARES = frozenset(
    {
        "db", "dotransactions", "exporter", "exportfile", "hdrhistogram.fileoutput", "hdrhistogram.output.path",
        "hdrhistogram.percentiles", "label", "measurement.histogram.verbose", "measurement.raw.no_summary",
        "measurement.raw.output_file", "status",
    }
)  # fmt: skip
"""Properties that only tare sets: what YCSB does and how it reports."""

MIXES: Mapping[str, Mapping[str, str]] = {
    "a": {"readproportion": "0.5", "updateproportion": "0.5", "requestdistribution": "zipfian"},
    "b": {"readproportion": "0.95", "updateproportion": "0.05", "requestdistribution": "zipfian"},
    "c": {"readproportion": "1", "updateproportion": "0", "requestdistribution": "zipfian"},
    "d": {
        "readproportion": "0.95",
        "updateproportion": "0",
        "insertproportion": "0.05",
        "requestdistribution": "latest",
    },
    "e": {
        "readproportion": "0",
        "updateproportion": "0",
        "scanproportion": "0.95",
        "insertproportion": "0.05",
        "requestdistribution": "zipfian",
        "maxscanlength": "100",
        "scanlengthdistribution": "uniform",
    },
    "f": {
        "readproportion": "0.5",
        "updateproportion": "0",
        "readmodifywriteproportion": "0.5",
        "requestdistribution": "zipfian",
    },
}
"""Core workload → its properties: https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads."""

SHARES: Mapping[str, float] = {
    "read": 0.95, "update": 0.05, "insert": 0.0, "scan": 0.0, "readmodifywrite": 0.0,
}  # fmt: skip
"""Kind of operation → share if no `…proportion` is given."""

DATA = (
    "table", "fieldcount", "fieldlength", "minfieldlength", "fieldlengthdistribution", "fieldlengthhistogram",
    "fieldnameprefix", "dataintegrity", "insertorder", "zeropadding", "insertstart", "insertcount",
)  # fmt: skip
"""Properties that determine the loaded data, in addition to the number of records."""


REPLICATION = "cassandra.replicationfactor"


def known_properties() -> Mapping[str, Value]:
    """All properties that a study may set: the core's and those of every binding."""
    return {**CORE, **{name: value for binding in BINDINGS.values() for name, value in binding.known.items()}}


def refusal(name: str, value: str, *, in_file: bool = False) -> str | None:
    """Why a property cannot be set to a value; `None` if it can."""
    known = {**known_properties(), **(_OF_OWN if in_file else {})}
    if name in known:
        needed = known[name](value)
        return None if needed is None else f"{name} must be {needed}, and not {value!r}"
    if name in OWN and not in_file:
        return f"{name} is set by the key {OWN[name]} of the study"
    if name == WORKLOAD:
        return None if in_file and value.endswith(".CoreWorkload") else f"{WORKLOAD} is always {CORE_WORKLOAD}"
    if name in TARES or any(name in binding.names for binding in BINDINGS.values()):
        return f"{name} is set by tare: leave it out"
    meant = did_you_mean(name, known, kind="properties")
    return f"YCSB has no property {name!r}" + (f" ({meant})" if meant else "")


def only_upstream(names: Iterable[str]) -> str | None:
    """First property that only YCSB's own bindings read, and tare's would silently ignore."""
    unread = frozenset().union(*(binding.upstream_only for binding in BINDINGS.values()))
    return next((name for name in names if name in unread), None)


def read_properties(text: str) -> dict[str, tuple[str, int]]:
    """Parse a property file as `java.util.Properties` does, without escapes: name → (value, line number)."""
    properties: dict[str, tuple[str, int]] = {}
    held, began = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not held and (not line or line[0] in "#!"):
            continue
        began = began if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        whole, held = held + line, ""
        cut = next((n for n, letter in enumerate(whole) if letter in "=: \t"), len(whole))
        value = whole[cut:].lstrip(" \t")
        value = value[1:].lstrip(" \t") if value[:1] in "=:" else value
        properties[whole[:cut]] = (value.rstrip(), began)
    return properties
