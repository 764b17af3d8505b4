"""Every protocol by name, and what follows from a study's choice."""

from __future__ import annotations

from collections.abc import Mapping

from tare.protocols import RunProtocol
from tare.protocols.duet import Duet
from tare.protocols.fixed import (
    AsImported,
    Buckets,
    Fixed,
)
from tare.protocols.interleave import Interleave
from tare.protocols.rotate import Rotate
from tare.protocols.stopping import Rule
from tare.study.model import Study
from tare.study.protocol_spec import FixedSpec

IMPORTED = "imported"
"""The protocol of results that others measured: no study file can ask for it."""

PROTOCOLS: Mapping[str, RunProtocol] = {
    "interleave": Interleave(),
    "duet": Duet(),
    "rotate": Rotate(),
    "fixed": Fixed(),
    "buckets": Buckets(),
    IMPORTED: AsImported(),
}


def as_published(study: Study) -> bool:
    """Whether a study is judged as in publications, by intervals that do not hold; not if it pairs runs."""
    protocol = study.protocol
    paired = isinstance(protocol, FixedSpec) and protocol.paired
    return PROTOCOLS[protocol.name].published_baseline and not paired


def runs_of_blocks(study: Study, blocks: int) -> int:
    """Return the number of runs in this number of blocks."""
    return blocks * (2 if PROTOCOLS[study.protocol.name].at_once else len(study.arms))


def rule_of(study: Study) -> Rule:
    """Return the rule by which a study ends, with the number of blocks that give every arm one comparison."""
    others = len(study.arms) - 1 if PROTOCOLS[study.protocol.name].at_once else 1
    return Rule.of(study.protocol, max(1, others))
