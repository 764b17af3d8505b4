"""Studies whose records hold, lack and garble whatever rules ask for; the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from typing import Any

from tests.unit.analyze import synthetic
from tests.unit.record.parts import between

from tare.record.run_record import RunRecord
from tare.study.model import Study

SEEDS = range(60)


def generated(seed: int) -> tuple[Study, list[RunRecord]]:
    """Every third seed leaves the runs of `synthetic` as they are, but for those that fail or are missing."""
    random = Random(seed)
    arms = synthetic.PATHS[: random.choice((2, 3, 6))]
    blocks = random.choice((3, 5, 9, 25))
    plain = synthetic.records(arms, blocks, seed=seed, noise=random.choice((1e-4, 0.012, 0.05)))
    sites = random.choice((0, 0, 2, 5))
    records: list[RunRecord] = []
    for one in plain:
        run = one
        if random.random() < (0.0, 0.5, 1.0)[seed % 3]:
            # Most runs of an arm are alike, so that rules which compare arms have something to see.
            alike = seed % 2 and random.random() < 0.85
            run = altered(one, Random(f"{seed} {one.arm}") if alike else random)
        if seed % 5 == 4:
            run = shaped(run, random)
        if sites:
            run = run.model_copy(update={"site": f"site-{run.block % sites}"})
        fate = random.random()
        if fate < 0.06:
            records.append(synthetic.record(run.block, run.arm, None, position=run.position))
            run = run.model_copy(update={"attempt": 2})
        if 0.03 < fate < 0.97:
            records.append(run)
    return synthetic.study(arms, blocks=blocks, disk_bound={"path": ("host",)} if seed % 4 == 3 else {}), records


def shaped(record: RunRecord, random: Random) -> RunRecord:
    """Slower the later in its block and the more was stolen; a published port has a proxy with time of its own."""
    stolen = random.uniform(0, 0.5)

    def change(tree: dict[str, Any]) -> None:
        if tree["measurement"] is not None and tree["measurement"]["throughput_per_s"]:
            tree["measurement"]["throughput_per_s"] *= 1 - 0.03 * record.position - 0.4 * stolen
        if tree["usage"] is not None:
            tree["usage"] |= {"machine": {"user": 12.0 - stolen, "idle": 0.1, "steal": stolen}, "proxy_cpu_s": 1.5}
        tree["path"] = {"hop": "docker-proxy" if record.arm == "published-loopback" else "bridge"}

    return synthetic.changed(record, change)


def figure(random: Random, *others: Any) -> Any:
    """A share, busy or idle, zero, nothing, or one of the others."""
    kinds = (None, random.uniform(0, 1.2), random.uniform(0, 1), random.uniform(0.85, 1.0), 0.0)
    return random.choice((*kinds, *others))


def altered(record: RunRecord, random: Random) -> RunRecord:
    """The record with figures of its own in all that rules read."""

    def change(tree: dict[str, Any]) -> None:
        if tree["measurement"] is None:
            return
        tree["usage"] = _usage(tree["usage"], random) if random.random() < 0.9 else None
        _measured(tree["measurement"], random)
        hop = random.choice(("docker-proxy", "pasta", None, "bridge"))
        tree["path"] = random.choice((tree["path"], None, {"hop": hop}))
        if random.random() < 0.2:
            tree["between"] = asdict(between(random.choice("ab"), one_boot=random.random() < 0.4))
        if random.random() < 0.1:
            tree["settings"] = {"client": None}

    return synthetic.changed(record, change)


def _usage(usage: dict[str, Any], random: Random) -> dict[str, Any]:
    keys = ("busy", "waiting", "throttled", "waiting_io", "cpus")
    saturation = {side: {key: figure(random, True) for key in _some(keys, random)} for side in ("sut", "client")}
    disk = {"name": random.choice(("sda", "sdb"))}
    disk |= {key: figure(random, 7) for key in ("busy", "depth", "reads_per_s", "writes_per_s")}
    machine = {mode: random.uniform(0, 3) for mode in _some(("user", "idle", "iowait", "steal"), random)}
    busy_machine = {"user": random.uniform(6, 9), "idle": random.uniform(0, 0.3), "steal": 0.0}
    times = ("sut_cpu_s", "client_cpu_s", "proxy_cpu_s", "sut_cpus", "client_cpus", "storage_cpu_s", "wall_s")
    return {
        **usage,
        **{name: figure(random, 4.0, 4.2) for name in times if random.random() < 0.3},
        "sut_over_s": figure(random, 3.9) if random.random() < 0.2 else None,
        "saturation": random.choice((None, saturation, saturation)),
        "disk": random.choice((None, disk)),
        "disk_limit": random.choice((None, {"per_s": 500, "used": figure(random)})),
        "machine": random.choice((None, {}, machine, busy_machine, busy_machine, usage["machine"])),
        "client_machine": random.choice((None, machine, busy_machine)),
        "sut_io_source": random.choice((None, "a", "b")),
        "sut_read_bytes": figure(random, 1 << 20),
        "sut_write_bytes": figure(random, 1 << 20),
    }


def _some(names: Sequence[str], random: Random) -> list[str]:
    return [name for name in names if random.random() < 0.9]


def _measured(measurement: dict[str, Any], random: Random) -> None:
    details = {
        "delivered_share": figure(random),
        "client_polled_s": figure(random, 2.0),
        "missed": figure(random, 5),
    }
    measurement["details"] = random.choice(({}, details))
    for name, counts in (("errors", (0, 3)), ("reconnects", (0, 1)), ("operations", (0, 1, 99))):
        if random.random() < 0.3:
            measurement[name] = random.choice((None, *counts))
    if random.random() < 0.3:
        measurement["duration_s"] = figure(random, 4.0)
    if random.random() < 0.2:
        measurement["throughput_per_s"] = random.choice((None, 0.0, 900.0, 1000.0))
    if random.random() < 0.5:
        measurement["histogram"] = []
    if random.random() < 0.3:
        measurement["latency"] |= {"resolution": figure(random), "p95_ms": figure(random)}
