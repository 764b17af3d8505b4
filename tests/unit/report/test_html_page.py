"""The HTML page: whole, offline, safe, and read by more than eyes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.estimate import BlockEffect
from tare.analyze.timelines.marks import Mark
from tare.analyze.timelines.runs import OverlaidRun, RunOverlay
from tare.analyze.timelines.series import Point
from tare.report import html_page
from tare.report.charts.blocks import blocks, in_words
from tare.report.charts.theme import NARROW, WIDE, draw
from tare.report.content import Report, build_report
from tare.report.drawings import drawings
from tare.report.in_full import with_details
from tare.report.known import compared, known

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
WBR = "\N{ZERO WIDTH SPACE}"
LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "ping", "xlink:href"}


class Page(HTMLParser):
    """Reads a page as strictly as a checker would: what is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "wbr":
            self.words.append(WBR)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace(f" {WBR} ", "").split())


def usual() -> Report:
    made = [each for each in synthetic.records() if (each.block, each.arm) != (2, "bridge")]
    made.append(synthetic.record(2, "bridge", None, reason="Lost connection"))
    return with_details(build_report(synthetic.study(), made), made)


@pytest.fixture(scope="module")
def source() -> str:
    return html_page.render(usual())


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_every_element_is_closed_and_every_id_is_unique(page: Page) -> None:
    assert page.open == []
    idents = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(idents) == len(set(idents))


def test_nothing_is_loaded_from_anywhere(source: str, page: Page) -> None:
    assert page.all("script") == []
    assert page.all("iframe") == page.all("object") == page.all("embed") == page.all("base") == []
    assert not [name for _, attributes in page.elements for name in attributes if name in LOADING]
    assert [attributes["href"] for attributes in page.all("link")] == ["data:,"]
    assert "@import" not in source
    assert not re.findall(r"url\((?!#)", source)


