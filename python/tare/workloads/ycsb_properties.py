"""The properties that YCSB 0.17's core reads: it ignores any other in silence, so a wrong key is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tare.study.suggest import did_you_mean
from tare.workloads.ycsb_bindings import BINDINGS

CORE: frozenset[str] = frozenset(
    {
        "table", "fieldcount", "fieldlength", "minfieldlength", "fieldlengthdistribution", "fieldlengthhistogram",
        "fieldnameprefix", "dataintegrity", "readallfields", "writeallfields", "readproportion", "updateproportion",
        "insertproportion", "scanproportion", "readmodifywriteproportion", "requestdistribution",
        "hotspotdatafraction", "hotspotopnfraction", "exponential.percentile", "exponential.frac", "minscanlength",
        "maxscanlength", "scanlengthdistribution", "insertstart", "insertcount", "insertorder", "zeropadding",
        "core_workload_insertion_retry_limit", "core_workload_insertion_retry_interval", "spin.sleep",
        "histogram.buckets", "timeseries.granularity", "reportlatencyforeacherror", "latencytrackederrors",
        "measurement.trackjvm",
    }
)  # fmt: skip
"""Names that a study may set by `properties` and in its `property_file`."""

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
"""Properties that a study sets by a key of its own."""

IN_FILE = frozenset({"workload", *OWN})
"""Names that a property file may have besides, as those that come with YCSB do; a study's own keys come first."""

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
"""Core workload → what sets it apart: https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads."""

DATA = (
    "table", "fieldcount", "fieldlength", "minfieldlength", "fieldlengthdistribution", "fieldlengthhistogram",
    "fieldnameprefix", "dataintegrity", "insertorder", "zeropadding", "insertstart", "insertcount",
)  # fmt: skip
"""What decides the loaded data, beside the number of records."""


REPLICATION = "cassandra.replicationfactor"


def refusal(name: str, *, in_file: bool = False) -> str | None:
    """Why a property cannot be set, `None` where it can."""
    if name in CORE or any(name in binding.known for binding in BINDINGS.values()):
        return None
    if name in OWN:
        return None if in_file else f"{name} is set by the key {OWN[name]} of the study"
    if in_file and name in IN_FILE:
        return None
    known = CORE.union(*(binding.known for binding in BINDINGS.values()))
    meant = did_you_mean(name, known, kind="properties")
    return f"YCSB has no property {name!r}" + (f" ({meant})" if meant else "")


def only_upstream(names: Iterable[str]) -> str | None:
    """The first property that YCSB's own bindings read and tare's do not, which would be ignored in silence."""
    unread = frozenset().union(*(binding.upstream_only for binding in BINDINGS.values()))
    return next((name for name in names if name in unread), None)


def read_properties(text: str) -> dict[str, tuple[str, int]]:
    """A property file as `java.util.Properties` reads it, without its escapes: name → value and line."""
    found: dict[str, tuple[str, int]] = {}
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
        found[whole[:cut]] = (value.rstrip(), began)
    return found
