"""A program that makes the image `fake:a` and takes its time: HOME LOG PAUSE_S. Each fetch adds an x to LOG."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tare.images import Archive, Workshop
from tare.images import prepare as module
from tare.images.fake import FakeImages
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger


class Slow(FakeImages):
    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        archive = super().fetch(reference, workshop, scratch)
        with Path(sys.argv[2]).open("a") as log:
            log.write("x")
        time.sleep(float(sys.argv[3]))
        return archive


if __name__ == "__main__":
    setattr(module, "IMAGE_SOURCES", {"fake": Slow()})  # noqa: B010 - as monkeypatch does it
    layout = Layout(Path(sys.argv[1]))
    ledger = SqliteLedger(layout.ledger)
    module.prepare("fake:a", host=FakeHost(), layout=layout, ledger=ledger, engine=None)
