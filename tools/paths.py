"""Shows by which path each arm of a store reached its server, as the sockets of both hosts tell it.

python -m tools.paths STORE
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.deployments import Endpoint
from tare.record.run_record import RunRecord
from tare.store import open_store

_COUNTED = ("tx_packets", "rx_packets", "tcp_segments_retransmitted")


def proof(record: RunRecord) -> Iterator[str]:
    """The lines of one run; nothing where its path was not seen, or server and client shared a host."""
    path, between = record.path, record.between
    if path is None or path.wire is None or between is None:
        return
    yield f"{record.arm}: {' then '.join(hop for hop in (path.client_hop, path.hop) if hop)}"
    wire = path.wire
    for side, words, at, namespace in (
        (
            "client",
            f"dialled {_at(path.client_dialled)}",
            (wire.client_host, wire.client_device),
            path.client_namespace,
        ),
        ("server", f"sees {_at(path.server_sees)}", (wire.server_host, wire.server_device), path.server_namespace),
    ):
        host, device = at
        route = between.route_of("sut" if side == "server" else side)
        counted = (route and route.counters) or {}
        sent, got, again = (counted.get(name) for name in _COUNTED)
        yield f"  {side} on {host}: {words}, network namespace {namespace},"
        yield f"    {device} sent {sent} and got {got} packets, {again} segments sent again"
    trip, clocks = between.before.round_trip, between.before.clocks
    apart, bound = 1e6 * clocks.offset_s, 1e6 * clocks.bound_s
    yield f"  wire: {1e6 * trip.median_s:.0f} µs idle round trip; clocks {apart:+.1f} µs apart, ± {bound:.1f} µs"


def _at(endpoint: Endpoint | None) -> str:
    return "nobody" if endpoint is None else f"{endpoint.address}:{endpoint.port}"


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 where a run has no proof."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    records = [record for record in open_store(parser.parse_args(words).store).records() if record.outcome.ok]
    first = {record.arm: record for record in reversed(records)}
    unproved = [arm for arm, record in first.items() if not list(proof(record))]
    for arm in sorted(first):
        print("\n".join(proof(first[arm])))
    one_kernel = any(record.between and record.between.one_boot for record in records)
    if one_kernel:
        print("Both hosts run one kernel: these figures are not of two machines.")
    for arm in unproved:
        print(f"{arm}: no proof of a path", file=sys.stderr)
    return 1 if unproved or not first else 0


if __name__ == "__main__":
    sys.exit(main())
