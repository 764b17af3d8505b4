"""Traps: known ways in which a container or set-up changes a database's performance or correctness, by name.

`load_traps` reads the files below knowledge/traps. A trap says by a predicate over facts how it is recognised; no
code belongs to it. `FACTS` is what a predicate may ask for.
"""

from __future__ import annotations
