"""Which study comes next: one that was broken off, else one of the kind that has had the fewest."""

from __future__ import annotations

from collections.abc import Sequence

from tare.calibrate.archive import Archive, Place
from tare.calibrate.machine import Identity


def next_place(archive: Archive, identity: Identity, kinds: Sequence[str]) -> Place:
    """Of these kinds, in their order where they are even. Numbers, and so seeds, go on from what is stored."""
    places = [place for place in archive.places(identity) if place.kind in kinds]
    for place in places:
        if archive.studied(place) is None:
            return place
    last = {kind: max((place.number for place in places if place.kind == kind), default=0) for kind in kinds}
    kind = min(kinds, key=lambda each: last[each])
    return archive.place(identity, kind, last[kind] + 1)
