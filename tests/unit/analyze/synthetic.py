"""Studies and records made up for tests: deterministic, shaped like those of a real study of container networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tare.deployments import Endpoint
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.measurement import Histogram, Latency, Measurement
from tare.record.network_path import Hop, NetworkPath
from tare.record.observation import Observation, Parity
from tare.record.run_record import Outcome, Phase, PhaseTime, RunRecord
from tare.record.usage import Usage
from tare.study.model import Arm, ArmSettings, ClientSpec, Published, Source, Study, SutSpec
from tare.study.protocol_spec import InterleaveSpec

BUCKET = 0.0182
BEGAN_AT = 1_795_000_000.0
PATHS = ("bare", "host", "bridge", "published-loopback", "published-address", "shared")
EFFECTS: Mapping[str, float] = {
    "bare": 1.0, "host": 0.996, "bridge": 0.93,
    "published-loopback": 0.42, "published-address": 0.91, "shared": 1.004,
}  # fmt: skip
PUBLISHED_TPS = {"bare": 7100.0, "host": 7100.0, "bridge": 6300.0, "published-loopback": 2200.0, "shared": 7100.0}

Change = Callable[[dict[str, Any]], None]
"""Alters the JSON of a record in place."""


def arm(name: str) -> Arm:
    sut = SutSpec(
        image="mariadb",
        database="mariadb",
        deployment="bare" if name == "bare" else "container",
        settings={"innodb_buffer_pool_size": "128M"},
    )
    client = ClientSpec(image="mariadb", deployment="bare")
    workload = {"script": "oltp_read_only", "threads": 16, "tables": 8, "table_size": 10_000, "measure_s": 4.0}
    settings = ArmSettings(sut=sut, client=client, workload_name="sysbench", workload=workload)
    return Arm(name=name, levels={"path": name}, settings=settings)


def study(arms: Sequence[str] = PATHS, blocks: int = 5, **changes: Any) -> Study:
    published = tuple(
        Published(
            levels={"path": name},
            metric="throughput",
            value=tps,
            unit="transactions/s",
            relative=tps / 7100 - 1,
            where="text, an experiment",
        )
        for name, tps in PUBLISHED_TPS.items()
        if name in arms
    )
    whole = Study(
        name="percona-2016",
        scale="demo",
        question="What does each container network path cost a CPU-bound OLTP read-only load?",
        source=Source(
            title="Measuring Percona Server Docker CPU/network overhead",
            authors="Vadim Tkachenko",
            year=2016,
            url="https://www.percona.com/blog/2016/02/05/measuring-docker-cpu-network-overhead/",
        ),
        arms=tuple(arm(name) for name in arms),
        baseline=arms[0],
        factors={"path": tuple(arms)},
        protocol=InterleaveSpec(blocks=blocks, target=None),
        published=published,
        deviations=(
            "8 tables of 10,000 rows instead of 10,000,000.",
            "MariaDB 10.11 stands in for Percona Server 5.6.28.",
        ),
        text="format: 1\nname: percona-2016\n",
    )
    return whole.model_copy(update=changes)


def measurement(tps: float) -> Measurement:
    """What sysbench reports of a closed loop of 16 threads at this rate; percentiles sit on bucket bounds."""
    mean = 16_000 / tps
    return Measurement(
        operations=round(tps * 4),
        unit="transactions",
        duration_s=4.0,
        throughput_per_s=tps,
        queries_per_s=tps * 16,
        errors=0,
        reconnects=0,
        latency=Latency(
            mean_ms=mean,
            min_ms=mean / 3,
            max_ms=mean * 6,
            p50_ms=bucket(mean * 0.97),
            p95_ms=bucket(mean * 1.5),
            p99_ms=bucket(mean * 2.1),
            resolution=BUCKET,
            blind_to_stalls=True,
        ),
        histogram=histogram(mean, round(tps * 4)),
    )


def histogram(mean: float, count: int) -> Histogram:
    """Four buckets, whose percentiles are those that the generator reports."""
    parts = [(mean * 0.97, 0.6), (mean * 1.5, 0.37), (mean * 2.1, 0.025)]
    results = [(bucket(value), round(share * count)) for value, share in parts]
    return (*results, (bucket(mean * 6), count - sum(each for _, each in results)))


def bucket(value_ms: float) -> float:
    return math.exp(round(math.log(value_ms) / math.log1p(BUCKET)) * math.log1p(BUCKET))


def record(
    block: int, arm_name: str, tps: float | None, *, position: int = 0, attempt: int = 1, reason: str = ""
) -> RunRecord:
    """One attempt; `tps` None for a failed one."""
    began = BEGAN_AT + block * 60 + position * 10 + attempt
    ok = tps is not None
    durations = {Phase.PROVISION: 1.2, Phase.LOAD: 0.4, Phase.WARM_UP: 1.0, Phase.MEASURE: 4.0, Phase.TEARDOWN: 0.8}
    run_id = f"b{block:02d}-{position}-{arm_name}"
    return RunRecord(
        run_id=run_id,
        attempt=attempt,
        study="percona-2016",
        scale="demo",
        plan_digest="0" * 64,
        block=block,
        position=position,
        index=block * 10 + position,
        arm=arm_name,
        levels={"path": arm_name},
        settings={},
        seed=1,
        phases=tuple(PhaseTime(phase=phase, began_at=began, seconds=spent) for phase, spent in durations.items()),
        host=HOST,
        engine=ENGINE,
        images={"sut": IMAGE, "client": IMAGE},
        effective=EFFECTIVE,
        parity=Parity(sut=observation(arm_name, run_id, "sut"), client=observation("bare", run_id, "client")),
        path=path_of(arm_name),
        usage=USAGE,
        measurement=measurement(tps) if tps is not None else None,
        raw=("client.stdout",),
        outcome=Outcome(
            ok=ok,
            reason=None if ok else reason or "the client ended with 1",
            failed_in=None if ok else Phase.MEASURE,
        ),
    )


def path_of(arm_name: str) -> NetworkPath:
    """On the host's loopback, or into a namespace of the server's own."""
    on_host = arm_name in {"bare", "host", "shared"}
    return NetworkPath(
        Hop.LOOPBACK if on_host else Hop.BRIDGE,
        client_namespace="1",
        server_namespace="1" if on_host else "2",
        client_dialled=Endpoint("127.0.0.1", 13306),
        connections=4,
    )


def records(
    arms: Sequence[str] = PATHS, blocks: int = 5, *, seed: int = 7, noise: float = 0.012
) -> list[RunRecord]:
    """Every arm once a block around 1,900 transactions/s, with noise of each run and of each block."""
    rng = np.random.default_rng(seed)
    made = []
    for block in range(blocks):
        shift = rng.normal(0.0, 2 * noise)
        for position, n in enumerate(rng.permutation(len(arms))):
            tps = 1_900 * EFFECTS.get(arms[n], 0.97) * math.exp(shift + rng.normal(0.0, noise))
            made.append(record(block, arms[n], tps, position=position))
    return made


def changed(old: RunRecord, change: Change) -> RunRecord:
    tree = old.model_dump(mode="json")
    change(tree)
    return RunRecord.model_validate(tree, strict=False)


def observation(name: str, run_id: str, side: str) -> Observation:
    """What the kernel tells of an instance, around a program."""
    inside = name not in ("bare",)
    return Observation(
        cgroups={"cpu,cpuacct": f"/tare/{run_id}/{side}", "memory": f"/tare/{run_id}/{side}"},
        cpu_weight=1024,
        cpus_allowed="0" if side == "sut" else "1",
        cpu_quota=None,
        memory_bytes=1 << 30,
        limits={"Max open files": "65536 65536", "Max core file size": "0 0"},
        seccomp="2" if inside else "0",
        speculation={"Speculation_Store_Bypass": "thread vulnerable"},
        namespaces={"net": "4026531840" if name in ("bare", "host") else "4026532999", "mnt": "4026532500"},
        binary_digest="sha256:" + "ab" * 32,
        scheduler="other",
        oom_score_adj=0,
        mounts={"/var/lib/mysql": "ext4 8:1"},
    )


USAGE = Usage(
    wall_s=4.0,
    monotonic_s=4.0,
    sut_cpu_s=3.95,
    client_cpu_s=2.4,
    sut_cpus=1.0,
    client_cpus=1.0,
    machine={"user": 5.4, "nice": 0.0, "system": 1.0, "idle": 1.5, "iowait": 0.0, "irq": 0.0, "softirq": 0.1,
             "steal": 0.0},
)  # fmt: skip
"""Two CPUs for 4 s."""

HOST = HostFacts(
    name="local",
    os="Debian GNU/Linux 12 (bookworm)",
    architecture="x86_64",
    kernel="6.1.0-28-amd64",
    cpu_model="Example CPU @ 3.00GHz",
    cpu_count=2,
    cpu_governors=None,
    cpu_mitigations={"spectre_v2": "Mitigation: Retpolines", "meltdown": "Not affected"},
    memory_total_bytes=8 << 30,
    thp="madvise",
    cgroup_layout="v1",
    data_filesystem="ext4",
)
ENGINE = EngineFacts(
    engine="docker",
    engine_version="20.10.24+dfsg1",
    engine_storage_driver="overlay2",
    engine_userland_proxy=True,
)
IMAGE = ImageFacts(
    reference="mariadb",
    digest="sha256:" + "cd" * 32,
    engine_id="sha256:" + "ef" * 32,
    packages=(("mariadb-server", "1:10.11.6-0+deb12u1"), ("sysbench", "1.0.20+ds-5")),
)
EFFECTIVE: Mapping[str, str] = {
    "innodb_buffer_pool_size": "134217728",
    "max_connections": "151",
    "version": "10.11.6-MariaDB",
}
