"""What only Markdown writes of a section: property lists, blocks of code, links."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tare.report.content import Report
from tare.report.markdown.text import code, fenced, folded, table, text
from tare.report.plain import plain, plain_lines
from tare.report.setting import BY_OTHERS, Property
from tare.report.words.summary import again, citation

_MOST_FACTS = 120
"""Most facts in one list; a pull request is limited to 65,536 characters."""


def _published(report: Report) -> list[str]:
    source = report.study.source
    if source is None:
        return []
    url = re.sub(r"[<>\s]", "", plain(source.url, 500))
    return ["", f"{text(source.authors)}, *{text(source.title)}* ({source.year}), <{url}>"]


def _parity(report: Report) -> list[str]:
    if report.study.imported is not None:
        return ["", BY_OTHERS]
    setting = report.setting
    differing = _properties([each for each in setting.parity if each.differs])
    same = sum(not each.differs for each in setting.parity)
    path = _properties(setting.path)
    one = "recorded property is" if same == 1 else "recorded properties are"
    lines = ["", f"{same} {one} the same in every arm."] if same else []
    lines += ["", *(differing or ["Nothing that was recorded differs between arms."])]
    return [*lines, *(["", "Network path from client to server:", "", *path] if path else [])]


def _environment(report: Report) -> list[str]:
    setting = report.setting
    images = [
        f"- {text(bits.reference, 120)} ({text(' and '.join(bits.sides))}): `{code(bits.digest, 120)}`, "
        f"{len(bits.packages)} packages"
        for bits in setting.images
    ]
    words = [each for each in setting.effective if each.name in setting.asked or each.differs]
    rest = len(setting.effective) - len(words)
    more = [f"{rest} other variables are the same in every arm; the HTML report lists them."] if rest else []
    lines = [*_properties(setting.host), *(["", *_properties(setting.engine)] if setting.engine else [])]
    properties = _properties(words)
    return [
        *folded("Images", images),
        *folded("Server variables", [*properties, *([""] if properties and more else []), *more]),
        *folded("Host and engine", lines),
    ]


def _properties(properties: Sequence[Property]) -> list[str]:
    rows = [
        (each.name, value.text, ", ".join(value.arms) or "all")
        for each in properties[:_MOST_FACTS]
        for value in each.values
    ]
    left_out = len(properties) - _MOST_FACTS
    more = ["", f"{left_out} more are in the HTML report."] if left_out > 0 else []
    return [*table(("property", "value", "arms"), rows, (True, True, True)), *more]


def _again(report: Report) -> list[str]:
    command = again(report.study)
    if command is None:
        return ["", "These runs were imported; no command repeats them."]
    lines = ["", *fenced(command.command, "console")]
    if not command.save:
        return lines
    return [*lines, *folded("with this as study.yaml", fenced(plain_lines(report.study.text), "yaml"))]


def _cite(report: Report) -> list[str]:
    cited = citation(report)
    return ["", text(cited.text, 1500), "", *fenced(cited.bibtex, "bibtex")]


BODIES: Mapping[str, Callable[[Report], list[str]]] = {
    "published": _published,
    "parity": _parity,
    "environment": _environment,
    "again": _again,
    "cite": _cite,
}
"""Name of a section → its lines beneath the title."""
