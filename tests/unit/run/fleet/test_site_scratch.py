"""The directory for temporary files of a site's process is gone with it, whatever its Dask worker is just doing."""

from __future__ import annotations

import signal
import tempfile
import threading
from pathlib import Path
from typing import Any

import distributed.core
import pytest
from distributed.diskutils import WorkSpace

from tare.errors import EnvironmentLacks
from tare.run.fleet import site_process
from tare.run.fleet.site_process import MainThreadPoolExecutor, Orders, serve
from tare.run.interrupts import Interrupted
from tare.sites.file import SiteSpec
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger

WAIT_S = 60.0


class Leaving:
    """Maker of a site that makes nothing."""

    def leave(self) -> None:
        """Nothing is connected."""


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    monkeypatch.setattr(site_process, "default_layout", lambda: Layout(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spec = SiteSpec(name="one", sut="local", client="local")
    return Orders("tcp://127.0.0.1:9", spec.model_dump(mode="json"))


def test_a_worker_that_starts_while_the_process_ends_makes_no_directory(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, left, over = threading.Event(), threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def late(path: str) -> WorkSpace:
        begun.set()
        assert left.wait(WAIT_S)
        try:
            return WorkSpace(path)
        except BaseException as error:
            errors.append(error)
            raise
        finally:
            over.set()

    def interrupted(*_: Any) -> None:
        assert begun.wait(WAIT_S)
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(distributed.core, "WorkSpace", late)
    monkeypatch.setattr(MainThreadPoolExecutor, "serve", interrupted)
    serve(orders, lambda *_: Leaving())  # type: ignore[arg-type]  # all that is used of it
    assert list(tmp_path.glob("tare-site-*")) == []
    left.set()
    assert over.wait(WAIT_S)
    assert list(tmp_path.glob("tare-site-*")) == []
    assert [type(error) for error in errors] == [FileNotFoundError]
    assert SqliteLedger(tmp_path / "home" / "ledger.sqlite").entries() == ()


def test_dask_works_in_the_directory_and_a_lost_one_is_not_blamed_on_the_scheduler(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def lost(path: str) -> WorkSpace:
        directory = WorkSpace(path).new_work_dir(prefix="worker-")
        made.extend(tmp_path.glob("tare-site-*/dask-scratch-space/worker-*"))
        directory.release()
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(distributed.core, "WorkSpace", lost)
    with pytest.raises(EnvironmentLacks, match="the worker of the site one cannot start"):
        serve(orders, lambda *_: Leaving())  # type: ignore[arg-type]  # all that is used of it
    assert any(path.suffix != ".dirlock" for path in made)
    assert list(tmp_path.glob("tare-site-*")) == []
