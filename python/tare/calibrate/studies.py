"""The studies of a calibration, in the form of study files, and numbered: the number is the seed.

All share one small data set, MariaDB pinned to CPU 0, sysbench pinned to CPU 1, and the default protocol with a
fixed number of blocks: without looks, each interval should cover 95 % by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tare.calibrate.injections import behind_proxy, reads_limited
from tare.deployments.registry import DeploymentFactory
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import Registry, installed

BLOCKS = 8
MORE_WORK = (101, 102, 105, 110)
"""Point selects per transaction; the baseline has 100."""
QUOTAS = (90,)
"""Percent of one CPU."""
DELAY_US = 20

READS_PER_S = (1000, 900)
"""Without and with the injection. Both are limited, since the speed of an unlimited disk varies."""

INJECTING: Mapping[str, DeploymentFactory] = {
    "bare-behind-proxy": behind_proxy(0),
    "bare-behind-delay": behind_proxy(DELAY_US),
    **{f"bare-{rate}-reads": reads_limited(rate) for rate in READS_PER_S},
}
"""Deployments that no other study may use."""


def registry() -> Registry:
    """Return the names known to this installation, and those of calibration."""
    known = installed()
    own = {name: factory.isolates_network for name, factory in INJECTING.items()}
    return replace(known, deployments={**known.deployments, **own})


def work(number: int) -> Study:
    """Compare more queries per transaction with 100, on a server without spare CPU time."""
    tree = _template("work", number, "Does tare measure the true slowdown when a transaction does more work?")
    tree["factors"] = {
        "queries": {
            "sets": "workload.point_selects",
            "levels": {f"k{count}": count for count in (100, *MORE_WORK)},
        }
    }
    return _study(tree, "k100")


def quota(number: int) -> Study:
    """Compare a server with a CPU quota with a server without."""
    tree = _template("quota", number, "Does tare measure the true slowdown when a server gets less CPU time?")
    levels = {f"q{share}": {"sut.limits.cpu_quota": share / 100} for share in QUOTAS}
    tree["factors"] = {"quota": {"sets": ["sut.limits.cpu_quota"], "levels": {"q100": {}, **levels}}}
    return _study(tree, "q100")


def delay(number: int) -> Study:
    """Compare one thread waiting for each reply through a proxy with and without delay."""
    tree = _template("delay", number, "Does tare measure the true slowdown when a proxy delays messages?")
    tree["workload"] |= {"threads": 1, "point_selects": 10}
    names = {"passed": "bare-behind-proxy", "held": "bare-behind-delay"}
    tree["sut"]["deployment"] = names["passed"]
    tree["factors"] = {"delay": {"sets": "sut.deployment", "levels": names}}
    return _study(tree, "passed")


def disk(number: int) -> Study:
    """Compare a program that reads past the page cache at two limits on reads."""
    tree = _template("io", number, "Does tare measure the true slowdown when a program may read less often?")
    levels = {f"r{rate}": f"bare-{rate}-reads" for rate in READS_PER_S}
    names = list(levels)
    del tree["client"]
    tree["sut"] = {"image": "sysbench", "deployment": levels[names[0]], "limits": {"cpus": "0", "memory": "1G"}}
    tree["workload"] = {
        "name": "sysbench-fileio",
        "file_test_mode": "rndrd",
        "file_num": 4,
        "file_total_size": "64M",
        "file_block_size": "16K",
        "file_extra_flags": "direct",
        "threads": 8,
        "measure_s": 2,
        "window_s": 1,
    }
    tree["factors"] = {"reads": {"sets": "sut.deployment", "levels": levels}}
    return _study(tree, names[0])


def same(number: int) -> Study:
    """Compare two instances of a bare server and two instances of a server in a container."""
    tree = _template("aa", number, "Does tare find two identical instances to be equal?")
    tree["factors"] = {
        "deployment": {"sets": "sut.deployment", "levels": {"bare": "bare", "container": "container"}}
    }
    study = _study(tree, "bare")
    container = next(arm for arm in study.arms if arm.name == "container")
    again = container.model_copy(update={"name": "container-again"})
    return study.model_copy(update={"arms": (*study.arms, again)})


def _template(kind: str, number: int, question: str) -> dict[str, Any]:
    """Return what all kinds have in common; bare and container alternate."""
    return {
        "format": 1,
        "name": f"calibrate-{kind}",
        "question": question,
        "sut": {
            "image": "mariadb",
            "database": "mariadb",
            "deployment": "bare" if number % 2 else "container",
            "network": "host",
            "limits": {"cpus": "0", "memory": "1G"},
            "settings": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "8M"},
        },
        "client": {"image": "sysbench", "deployment": "bare", "network": "host", "limits": {"cpus": "1"}},
        "workload": {
            "name": "sysbench",
            "script": "oltp_read_only",
            "tables": 1,
            "table_size": 10_000,
            "threads": 8,
            "point_selects": 100,
            "range_selects": False,
            "skip_trx": True,
            "measure_s": 2,  # without a warm-up: arms are equally cold, and there are half as many more runs
            "window_s": 1,
        },
        "protocol": {"name": "interleave", "blocks": BLOCKS, "target": None, "retries": 1, "seed": number},
    }


def _study(tree: Mapping[str, Any], baseline: str) -> Study:
    return loads(json.dumps({**tree, "baseline": baseline}, indent=1), registry(), file=f"{tree['name']}.yaml")
