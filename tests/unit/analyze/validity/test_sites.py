"""A study over several sites: its estimate, its verdict, its report, and the rule on a site that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from tests.unit.analyze import synthetic

from tare.analyze import Analysis, analyze
from tare.record.run_record import RunRecord
from tare.report import EXPORTERS
from tare.report.content import build_report

BLOCKS = 8


def records(sites: Mapping[str, float], noise: float = 0.004) -> list[RunRecord]:
    """Site → relative effect of bridge there, in 8 blocks each."""
    rng = np.random.default_rng(5)
    made = []
    for n, (site, effect) in enumerate(sites.items()):
        for block in range(n * BLOCKS + 1, (n + 1) * BLOCKS + 1):
            rates = {"bare": 1900.0, "bridge": 1900.0 * (1 + effect)}
            for position, (arm, rate) in enumerate(rates.items()):
                run = synthetic.record(block, arm, rate * math.exp(rng.normal(0, noise)), position=position)
                made.append(run.model_copy(update={"site": site}))
    return made


def analysis(sites: Mapping[str, float]) -> Analysis:
    return analyze(synthetic.study(("bare", "bridge")), records(sites))


ALIKE = {"a": -0.070, "b": -0.072, "c": -0.068, "d": -0.071, "e": -0.069}


def test_the_estimate_is_over_sites_and_its_interval_is_as_wide_as_they_differ() -> None:
    near, far = analysis(ALIKE), analysis({"a": -0.02, "b": -0.12, "c": -0.07})
    for result in (near, far):
        finding = result.finding("bridge", "throughput")
        assert finding.estimate.method == "random-site-effect-hksj-t"
        assert finding.over_sites is not None
        assert [one.blocks for one in finding.over_sites.sites] == [BLOCKS] * len(finding.over_sites.sites)
    close, wide = (one.finding("bridge", "throughput") for one in (near, far))
    assert close.estimate.high is not None
    assert close.estimate.high < 0
    assert close.judgement.differs
    assert wide.estimate.high is not None
    assert wide.estimate.high > 0
    assert not wide.judgement.differs
    assert wide.over_sites is not None
    assert wide.over_sites.between == pytest.approx(0.05, rel=0.2)
    assert (wide.over_sites.between_p or 1) < 0.001


def test_records_of_one_site_and_of_none_are_judged_by_blocks() -> None:
    (one,) = {analysis({"a": -0.07}).finding("bridge", "throughput").estimate.method}
    assert "paired-log-ratio-t" in one


def test_a_site_unlike_the_rest_is_an_alarm_that_names_its_runs() -> None:
    alarms = {alarm.rule: alarm for alarm in analysis({**ALIKE, "odd": -0.30}).alarms}
    alarm = alarms["site-differs"]
    assert alarm.arm == "bridge"
    assert "the effect on odd is" in alarm.what
    assert len(alarm.runs) == BLOCKS
    assert "site-differs" not in {alarm.rule for alarm in analysis(ALIKE).alarms}


def test_a_site_that_differs_by_less_than_one_percent_is_no_alarm() -> None:
    apart = {"a": -0.0700, "b": -0.0701, "c": -0.0699, "d": -0.0700, "e": -0.0701, "odd": -0.0780}
    results = analyze(synthetic.study(("bare", "bridge")), records(apart, noise=1e-5))
    assert "site-differs" not in {alarm.rule for alarm in results.alarms}


@pytest.mark.parametrize("form", ["json", "md", "html"])
def test_every_report_tells_how_much_sites_differ(form: str) -> None:
    report = build_report(synthetic.study(("bare", "bridge")), records(ALIKE))
    text = EXPORTERS[form](report)
    assert ("over_sites" in text) if form == "json" else ("sites differ by" in text)


def test_few_sites_are_said_to_be_few() -> None:
    report = build_report(synthetic.study(("bare", "bridge")), records({"a": -0.07, "b": -0.08}))
    assert any("with 2 sites t has 1 degree" in note for note in report.notes)
