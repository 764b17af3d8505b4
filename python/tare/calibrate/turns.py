"""Which study comes next: one that was broken off, else one of the kind that has had the fewest."""

from __future__ import annotations

from collections.abc import Sequence

from tare.calibrate.archive import Archive, Place
from tare.calibrate.machine import Identity
from tare.errors import StoreError
from tare.plan.expand import expand
from tare.store import open_store


def next_place(archive: Archive, identity: Identity, kinds: Sequence[str]) -> Place:
    """Of these kinds, in their order where they are even. Numbers, and so seeds, go on from what is stored."""
    places = [place for place in archive.places(identity) if place.kind in kinds]
    for place in places:
        if archive.studied(place) is None and _same_plan(archive, place):
            return place
    last = {kind: max((place.number for place in places if place.kind == kind), default=0) for kind in kinds}
    kind = min(kinds, key=lambda each: last[each])
    return archive.place(identity, kind, last[kind] + 1)


def _same_plan(archive: Archive, place: Place) -> bool:
    """Whether this tare would make the same runs: one that an older one left unfinished is left as it is."""
    try:
        begun = open_store(place.path).plan.digest
    except StoreError:
        return not (place.path / "store.sqlite").exists()
    return begun == expand(archive.kinds[place.kind].make(place.number)).digest
