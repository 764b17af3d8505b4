"""Validity: rules with thresholds that check whether a study's runs support its intervals. Pure functions.

The docstring of each rule says what it looks for, its threshold and the reason; see docs/concepts/validity.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from tare.analyze.runs import Runs
from tare.analyze.validity import (
    between,
    blocks,
    completeness,
    cpus,
    disk,
    distortions,
    host,
    load,
    series,
    sites,
    turns,
)
from tare.analyze.validity.evidence import Alarm, Evidence, Rule
from tare.study.model import Study

__all__ = ["RULES", "Alarm", "check"]

RULES: Mapping[str, Rule] = {
    "imported": completeness.imported,
    "imported-distortion": distortions.imported_distortion,
    "unobserved": completeness.unobserved,
    "errors": completeness.errors,
    "oom-kills": completeness.oom_kills,
    "few-blocks": blocks.few_blocks,
    "extended": completeness.extended,
    "host-changed": host.host_changed,
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
    "carry-over": turns.carry_over,
    "awake": turns.awake,
    "autocorrelation": blocks.autocorrelation,
    "dominating-block": blocks.dominating_block,
}
"""Rules in the order of reports."""

OF_ORDER = frozenset({"order-effect", "autocorrelation"})
"""Rules that assume that blocks and positions give the order of runs, which is unknown for imported runs."""


def check(study: Study, runs: Runs) -> tuple[Alarm, ...]:
    """Apply all rules and return their alarms."""
    evidence = Evidence(study, runs)
    rules = [rule for name, rule in RULES.items() if study.imported is None or name not in OF_ORDER]
    return tuple(alarm for rule in rules for alarm in rule(evidence))
