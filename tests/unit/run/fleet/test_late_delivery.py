"""Files that a site delivers after its block was given up leave nothing in the store's staging area."""

from __future__ import annotations

import queue
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tare.run.fleet.dispatcher import Dispatcher


def test_what_arrives_for_a_block_that_was_given_up_is_removed(tmp_path: Path) -> None:
    spool = tmp_path / "block-2"
    dispatcher: Any = object.__new__(Dispatcher)

    def bring(name: str, task: str, spool: Path) -> None:
        """Gives the block up, as the dispatcher's thread does meanwhile, and then writes."""
        dispatcher._tasks.pop(task)
        shutil.rmtree(spool)
        spool.mkdir()
        (spool / "late").write_text("x")

    spool.mkdir()
    dispatcher._fleet = SimpleNamespace(workers=SimpleNamespace(shares_disk=False, bring=bring))
    dispatcher._tasks, dispatcher._messages = {"block-2": ("site", spool)}, queue.SimpleQueue()
    dispatcher._couriers, dispatcher._deliveries = {"site": ThreadPoolExecutor(1)}, set()
    dispatcher._deliver("kept", "block-2")
    wait(dispatcher._deliveries, timeout=60)
    dispatcher._couriers["site"].shutdown()
    assert list(tmp_path.iterdir()) == []
