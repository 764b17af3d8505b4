"""Several fake servers as one: each has its own number, and only the first is asked for it."""

from __future__ import annotations

from tare.databases import Exec, ServerPlan
from tare.databases.fake import FakeDatabase


class FakeCluster:
    """Together once each answers, unless `fault` is `together`."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node answers."""
        return FakeDatabase().ready(plan, inside) and plan.settings.get("fault") != "together"
