"""What a person sees of a run in a terminal: a line of progress, then the table."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

from jsonschema import Draft202012Validator
from tests.integration.load.servers import LIMIT_S, job, redis

SCHEMAS = Path(__file__).parents[3] / "schemas"
ERASE = "\r\x1b[K"


def printed(*words: str) -> str:
    """Everything that tare-load writes to a terminal, its exit code last."""
    ours, its = pty.openpty()
    process = subprocess.Popen(["tare-load", *words], stdin=its, stdout=its, stderr=its)
    os.close(its)
    out = b""
    try:
        while piece := os.read(ours, 65536):
            out += piece
    except OSError:
        pass  # the program has closed its side
    finally:
        os.close(ours)
    return f"{out.decode()}{process.wait(timeout=LIMIT_S)}"


def test_progress_gives_way_to_a_table(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [{"name": "ping", "steps": [{"send": "PING"}]}])
    with redis() as server:
        words = ("--protocol", "redis", "--address", server.address, "--job", path, "--duration", "0.6")
        shown = printed("run", *words, "--window", "0.2", "--rate", "500")
        quiet = printed("run", *words, "--json")
    progress, _, table = shown.rpartition(ERASE)
    assert f"{ERASE}measure 0 s  " in progress
    assert " operations/s  p50 " in progress
    assert table.startswith("redis at ")
    assert "ping" in table
    assert table.endswith("\r\n0")
    document = json.loads(quiet.rpartition("}")[0].rpartition(ERASE)[2] + "}")
    schema = json.loads((SCHEMAS / "tare-load.schema.json").read_text())
    Draft202012Validator(schema).validate(document)
    assert document["measure"]["right"] > 0
