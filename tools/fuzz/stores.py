"""Stores, and what is told of them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
import tempfile
import unicodedata
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from unittest.mock import patch

import polars as pl
from markdown_it import MarkdownIt
from polars.exceptions import PolarsError

from tare.analyze.explain.run_times import run_times
from tare.errors import StoreError
from tare.knowledge.predictions.traffic import loopback_traffic
from tare.record.measurement import Measurement
from tare.record.monitor import MonitorFacts
from tare.record.run_record import RunRecord
from tare.record.usage import Usage
from tare.report import EXPORTERS, html_page
from tare.report.content import build_report
from tare.store import open_store, verify
from tare.store.repair import repair
from tools.fuzz import mutations
from tools.fuzz.documents import REPOSITORY, Accepted

_DATA = REPOSITORY / "tests" / "data"


@cache
def _golden() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript((REPOSITORY / "tests" / "golden" / "store-4" / "store.sql").read_text())
        return database.serialize()


def store(chance: Random, place: Path) -> object:
    """Stores with damaged pages, records and plans: read, verified and repaired."""
    where = place / "store"
    for folder in ("raw", "staging"):
        (where / folder).mkdir(parents=True)
    (where / "lock").touch()
    database = where / "store.sqlite"
    if chance.random() < 0.5:
        database.write_bytes(mutations.binary(_golden(), chance))
    else:
        database.write_bytes(_golden())
        _spoil_rows(database, chance)
    try:
        opened = open_store(where)
        verify(opened)
        opened.endings()
    except StoreError:
        pass
    return repair(where, place / "new")


def _spoil_rows(path: Path, chance: Random) -> None:
    table, column = chance.choice((("runs", "record"), ("facts", "body"), ("study", "plan"), ("endings", "body")))
    with closing(sqlite3.connect(path)) as database, database:
        rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        if not rows:
            return
        number, body = chance.choice(rows)
        tree = json.dumps(mutations.tree(json.loads(body), chance)).encode("utf-8", "replace").decode()
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (tree, number))


@cache
def _recorded() -> RunRecord:
    """A record of the golden store, as if the trace of tests/data were its own."""
    with tempfile.TemporaryDirectory() as place:
        for folder in ("raw", "staging"):
            Path(place, folder).mkdir()
        Path(place, "lock").touch()
        Path(place, "store.sqlite").write_bytes(_golden())
        good = next(each for each in open_store(Path(place)).records() if each.outcome.ok)
    return good.model_copy(
        update={
            "usage": replace(good.usage or Usage(), began_monotonic_s=2080.5, ended_monotonic_s=2083.5),
            "measurement": replace(good.measurement or Measurement(), operations=1000),
            "monitors": {"profile": MonitorFacts(samples=1)},
        }
    )


def explanation(chance: Random, place: Path) -> object:
    """A run with a damaged trace or profile, or tables that lack columns: where its time went, what it sent."""
    trace, profile = place / "monitors" / "probe" / "trace", place / "monitors" / "profile" / "profile.parquet"
    shutil.copytree(_DATA / "trace", trace)
    profile.parent.mkdir()
    shutil.copyfile(_DATA / "explain" / "nat.parquet", profile)
    tables = sorted(trace.glob("*.parquet"))
    for _ in range(chance.randint(1, 3)):
        _spoil_table(chance.choice([*tables, profile]), tables, chance)
    loopback_traffic(_recorded(), lambda _, name: place / name)
    return run_times(_recorded(), lambda _, name: place / name)


def _spoil_table(path: Path, others: Sequence[Path], chance: Random) -> None:
    how = chance.randrange(4)
    if how == 0:
        path.write_bytes(mutations.binary(path.read_bytes(), chance))
    elif how == 1:
        path.write_bytes(chance.choice(others).read_bytes())
    else:
        with suppress(PolarsError):  # spoilt before
            table = pl.read_parquet(path)
            column = chance.choice(table.columns)
            spoilt = table.drop(column) if how == 2 else table.with_columns(pl.col(column).cast(pl.String))
            spoilt.write_parquet(path)


def report(chance: Random, place: Path) -> object:
    """Stores with hostile texts in their records: every format keeps them texts. Charts are slow and left out."""
    where = place / "store"
    for folder in ("raw", "staging"):
        (where / folder).mkdir(parents=True)
    (where / "lock").touch()
    (where / "store.sqlite").write_bytes(_golden())
    with closing(sqlite3.connect(where / "store.sqlite")) as database, database:
        share = chance.choice((0.02, 0.1, 0.4))
        for table, column in (("runs", "record"), ("facts", "body"), ("study", "plan")):
            for number, body in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
                tree = json.dumps(mutations.strings(json.loads(body), chance, share))
                database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (tree, number))
    opened = open_store(where)
    with patch.object(html_page, "drawings", lambda _report: {}):
        made = build_report(opened.plan.study, opened.records())
        reports = {name: render(made) for name, render in EXPORTERS.items()}
    must_be_harmless(reports["html"], "HTML")
    must_be_harmless(as_read(reports["md"]), "Markdown")
    for name in ("terminal", "md"):
        if odd := next(
            (
                each
                for each in reports[name]
                if unicodedata.category(each) in {"Cc", "Cf"} - {"\n"} and each != "\n"
            ),
            None,
        ):
            raise Accepted(f"{odd!r} in {name}")
    cells = [cell for row in csv.reader(io.StringIO(reports["csv"])) for cell in row]
    if odd := next((cell for cell in cells if re.match(r"[=@\t\r]|[+-](?![0-9.]+(e[+-]?[0-9]+)?$)", cell)), None):
        raise Accepted(f"a formula in CSV: {odd[:40]!r}")
    return json.loads(reports["json"])


def as_read(markdown: str) -> str:
    """As HTML. What stands in a code span or behind a backslash is text, and only a reader of Markdown can tell."""
    return str(_Trusting("commonmark").enable("table").render(markdown))


class _Trusting(MarkdownIt):
    """As readers of Markdown that refuse no `javascript:`."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the library's
        return True


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.odd: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "iframe", "object", "embed", "base", "form", "img"}:
            self.odd.append(tag)
        self.odd += [name for name, value in attrs if name[:2] == "on" or (value or "").startswith("javascript:")]

    def handle_data(self, data: str) -> None:
        self.odd += [repr(each) for each in set(data) & set("\x00\x1b\x07\u202e\u2066")]


def must_be_harmless(page: str, name: str) -> None:
    """Nothing in HTML runs, loads or hides anything. Raises `Accepted`."""
    reader = _Page()
    reader.feed(page)
    if reader.odd:
        raise Accepted(f"{reader.odd[0]} in {name}")
