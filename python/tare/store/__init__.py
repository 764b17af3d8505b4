"""The store: versioned, append-only run records and their raw files, in one directory.

`open_store` reads, also while a study runs; the one running study writes through `resume_store`.
"""

from __future__ import annotations

from tare.store.read import Store, open_store
from tare.store.resume import resume_store
from tare.store.verify import verify
from tare.store.write import Writer

__all__ = ["Store", "Writer", "open_store", "resume_store", "verify"]
