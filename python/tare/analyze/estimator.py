"""Choice of the estimator by a study's protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tare.analyze.estimate import Estimate, OverHosts, OverSites
from tare.analyze.metrics import Metric
from tare.analyze.numbers import number_at
from tare.analyze.published import pooled_windows, welch
from tare.analyze.runs import Runs
from tare.analyze.statistics.hosts import over_hosts
from tare.analyze.statistics.intervals import anytime_log_ratio, paired_log_ratio_t, sign_flip_log_ratio
from tare.analyze.statistics.pairing import Pairs
from tare.analyze.statistics.sites import over_sites
from tare.protocols.registry import as_published, rule_of
from tare.protocols.stopping import Rule
from tare.study.model import Study

CONFIDENCE = 0.95
SEQUENTIAL = "sequential-paired-log-ratio-t"
_IN_WINDOWS = {"throughput": "throughput_per_s", "latency_p95": "latency_p95_ms"}
"""Metric → its key in a measurement's windows."""

Estimator = Callable[[Study, Runs, str, Metric, Pairs], Estimate]


def estimate_of(study: Study, runs: Runs, arm: str, metric: Metric, pairs: Pairs) -> Estimate:
    """Estimate the effect of `arm` in `metric` by the estimator of the study's protocol, as if on one site.

    An estimate over sites or hosts, if there is one, takes precedence.
    """
    return _ESTIMATORS[study.protocol.name](study, runs, arm, metric, pairs)


def over_sites_of(study: Study, runs: Runs, pairs: Pairs) -> OverSites | None:
    """Estimate the effect over sites; `None` for blocks of one site, or a protocol that repeats a publication.

    No interval over sites is known that holds at every look, so even with `looks: any` it has the rule's alpha.
    """
    ratios = runs.by_site(pairs.ratios)
    if len(ratios) < 2 or as_published(study):
        return None
    rule = Rule.of(study.protocol)
    level = CONFIDENCE if rule.target is None else 1 - rule.alpha
    found = over_sites(ratios, level, paired(study, [ratio for _, ratio in pairs.ratios]))
    return None if found is None else replace(found, estimate=replace(found.estimate, confidence=CONFIDENCE))


def over_hosts_of(study: Study, runs: Runs, pairs: Pairs) -> OverHosts | None:
    """Estimate the effect with both hosts weighed equally; `None` if server and client do not swap hosts.

    Also `None` with `looks: any`, as only the plain mean has an interval that holds at every look, and for a
    protocol that repeats a publication.
    """
    rule = Rule.of(study.protocol)
    if not runs.swapped or as_published(study) or rule.anytime is not None:
        return None
    level = CONFIDENCE if rule.target is None else 1 - rule.alpha
    found = over_hosts(
        runs.by_server_host(pairs.ratios), level, paired(study, [ratio for _, ratio in pairs.ratios])
    )
    return None if found is None else replace(found, estimate=replace(found.estimate, confidence=CONFIDENCE))


def _paired(study: Study, runs: Runs, arm: str, metric: Metric, pairs: Pairs) -> Estimate:
    del runs, arm, metric
    return paired(study, [ratio for _, ratio in pairs.ratios], [block for block, _ in pairs.ratios])


def paired(study: Study, ratios: Sequence[float], blocks: Sequence[int] | None = None) -> Estimate:
    """Estimate by paired t; after looks with the rule's alpha, which is wider, or by one that holds at every look.

    `blocks`: numbers of the ratios' blocks, which identify mirrored blocks; `None`: 1, 2, 3, ….
    """
    rule = rule_of(study)
    if rule.target is None:
        return paired_log_ratio_t(ratios, CONFIDENCE)
    if rule.anytime == "sign-flip":
        by_block = dict(zip(blocks or range(1, len(ratios) + 1), ratios, strict=True))
        return sign_flip_log_ratio(by_block, rule.blocks_each)
    if rule.anytime == "t-mixture":
        return anytime_log_ratio(ratios)
    return replace(paired_log_ratio_t(ratios, 1 - rule.alpha), confidence=CONFIDENCE, method=SEQUENTIAL)


def _fixed(study: Study, runs: Runs, arm: str, metric: Metric, pairs: Pairs) -> Estimate:
    """Estimate by Welch's method, as in publications, unless the study asks for pairs."""
    if not as_published(study):
        return _paired(study, runs, arm, metric, pairs)
    return welch(runs.values_of(arm, metric), runs.values_of(study.baseline_of(arm), metric), CONFIDENCE)


def _pooled(study: Study, runs: Runs, arm: str, metric: Metric, pairs: Pairs) -> Estimate:
    del pairs
    return pooled_windows(_windows(runs, arm, metric), _windows(runs, study.baseline_of(arm), metric))


_ESTIMATORS: dict[str, Estimator] = {
    "interleave": _paired,
    "imported": _paired,
    "duet": _paired,
    "rotate": _paired,
    "fixed": _fixed,
    "buckets": _pooled,
}


def _windows(runs: Runs, arm: str, metric: Metric) -> list[float]:
    """Values of all windows of an arm's runs; empty for a metric that windows do not have."""
    if (key := _IN_WINDOWS.get(metric.name)) is None:
        return []
    windows = [
        number_at(window, (key,))
        for run in runs.of_arm(arm)
        if run.measurement is not None
        for window in run.measurement.windows
    ]
    return [value for value in windows if value is not None]
