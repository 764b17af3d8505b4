"""Several nodes of Cassandra 3.11 as one ring, as each of them sees it."""

from __future__ import annotations

import re

from tare.databases import Exec, ServerPlan
from tare.databases.cassandra.nodetool import nodetool
from tare.errors import RunFailed

_TIMEOUT_S = 120.0
"""A JVM's start on a machine on which others start at the same time."""
_NODE = re.compile(r"^([UD?])([NLJM?])\s+(\S+)\s", re.MULTILINE)
"""Up or down; normal, leaving, joining or moving; address."""


class CassandraCluster:
    """Asks nodetool, a JVM each time."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether `nodetool status` of this node lists all of them as UN (up, normal), and no other."""
        if plan.member is None:
            raise RunFailed("a node that is alone has no cluster to be seen")
        done = nodetool(plan, inside, ("status",), _TIMEOUT_S)
        if done.code != 0:
            return False  # its JMX comes up before its ring does, and after its port
        states = parse_status(done.text)
        return len(states) == plan.member.of and set(states.values()) == {"UN"}


def parse_status(text: str) -> dict[str, str]:
    """Address → state (`UN`, `DN`, `UJ`, …) of `nodetool status`."""
    return {address: up + state for up, state, address in _NODE.findall(text)}
