"""Claims as a list, in which an id is never broken: it is there to be copied."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tare.knowledge.read import Known
from tare.knowledge.words import context_words, effect_words, plain

_LONGEST_ID = 255
"""An id is a file's name."""
_LONGEST = 400
_READABLE = 24
"""Characters that a column of words needs to be read as such."""


def write_list(claims: Sequence[Known], console: Console) -> None:
    """For people a table, or in a narrow terminal a paragraph each; else a line each for other programs."""
    rows = [_row(known) for known in claims]
    if not console.is_terminal:
        text = "".join("\t".join(row) + "\n" for row in rows)
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    elif max((len(name) for name, *_ in rows), default=0) + 2 * _READABLE <= console.width:
        console.print(_table(rows))
    else:
        for name, effect, context in rows:
            console.print(Text(name, style="bold"), soft_wrap=True)
            console.print(Padding(Text(f"{effect}\n{context}"), (0, 0, 0, 2)))


def _row(known: Known) -> tuple[str, str, str]:
    claim = known.claim
    return plain(known.id, _LONGEST_ID), plain(effect_words(claim), _LONGEST), plain(context_words(claim), _LONGEST)


def _table(rows: Sequence[tuple[str, str, str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("claim", header_style="dim", no_wrap=True)
    for column in ("effect", "of"):
        table.add_column(column, header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
