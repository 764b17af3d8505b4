"""Shows by which path each arm of a store reached its server, as the sockets of both hosts tell it.

python -m tools.paths STORE
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.record.run_record import RunRecord
from tare.store import open_store

_COUNTED = ("tx_packets", "rx_packets", "tcp_segments_retransmitted")


def proof(record: RunRecord) -> Iterator[str]:
    """The lines of one run; nothing where its path was not seen, or server and client shared a host."""
    path, between = record.path or {}, record.between or {}
    wire = path.get("wire")
    if wire is None or not between:
        return
    hops = [path.get("client_hop"), path.get("hop")]
    yield f"{record.arm}: {' then '.join(str(hop) for hop in hops if hop)}"
    sides = between.get("sides") or {}
    for side, words in (
        ("client", f"dialled {_place(path['client_dialled'])}"),
        ("server", f"sees {_place(path['server_sees'])}"),
    ):
        seen = sides.get("sut" if side == "server" else side) or {}
        counted = seen.get("counters") or {}
        sent, got, again = (counted.get(name) for name in _COUNTED)
        yield f"  {side} on {wire[f'{side}_host']}: {words}, network namespace {path[f'{side}_namespace']},"
        yield f"    {wire[f'{side}_device']} sent {sent} and got {got} packets, {again} segments sent again"
    before = between["before"]
    trip, clocks = before["round_trip"], before["clocks"]
    apart, bound = 1e6 * clocks["offset_s"], 1e6 * clocks["bound_s"]
    yield f"  wire: {1e6 * trip['median_s']:.0f} µs idle round trip; clocks {apart:+.1f} µs apart, ± {bound:.1f} µs"


def _place(endpoint: Mapping[str, Any] | None) -> str:
    return "nobody" if endpoint is None else f"{endpoint['address']}:{endpoint['port']}"


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 where a run has no proof."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    records = [record for record in open_store(parser.parse_args(words).store).records() if record.outcome.ok]
    first = {record.arm: record for record in reversed(records)}
    unproved = [arm for arm, record in first.items() if not list(proof(record))]
    for arm in sorted(first):
        print("\n".join(proof(first[arm])))
    one_kernel = any((record.between or {}).get("one_boot") for record in records)
    if one_kernel:
        print("Both hosts run one kernel: these figures are not of two machines.")
    for arm in unproved:
        print(f"{arm}: no proof of a path", file=sys.stderr)
    return 1 if unproved or not first else 0


if __name__ == "__main__":
    sys.exit(main())