def test_the_policy_allows_the_pages_own_style_and_nothing_else(source: str, page: Page) -> None:
    policy = next(
        str(meta["content"]) for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    style = source.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not [
        name for _, attributes in page.elements for name in attributes if name == "style" or name[:2] == "on"
    ]


def test_it_is_small(source: str) -> None:
    assert len(source.encode()) < 300_000


def test_forty_blocks_of_ten_arms_stay_far_below_three_megabytes() -> None:
    arms = ("bare", *(f"arm-{n}" for n in range(9)))
    made = synthetic.records(arms, blocks=40)
    text = html_page.render(with_details(build_report(synthetic.study(arms, blocks=40), made), made))
    assert len(text.encode()) < 1_000_000


def test_the_first_screen_has_question_answer_and_what_was_measured(page: Page) -> None:
    begin = page.text[: page.text.index("Each arm against bare")]
    for words in (
        "What does each container network path cost",
        "costs 57.4 to 58.5",
        "10.11.6-MariaDB under sysbench oltp_read_only",
        "29 good of 30 planned, in 5 blocks, 1 failed attempt",
        "8.0 GiB of memory",
        "docker 20.10.24+dfsg1, overlay2, docker-proxy on",
        "of which 1 min 56 s measuring",
        "read with care: few-blocks",
    ):
        assert words in begin.replace("\xa0", " "), words


def test_every_chart_has_words_for_those_who_cannot_see_it(page: Page) -> None:
    charts = page.all("svg")
    assert len(charts) == 2 * len(("throughput", "blocks", "p95", "mean", "p50", "p99", "CPU/op", "shift"))
    for chart in charts:
        assert chart["role"] == "img"
        assert "published-loopback" in str(chart["aria-label"])


def test_colours_of_charts_follow_the_page(source: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    colours = {colour for drawing in drawings for colour in re.findall(r'(?:fill|stroke)="([^"]+)"', drawing)}
    assert colours <= {f"var(--{name})" for name in ("ink", "muted", "line", "accent", "published")} | {"none"}


def test_what_can_be_scrolled_can_be_reached_by_keyboard(page: Page) -> None:
    scrolling = [attributes for _, attributes in page.elements if attributes.get("class") == "scroll"]
    assert scrolling
    assert all(each.get("tabindex") == "0" and each.get("aria-label") for each in scrolling)


def test_failures_deviations_and_packages_are_told(page: Page) -> None:
    for words in (
        "b02-0-bridge, attempt 1, failed in measure: Lost connection",
        "8 tables of 10,000 rows instead of 10,000,000.",
        "mariadb-server 1:10.11.6-0+deb12u1",
        "sha256:" + "cd" * 32,
        "innodb_buffer_pool_size 134217728 all",
        "bridge is compared without block 2",
    ):
        assert words in page.text, words


def test_what_differs_between_arms_is_shown_with_its_arms(page: Page) -> None:
    assert "sut.seccomp 0 bare 2 host, " in page.text
    assert "docker_proxy no all" in page.text


def test_a_store_without_a_good_run_still_gives_a_page() -> None:
    made = [synthetic.record(0, "bare", None), synthetic.record(0, "bridge", None, position=1)]
    page = Page(html_page.render(build_report(synthetic.study(("bare", "bridge")), made)))
    assert "There is no answer" in page.text
    assert page.all("svg") == []


def test_an_empty_store_gives_a_page() -> None:
    assert "There is no answer" in Page(html_page.render(build_report(synthetic.study(), []))).text


HOSTILE = (
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "two\nlines\r\ttabs\x00\x1b[31mred",
    "\u202egnp.exe\u2066\u200b",
    '" onmouseover="alert(1)',
    "{{ 7 * 7 }}{% raw %}",
    "x" * 10_000,
    "]]></svg><script>alert(2)</script>",
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_harmless_in_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are slow to draw, and are tried with all the names at once."""
    monkeypatch.setattr(html_page, "drawings", lambda report: {})

    def spoil(tree: dict[str, Any]) -> None:
        tree["host"] = {"cpu_model": name, name: name}
        tree["effective"] = {name: name, "version": name}
        tree["parity"]["sut"]["seccomp"] = name
        tree["images"]["sut"] = {"reference": name, "digest": name, "engine_id": name, "packages": [[name, name]]}
        tree["path"] = {name: name}
        tree["measurement"]["unit"] = name
        tree["notices"] = [name]

    arms = ("bare", name, f"{name}!")
    made = [synthetic.changed(each, spoil) for each in synthetic.records(arms, blocks=3)]
    made.append(synthetic.record(3, name, None, reason=name))
    study = synthetic.study(arms, blocks=4, question=name, deviations=(name,), text=name, scale=name)
    one = OverlaidRun(name, name, 1, 1.0, (), (), (Mark(name, 1.0, name),), shown=True)
    whole = replace(with_details(build_report(study, made), made), laid_over=RunOverlay((one,), 1))
    page = Page(html_page.render(whole))
    assert page.open == []
    assert page.all("script") == page.all("img") == []
    assert not [key for _, attributes in page.elements for key in attributes if key[:2] == "on"]
    assert not set("".join(page.words)) & set("\x00\x1b\u202e\u2066")
    assert "49" not in page.text or "7 * 7" in page.text


def test_hostile_names_are_harmless_in_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.report.drawings.FRAMES", (NARROW,))
    arms = ("bare", *HOSTILE)
    made = synthetic.records(arms, blocks=3)
    line = tuple(Point("throughput, /s", "SUT", float(n), 1.0) for n in range(3))
    runs = tuple(
        OverlaidRun(name, name, 1, 1.0, line, (), (Mark(name, 1.0, name),), shown=True) for name in HOSTILE
    )
    whole = replace(with_details(build_report(synthetic.study(arms), made), made), laid_over=RunOverlay(runs, 8))
    drawn = {name: figure.drawings for name, figure in drawings(whole).items()}
    assert {"throughput", "blocks", "latency", "shift", "laid-over"} <= set(drawn)
    for figures in drawn.values():
        for _, svg in figures:
            picture = Page(svg)
            assert picture.open == []
            assert picture.all("script") == picture.all("img") == picture.all("foreignobject") == []
            assert not [key for _, attributes in picture.elements for key in attributes if key[:2] == "on"]
            assert not set("".join(picture.words)) & set("\x00\x1b\u202e\u2066")


def test_a_link_leads_to_the_web_or_is_no_link() -> None:
    assert html_page.safe_url("https://example.org/a?b=c#d") == "https://example.org/a?b=c#d"
    for bad in ("javascript:alert(1)", "data:text/html,x", "https://a.example/ x", "HTTPS:evil", 'https://a/"x'):
        assert html_page.safe_url(bad) is None


def test_it_can_be_run_again_and_cited(page: Page) -> None:
    assert "tare run study.yaml --scale demo --seed 0 --blocks 5 --store again" in page.text
    (link,) = [each for each in page.all("a") if each.get("download") == "study.yaml"]
    kept = base64.b64decode(str(link["href"]).partition(",")[2]).decode()
    assert kept == synthetic.study().text
    assert "@misc{tare-percona-2016-demo-20261118," in page.text


def test_shifts_of_latency_are_told_in_figures_too(page: Page) -> None:
    shifts = page.text.partition("The shifts in figures")[2]
    assert "arm n p5 p10" in shifts
    assert "published-loopback 5" in shifts


def test_a_metric_in_which_nothing_could_be_compared_has_no_column_of_dashes() -> None:
    def idle(tree: dict[str, Any]) -> None:
        tree["usage"] = {**tree["usage"], "sut_read_bytes": 0, "sut_write_bytes": 0}

    made = [synthetic.changed(each, idle) for each in synthetic.records()]
    analysis = build_report(synthetic.study(), made).analysis
    assert "io_per_operation" in [metric.name for metric in known(analysis)]
    assert "io_per_operation" not in [metric.name for metric in compared(analysis)]
    assert {"throughput", "latency_mean"} <= {metric.name for metric in compared(analysis)}


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("see `tare run`, then `a<b`", "see <code>tare run</code>, then <code>a&lt;b</code>"),
        ("one ` alone & <b>", "one ` alone &amp; &lt;b&gt;"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text: str, page: str) -> None:
    assert str(html_page.ticked(text)) == page


def test_long_names_of_arms_have_room_on_a_phone() -> None:
    arms = ("bare", "container-with-a-name-that-is-long")
    report = build_report(synthetic.study(arms), synthetic.records(arms))
    findings = [one for one in report.analysis.findings if one.metric == "throughput"]
    spec = json.dumps(blocks(findings, NARROW))
    assert "container-with-a-name-that-is-long" in spec
    assert json.loads(spec)["columns"] == 1
    assert json.loads(json.dumps(blocks(findings, WIDE)))["columns"] == WIDE.columns


def test_the_line_at_zero_keeps_its_label_where_others_have_no_room() -> None:
    report = build_report(synthetic.study(("bare", "bridge")), synthetic.records(("bare", "bridge")))
    (finding,) = [one for one in report.analysis.findings if one.metric == "throughput"]
    within = replace(finding.estimate, low=-0.0298, high=0.0354, point=0.003)
    drawn = draw(
        blocks([replace(finding, estimate=within, blocks=(BlockEffect(1, -0.0298), BlockEffect(2, 0.0354)))], WIDE),
        "b",
        "",
    )
    assert ">0</text>" in drawn


def test_a_report_of_two_blocks_promises_no_interval() -> None:
    two = Page(html_page.render(build_report(synthetic.study(blocks=2), synthetic.records(blocks=2)))).text
    none = "there is no interval: 2 blocks only; an interval needs 3"
    assert f"mean effect ({none})" in two
    assert f"Of throughput {none}." in two
    assert "shaded: the 95" not in two
    five = Page(html_page.render(build_report(synthetic.study(), synthetic.records()))).text
    assert "there is no interval" not in five


def test_a_key_is_broken_after_its_dots_and_underscores() -> None:
    assert str(html_page.breakable("server_sees.a<b")) == "server_<wbr>sees.<wbr>a&lt;b"


def test_a_column_of_published_effects_is_there_only_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_page, "drawings", lambda report: {})
    made = synthetic.records(("bare", "bridge"))
    for published, there in (((), False), (synthetic.study(("bare", "bridge")).published, True)):
        study = synthetic.study(("bare", "bridge"), published=published)
        whole = Page(html_page.render(build_report(study, made)))
        assert ("throughput published" in whole.text) is there


def test_of_many_blocks_the_words_tell_the_range_and_the_middle_half() -> None:
    (finding,) = build_report(
        synthetic.study(("bare", "bridge")), synthetic.records(("bare", "bridge"))
    ).analysis.findings[:1]
    few, many = (
        replace(finding, blocks=tuple(BlockEffect(n, n / 1000) for n in range(1, most + 1))) for most in (2, 101)
    )
    assert in_words([few]).endswith("bridge: block 1 +0.1 %, block 2 +0.2 %.")
    assert in_words([many]).endswith("bridge: 101 blocks, +0.1 % to +10.1 %, half of them +2.6 % to +7.6 %.")
