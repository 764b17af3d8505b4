"""Where the time goes, in reports: a section where stacks were sampled, and none where they were not."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.analyze import synthetic
from tests.unit.report.explain.test_words import arm, estimate, explanation, part
from tests.unit.report.printed import texts, titles

from tare.report import html_page, terminal
from tare.report.charts import components
from tare.report.charts.theme import NARROW, WIDE, draw
from tare.report.content import Report, build_report
from tare.report.sections.explained import explained

OTHER_ARM = arm(
    (part("docker-proxy", 40.0, 0.0), part("TCP/IP", 20.0, 20.0)),
    arm="published-loopback",
    total=part("total", 140.0, 100.0),
    overhead=estimate(0.4),
)


def report() -> Report:
    plain = build_report(synthetic.study(("bare", "bridge")), synthetic.records(("bare", "bridge")))
    return replace(plain, explanation=explanation(arm(), OTHER_ARM))


def test_arms_stand_side_by_side_with_the_largest_cause_first() -> None:
    sentences, causes = explained(report())
    assert sentences.items[1].startswith("published-loopback: +40.0 % CPU per operation")
    assert titles(causes) == ("percent", "bridge", "published-loopback")
    assert texts(causes)[0] == ("docker-proxy", "—", "+40.0")
    assert texts(causes)[-1] == ("all together", "+6.4", "+40.0")


def test_a_report_whose_runs_sampled_nothing_has_no_section() -> None:
    plain = replace(report(), explanation=None)
    assert list(explained(plain)) == []
    assert "Where the time goes" not in html_page.render(plain)
    assert "Where the time goes" not in terminal.render(plain)


def test_pages_and_terminals_show_the_sentence_of_each_arm() -> None:
    page = html_page.render(report())
    assert 'id="h-explained"' in page
    assert "docker-proxy" in page
    assert "bridge: +7.1 % CPU per operation" in " ".join(terminal.render(report(), width=80).split())


def test_the_chart_has_a_bar_for_the_baseline_and_each_arm_at_every_width() -> None:
    arms = [arm(), OTHER_ARM]
    for frame in (WIDE, NARROW):
        spec = components.components(arms, frame)
        rows = next(iter(spec.get("datasets", {"": spec["data"].get("values")}).values()))
        totals: dict[str, float] = {}
        for row in rows:
            totals[row["arm"]] = totals.get(row["arm"], 0.0) + row["us"]
        assert set(totals) == {"bare", "bridge", "published-loopback"}
        assert "<svg" in draw(spec, "components", components.in_words(arms))


def test_no_more_causes_have_a_colour_than_there_are_colours() -> None:
    many = arm(tuple(part(f"cause {n}", 20.0 - n, 10.0) for n in range(15)))
    assert len(components.largest([many])) == 8
    assert components.largest([many])[0] == "cause 0"
