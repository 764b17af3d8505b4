"""How several servers are one database: beside `Database`, as few can be that."""

from __future__ import annotations

from typing import Protocol

from tare.databases import Exec, ServerPlan


class Cluster(Protocol):
    """Of nodes that are started one after the other, each told of the first by its plan's `member`."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node, which answers queries, sees all nodes of the cluster at work, itself too."""
        ...
