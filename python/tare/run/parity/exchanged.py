"""Runs before and after server and client have changed hosts, made comparable. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.run.record import RunRecord

_SERVER = "<address of the SUT's host>"
_NO_WORD = ".:-_"


def is_swapped(record: RunRecord) -> bool:
    """Whether server and client stood on the host that the file of sites has for the other."""
    return bool((record.between or {}).get("swapped", False))


def exchanged(reference: RunRecord, record: RunRecord) -> tuple[RunRecord, RunRecord]:
    """Both as they are where their hosts play the same parts.

    Otherwise the reference with the facts of its hosts in each other's place, and in both the settings that hold
    the SUT's own address without it, as it is another one for each host.
    """
    if is_swapped(reference) == is_swapped(record):
        return reference, record
    return _turned(_without_address(reference)), _without_address(record)


def _turned(record: RunRecord) -> RunRecord:
    between = record.between or {}
    sides = between.get("sides") or {}
    return record.model_copy(
        update={
            "host": record.client_host or {},
            "client_host": record.host,
            "engine": record.client_engine,
            "client_engine": record.engine,
            "between": {
                **between,
                "sut": between.get("client"),
                "client": between.get("sut"),
                "sides": {"sut": sides.get("client"), "client": sides.get("sut")},
            },
        }
    )


def _without_address(record: RunRecord) -> RunRecord:
    between = record.between or {}
    address = (between.get("addresses") or {}).get(between.get("sut"))
    if record.effective is None or not address:
        return record
    return record.model_copy(update={"effective": _replaced(record.effective, str(address))})


def _replaced(effective: Mapping[str, Any], address: str) -> Mapping[str, Any]:
    """Where it stands as an address of its own: 10.0.0.2 is no part of 10.0.0.21."""
    return {
        name: value.replace(address, _SERVER) if isinstance(value, str) and _stands_in(address, value) else value
        for name, value in effective.items()
    }


def _stands_in(address: str, value: str) -> bool:
    before, found, after = value.partition(address)
    alone = not (before[-1:].isalnum() or before[-1:] in tuple(_NO_WORD) or after[:1].isdigit())
    return bool(found) and alone
