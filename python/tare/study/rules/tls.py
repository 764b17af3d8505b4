"""Rules for TLS: server and generator must support it."""

from __future__ import annotations

from collections.abc import Collection

from tare.study.model import ArmSettings
from tare.study.rules.refusal import Refusal


def refuse_tls(settings: ArmSettings, servers: Collection[str], clients: Collection[str]) -> Refusal | None:
    """Return the reason why the two cannot use TLS; `None` if they can or need not.

    `servers`, `clients`: databases and workloads that support it.
    """
    sut, workload = settings.sut, settings.workload_name
    if not sut.tls:
        return None
    if sut.database is None:
        why = f"`{workload}` needs no database, so there is no connection to encrypt"
        return Refusal((("sut", "tls"), ("workload", "name")), why, "leave `tls` out")
    if sut.database not in servers:
        why = f"tare cannot set up TLS for {sut.database}"
        return Refusal((("sut", "tls"), ("sut", "database")), why, f"use {_list(servers)}, or leave `tls` out")
    if workload not in clients:
        why = f"tare cannot set up TLS for the workload {workload}"
        return Refusal((("sut", "tls"), ("workload", "name")), why, f"use {_list(clients)}, or leave `tls` out")
    return None


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
