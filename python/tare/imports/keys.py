"""Keys of a mapping file and parsers in words: `tare import --keys`."""

from __future__ import annotations

import inspect

from tare.imports.mapping import CsvParser, MappingFile, MonitorsSpec, Quotient, Tidy, ToolParser, Wide
from tare.imports.monitors.registry import MONITOR_LOGS
from tare.imports.parsers.registry import PARSERS

_SECTIONS = {
    "The file": MappingFile,
    "parser, of a tool": ToolParser,
    "parser, of a table (name: csv)": CsvParser,
    "parser.figures.throughput, as a quotient": Quotient,
    "parser.wide": Wide,
    "parser.tidy": Tidy,
    "monitors": MonitorsSpec,
}


def keys_in_words() -> str:
    """What each key means, which tools are read, and the logs that `monitors` joins."""
    lines = []
    for title, model in _SECTIONS.items():
        lines += [title, *(f"  {line}".rstrip() for line in (inspect.getdoc(model) or "").splitlines()), ""]
    lines += ["Tools", *(f"  {name}: {parser.title}" for name, parser in PARSERS.items()), ""]
    lines += ["Logs of monitors", *(f"  {each.title}" for each in MONITOR_LOGS.values())]
    return "\n".join(lines)
