"""Validity: whether a study's runs allow to believe its intervals. Rules with their thresholds; pure.

Each rule is a function whose docstring says what it looks for, from where on and why: docs/concepts/validity.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze.runs import Runs
from tare.analyze.validity import between, blocks, completeness, cpus, disk, load, series, sites
from tare.analyze.validity.evidence import Alarm, Evidence, Rule
from tare.study.model import Study

__all__ = ["RULES", "Alarm", "check"]

RULES: Mapping[str, Rule] = {
    "imported": completeness.imported,
    "unwitnessed": completeness.unobserved,
    "few-blocks": blocks.few_blocks,
    "extended": completeness.extended,
    "errors": completeness.errors,
    "under-delivery": completeness.under_delivery,
    "client-bottleneck": load.client_bottleneck,
    "one-kernel": between.one_kernel,
    "wire-bound": between.wire_bound,
    "client-host-bound": between.client_host_bound,
    "client-latency": load.client_latency,
    "not-disk-bound": disk.not_disk_bound,
    "machine-shift": load.machine_shift,
    "machine-noise": load.machine_noise,
    "clock-step": load.clock_step,
    "warm-up": series.warm_up,
    "change-point": series.change_point,
    "site-differs": sites.site_differs,
    "order-effect": blocks.order_effect,
    "core-effect": cpus.core_effect,
    "proxy-weight": cpus.proxy_weight,
    "autocorrelation": blocks.autocorrelation,
    "dominating-block": blocks.dominating_block,
}
"""In the order in which reports tell them."""

OF_ORDER = frozenset({"order-effect", "autocorrelation"})
"""Rules that take blocks and places for the order in which runs were made, which of imported ones is not known."""


def check(study: Study, runs: Runs) -> tuple[Alarm, ...]:
    """All alarms of all rules."""
    evidence = Evidence(study, runs)
    rules = [rule for name, rule in RULES.items() if study.imported is None or name not in OF_ORDER]
    return tuple(alarm for rule in rules for alarm in rule(evidence))
