"""The charting library as one script: Vega-Embed with Vega and Vega-Lite, which vl-convert carries."""

from __future__ import annotations

import contextlib
import os
import threading
from importlib.metadata import version
from pathlib import Path

import vl_convert
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import TareError
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

_VERSION = version("vl-convert-python")
_ONE_AT_A_TIME = threading.Lock()


def charting_script(folder: Path | None = None) -> bytes:
    """The script. Bundling takes seconds of a CPU, so it is done once a version, and kept in tare's home."""
    kept = (folder or default_layout().home / "live") / f"vega-{_VERSION}.js"
    with _ONE_AT_A_TIME:
        with contextlib.suppress(OSError):
            if content := kept.read_bytes():
                return content
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode()
        with contextlib.suppress(OSError, TareError, SQLAlchemyError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            _note(kept.parent)
            scratch = kept.with_name(f"{kept.name}.{os.getpid()}")
            scratch.write_bytes(script)
            scratch.replace(kept)
        return script


def _note(folder: Path) -> None:
    """So that `tare clean` takes it away with the other caches."""
    SqliteLedger(default_layout().ledger).note(Kind.PATH, str(folder), host=LocalHost().name, keep=True)
