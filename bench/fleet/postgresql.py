"""A PostgreSQL of the benchmark's own, reached by a socket in a directory that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tare.store_place import StorePlace, parse_store_url

_NOBODY = 65534
_LIMIT_S = 60.0
_DATABASE = "postgres"


def programs() -> Path | None:
    """Where the newest server is that Debian's packages, or the search path, have; `None` where there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    given = shutil.which("postgres")
    newest = installed[-1] if installed else None if given is None else Path(given)
    return None if newest is None else newest.parent


@contextmanager
def server(programs_at: Path) -> Iterator[Path]:
    """Running with its defaults, `fsync` among them; the directory of its socket."""
    at = Path(tempfile.mkdtemp(prefix="tare-bench-postgresql-"))
    # PostgreSQL refuses to run as root.
    drop: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    process = None
    try:
        if drop:
            os.chown(at, _NOBODY, _NOBODY)
        made = [str(programs_at / "initdb"), "-D", str(at / "data"), "-U", "tare", "-A", "trust", "-E", "UTF8",
                "--locale", "C"]  # fmt: skip
        subprocess.run(made, check=True, capture_output=True, timeout=_LIMIT_S, cwd=at, **drop)
        with (at / "log").open("wb") as log:
            words = [
                str(programs_at / "postgres"),
                "-D",
                str(at / "data"),
                "-k",
                str(at),
                "-c",
                "listen_addresses=",
            ]
            process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=at, **drop)
        _await(at, process)
        yield at
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(_LIMIT_S)
        shutil.rmtree(at)


def store_at(socket: Path, name: str, raw: Path) -> StorePlace:
    """The URL of a store in it."""
    return parse_store_url(f"postgresql://tare@/{_DATABASE}?host={socket}&store={name}&raw=file://{raw}")


def size_of(place: StorePlace) -> int:
    """Bytes of its tables and indexes."""
    from sqlalchemy import text

    from tare.store import postgresql

    asked = text(
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND n.nspname = :name"
    )
    with postgresql.connect(place, read_only=True).connect() as connection:
        return int(connection.execute(asked, {"name": place.name}).scalar_one())


def _await(at: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not any(at.glob(".s.PGSQL.*[0-9]")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"bench.fleet: PostgreSQL did not start: {(at / 'log').read_text(errors='replace')}")
        time.sleep(0.1)
