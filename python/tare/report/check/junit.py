"""A check as JUnit XML: a test suite for each metric, a test case for each arm."""

from __future__ import annotations

import io

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from tare.analyze.overhead_limit import LimitCheck, Outcome
from tare.report.check.content import Check, figures, in_words, title
from tare.report.plain import distinct, plain


def render(check: Check) -> str:
    """Return the XML. An inconclusive case is a failure, or skipped if the check is lenient."""
    study = f"{plain(check.study.name, 80)} at scale {plain(check.study.scale, 40)}"
    whole = JUnitXml(f"tare check: {study}")
    names = distinct(tuple(dict.fromkeys(one.arm for one in check.checks)), 120)
    for metric in check.metrics:
        suite = TestSuite(title(check, metric))
        suite.add_property("study", study)
        suite.add_property("valid", "false" if check.analysis.invalid else "true")
        cases = [_case(check, one, names[one.arm]) for one in check.checks if one.metric == metric]
        suite.add_testcases(cases)
        whole.add_testsuite(suite)
    whole.update_statistics()  # type: ignore[no-untyped-call]  # junitparser is typed in part
    out = io.BytesIO()
    whole.write(out, pretty=True)
    return out.getvalue().decode("utf-8")


def _case(check: Check, one: LimitCheck, name: str) -> TestCase:
    case = TestCase(name, classname=f"tare.{plain(check.study.name, 80)}.{plain(one.metric, 80)}")
    point, bounds = figures(one)
    message = f"{point} against {plain(one.baseline, 80)}, 95 % interval {bounds} %, n = {one.n}; {in_words(one)}"
    case.system_out = message
    if one.outcome is Outcome.FAIL:
        case.result = [Failure(message, "overhead" if one.why is None else "invalid")]
    elif one.outcome is Outcome.INCONCLUSIVE:
        case.result = [Skipped(message) if check.lenient else Failure(message, "inconclusive")]
    elif one.outcome is Outcome.TOO_NOISY:
        case.result = [Failure(message, "too-noisy")]
    return case
