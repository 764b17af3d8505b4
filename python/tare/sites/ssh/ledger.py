"""The ledger on each host, kept by its agent, and one ledger over all hosts of a site."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tare.errors import EnvironmentLacks
from tare.sites import Process
from tare.sites.ledger import Kind, Ledger, Made
from tare.sites.process import from_ident
from tare.sites.ssh.link import Link, Refused


class AgentLedger:
    """Kept by the agent, which owns all entries: it lives as long as its tare, plus a lease."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:  # noqa: ARG002 - the one host
        """Note it in the ledger that the agent keeps."""
        self._ask("note", kind=kind.value, ident=ident, keep=keep)

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:  # noqa: ARG002 - the one host
        """Delete it from the ledger that the agent keeps."""
        self._ask("forget", kind=kind.value, ident=ident)

    def entries(self) -> tuple[Made, ...]:
        """All entries in order of removal: by kind, then the newest first."""
        return tuple(self._made(entry) for entry in self._entries())

    def abandoned(self) -> tuple[Made, ...]:
        """Entries whose agent is dead."""
        return tuple(self._made(entry) for entry in self._entries() if not entry["keep"] and not entry["living"])

    def owner_on(self, host: str) -> Process:  # noqa: ARG002 - the one host
        """Owner of what this process notes for that host."""
        return from_ident(self._link.agent.ident)

    def home(self, host: str) -> str:  # noqa: ARG002 - the one host
        """Home on the agent's host."""
        return str(self._link.agent.home)

    def _entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = json.loads(self._ask("entries"))
        order = list(Kind)
        entries.reverse()
        return sorted(entries, key=lambda entry: order.index(Kind(entry["kind"])))

    def _made(self, entry: Mapping[str, Any]) -> Made:
        owner = from_ident(entry["owner"])
        why_left = entry.get("failed")
        return Made(Kind(entry["kind"]), entry["ident"], self._link.name, owner, entry["keep"], why_left)

    def _ask(self, op: str, **fields: Any) -> bytes:
        try:
            return self._link.ask(op, **fields).data
        except Refused as refused:
            raise EnvironmentLacks(
                f"the ledger on {self._link.name} cannot be used: {refused.what}",
                hint="free disk space there, or give the host another `home` in sites.yaml",
            ) from refused


class SiteLedger:
    """Keeps the entries of each host in the ledger on that host. `here`: for all hosts that are not in `there`."""

    def __init__(self, here: Ledger, there: Mapping[str, Ledger]) -> None:
        self._here = here
        self._there = there

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """Note it in the ledger of its host."""
        self._of(host).note(kind, ident, host=host, keep=keep)

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Delete it from the ledger of its host."""
        self._of(host).forget(kind, ident, host=host)

    def entries(self) -> tuple[Made, ...]:
        """Entries of all ledgers, in order of removal."""
        return self._ordered([made for ledger in self._all() for made in ledger.entries()])

    def abandoned(self) -> tuple[Made, ...]:
        """Entries of all hosts whose owner is dead."""
        return self._ordered([made for ledger in self._all() for made in ledger.abandoned()])

    def owner_on(self, host: str) -> Process:
        """Owner of what this process notes for that host."""
        return self._of(host).owner_on(host)

    def home(self, host: str) -> str:
        """Home on that host."""
        return self._of(host).home(host)

    def _of(self, host: str) -> Ledger:
        return self._there.get(host, self._here)

    def _all(self) -> tuple[Ledger, ...]:
        return (self._here, *self._there.values())

    @staticmethod
    def _ordered(made: list[Made]) -> tuple[Made, ...]:
        order = list(Kind)
        return tuple(sorted(made, key=lambda entry: order.index(entry.kind)))
