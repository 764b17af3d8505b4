"""Tables of anybody's making are read, or refused without an allocation that ends the process."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # pyarrow has no types
import pytest
from polars.exceptions import ComputeError, PolarsError

from tare.errors import StoreError
from tare.parquet import read_parquet, read_parquet_metadata, readable

DATA = Path(__file__).parents[2] / "data"
TABLE = pl.DataFrame(
    {
        "time": [0.5, None, 2.5] * 3000,
        "name": ["a", "b", None] * 3000,
        "list": [[1, 2], [], None] * 3000,
        "flag": [True, False, None] * 3000,
    }
)


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("**/*.parquet")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_what_tare_probe_wrote_is_read_as_polars_reads_it(path: Path) -> None:
    assert read_parquet(path).equals(pl.read_parquet(path))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "none"])
def test_what_arrow_wrote_is_read_whatever_its_pages_are(tmp_path: Path, version: str, compression: str) -> None:
    path, pages = tmp_path / "table.parquet", {"data_page_size": 2048, "row_group_size": 4000}
    pq.write_table(TABLE.to_arrow(), path, compression=compression, data_page_version=version, **pages)
    assert read_parquet(path).equals(TABLE)
    assert read_parquet(path, ["name", "flag"]).equals(TABLE.select("name", "flag"))


@pytest.mark.parametrize("dictionary", [True, False])
def test_what_arrow_wrote_of_an_empty_table_is_read(tmp_path: Path, dictionary: bool) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(TABLE.head(0).to_arrow(), path, use_dictionary=dictionary)
    assert read_parquet(path).equals(TABLE.head(0))


@pytest.mark.parametrize("rows", [0, 9000])
def test_what_polars_wrote_is_read(tmp_path: Path, rows: int) -> None:
    TABLE.head(rows).write_parquet(tmp_path / "table.parquet", row_group_size=4000, metadata={"of": "a test"})
    assert read_parquet(tmp_path / "table.parquet").equals(TABLE.head(rows))
    assert read_parquet_metadata(tmp_path / "table.parquet")["of"] == "a test"


def test_a_page_with_a_negative_number_of_values_is_refused(tmp_path: Path) -> None:
    """polars asks for 2^61 bytes of it, and the process ends by SIGABRT."""
    path = tmp_path / "table.parquet"
    pq.write_table(pl.DataFrame({"a": [1, 2, 3]}).to_arrow(), path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    at = content.index(b"\x15\x06\x15\x00", 4) + 1  # in the page's header: 3 values, PLAIN, as zigzag
    content[at] = 5
    path.write_bytes(content)
    with pytest.raises(ComputeError, match="a page with more values than its column"):
        read_parquet(path)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1PAR1PAR1", b"PAR1" + b"\xff" * 400 + b"\x90\x01\x00\x00PAR1"]
)
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "table.parquet").write_bytes(content)
    with pytest.raises(PolarsError):
        read_parquet(tmp_path / "table.parquet")


def test_a_small_file_of_a_table_that_fills_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"a": pl.repeat(0, 40_000_000, dtype=pl.Int64, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 200_000
    with pytest.raises(ComputeError, match="its table 320000000"):
        read_parquet(path)


def test_a_footer_of_structures_without_an_end_is_refused(tmp_path: Path) -> None:
    footer = b"\x1c" * 100_000
    (tmp_path / "table.parquet").write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ComputeError, match="description is damaged"):
        read_parquet(tmp_path / "table.parquet")


def test_a_file_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "none.parquet")


def test_pages_that_unpack_to_far_more_than_the_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by attack: one text of 2 GB makes a file of 200 KB, and a table of one row."""
    monkeypatch.setattr("tare.parquet._LARGEST_BYTES", 1 << 20)
    pq.write_table(pl.DataFrame({"a": ["x" * (8 << 20)]}).to_arrow(), tmp_path / "one.parquet", compression="zstd")
    with pytest.raises(ComputeError, match="and its table 8388"):
        read_parquet(tmp_path / "one.parquet")


@pytest.mark.parametrize("error", [TypeError("None"), ValueError("x"), KeyError("a")])
def test_an_error_of_tare_s_own_is_not_blamed_on_a_file(error: Exception) -> None:
    with pytest.raises(type(error)), readable("the trace of a run"):
        raise error


@pytest.mark.parametrize("error", [OSError("no disk"), PolarsError("odd page")])
def test_a_damaged_file_is_one_sentence(error: Exception) -> None:
    with pytest.raises(StoreError, match="the trace of a run cannot be read: "), readable("the trace of a run"):
        raise error
