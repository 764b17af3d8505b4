"""Output of programs has a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import RunFailed
from tare.workloads.output_text import output_text


def test_an_output_up_to_the_limit_is_read_and_a_larger_one_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(b"x" * (1 << 20))
    assert len(output_text(path, "fio", 1)) == 1 << 20
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(RunFailed, match="stdout of fio is larger than 1 MiB"):
        output_text(path, "fio", 1)


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"a\xff")
    assert output_text(tmp_path / "stdout", "fio", 1) == "a\ufffd"
