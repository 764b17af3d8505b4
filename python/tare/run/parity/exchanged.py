"""Make runs before and after a swap of server and client hosts comparable. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord

_SERVER = "<address of the SUT's host>"
_NO_WORD = ".:-_"


def exchanged(reference: RunRecord, record: RunRecord) -> tuple[RunRecord, RunRecord]:
    """Return both records unchanged if their hosts play the same parts.

    Otherwise, swap the facts of the reference's hosts, and mask the SUT's own address in the settings of both,
    since it differs between the hosts.
    """
    if reference.is_swapped == record.is_swapped:
        return reference, record
    return _swapped(_without_address(reference)), _without_address(record)


def _swapped(record: RunRecord) -> RunRecord:
    between, swapped = record.between, {"sut": "client", "client": "sut"}
    return record.model_copy(
        update={
            "host": record.client_host or HostFacts(),
            "client_host": record.host,
            "engine": record.client_engine,
            "client_engine": record.engine,
            "between": between
            and replace(
                between,
                sut=between.client,
                client=between.sut,
                sides={swapped[side]: route for side, route in (between.sides or {}).items() if side in swapped},
            ),
        }
    )


def _without_address(record: RunRecord) -> RunRecord:
    between = record.between
    address = between and between.addresses.get(between.sut)
    if record.effective is None or not address:
        return record
    return record.model_copy(update={"effective": _masked(record.effective, address)})


def _masked(effective: Mapping[str, str], address: str) -> Mapping[str, str]:
    """Mask the address where it stands alone: 10.0.0.2 is no part of 10.0.0.21."""
    return {
        name: value.replace(address, _SERVER) if _stands_alone(address, value) else value
        for name, value in effective.items()
    }


def _stands_alone(address: str, value: str) -> bool:
    before, found, after = value.partition(address)
    alone = not (before[-1:].isalnum() or before[-1:] in tuple(_NO_WORD) or after[:1].isdigit())
    return bool(found) and alone
