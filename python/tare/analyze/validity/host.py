"""Rule for a host or an engine that was changed between the runs of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from tare.analyze.numbers import is_mapping
from tare.analyze.validity.evidence import Alarm, Evidence
from tare.record.run_record import RunRecord

OF_HOST = (
    "os", "os_version", "kernel", "kernel_build", "kernel_arguments", "kernel_hz", "kernel_security_modules",
    "sched_autogroup", "clocksource", "cpu_model", "cpu_microcode", "cpu_online", "cpu_isolated", "cpu_smt",
    "cpu_numa_balancing", "cpu_frequency_driver", "cpu_governors", "cpu_turbo", "cpu_khz_min", "cpu_khz_max",
    "cpu_idle_driver", "cpu_mitigations", "memory_total_bytes", "swap_total_bytes", "swappiness", "huge_pages",
    "thp", "thp_defrag", "proactive_reclaim", "cgroup_layout", "cgroup_controllers", "somaxconn", "sysctls",
    "netfilter_conntrack", "data_filesystem", "data_mount_options", "data_source", "data_io_scheduler",
    "data_write_cache", "data_read_ahead_kib", "data_queue_requests",
)  # fmt: skip
"""Facts of a host that could change a result, and that no run changes itself."""
OF_ENGINE = (
    "engine_version", "engine_components", "engine_storage_driver", "engine_image_store", "engine_cgroup_driver",
    "engine_cgroup_version", "engine_default_runtime", "engine_security", "engine_live_restore", "engine_firewall",
    "engine_logging_driver", "engine_userland_proxy", "engine_storage_program",
)  # fmt: skip
_HOST_FACTS, _ENGINE_FACTS = attrgetter(*OF_HOST), attrgetter(*OF_ENGINE)
Facts = tuple[Any, ...]
_SHOWN = 4
_LONGEST = 60


def host_changed(evidence: Evidence) -> Iterator[Alarm]:
    """A fact of a host or an engine, which could change a result, differs between good runs there.

    There is no threshold: runs before and after such a change do not measure the same machine.
    """
    records = sorted(evidence.columns.records, key=lambda run: (run.index, run.attempt))
    groups: dict[tuple[Any, ...], list[tuple[str, Facts]]] = {}
    for run in records:
        for kind, name, facts in _surroundings(run):
            groups.setdefault((kind, run.site, name), []).append((run.run_id, facts))
    hosts = {(site, name) for kind, site, name in groups if kind == "host"}
    for (kind, site, name), seen in groups.items():
        changes, later = _changes(seen, OF_HOST if kind == "host" else OF_ENGINE)
        if changes:
            where = f" {name}" if kind == "engine" or len(hosts) > 1 else ""
            of = f" of {site}" if site is not None else ""
            more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
            yield Alarm(
                "host-changed",
                None,
                f"between the runs, the {kind}{where}{of} was changed: {'; '.join(changes[:_SHOWN])}{more}",
                later,
                "find out what changed it, and run the study again in another store: runs before and after it do "
                "not measure the same machine",
            )


def _surroundings(run: RunRecord) -> Iterator[tuple[str, str, Facts]]:
    """Yield kind, name and facts (in the order of `OF_HOST` or `OF_ENGINE`) of what surrounds a run."""
    for host, engine in ((run.host, run.engine), (run.client_host, run.client_engine)):
        if host is not None:
            yield "host", str(host.name), _HOST_FACTS(host)
        if engine is not None:
            rootless = " without root" if engine.engine_rootless else ""
            yield "engine", f"{engine.engine}{rootless}", _ENGINE_FACTS(engine)
    for node in list((run.nodes or {}).values())[1:]:
        if node.host is not None:
            yield "host", str(node.on), _HOST_FACTS(node.host)


def _changes(seen: Sequence[tuple[str, Facts]], keys: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Sentences on what changed, and the runs in which something was not as at first."""
    first: dict[str, Any] = {}
    values: dict[str, list[Any]] = {}
    later: list[str] = []
    usual: Facts = ()
    for run, given in seen:
        if given == usual:  # nearly all of 100,000
            continue
        differs = False
        for name, value in _flat(zip(keys, given, strict=True)):
            if name not in first:
                first[name] = value
            elif value != first[name]:
                differs = True
                if value not in (known := values.setdefault(name, [])):
                    known.append(value)
        if differs:
            later.append(run)
        else:
            usual = given
    changes = [
        f"{name} from {_text(first[name])} to {' and '.join(map(_text, new))}" for name, new in values.items()
    ]
    return changes, tuple(dict.fromkeys(later))


def _flat(facts: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield known facts; of a mapping, each of its values."""
    for key, value in facts:
        if is_mapping(value):
            yield from _flat((f"{key}.{name}" if key != "sysctls" else name, each) for name, each in value.items())
        elif value is not None:
            yield key, value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
