"""What differs from one release of Cassandra to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.databases.cassandra import defaults_3_11 as cassandra_defaults
from tare.databases.cassandra import defaults_5_0 as cassandra_5_defaults
from tare.databases.option_file import Setting


@dataclass(frozen=True)
class Release:
    """What it is shipped with, and what must be set or asked otherwise.

    `shipped`: keys of cassandra.yaml that a study may change; `auto`: those without a value, which the server then
    takes from its heap; `own`: keys of tare's that other releases do not know. `agent`: the jar that measures
    objects. `young`: whether the size of the young generation is set. `tells_settings`: whether
    it has a table of the settings in force.
    """

    shipped: Mapping[str, Setting]
    auto: frozenset[str]
    jvm: tuple[str, ...]
    agent: str
    young: bool
    tells_settings: bool
    own: Mapping[str, object] = field(default_factory=dict)


V3_11 = Release(
    shipped=cassandra_defaults.SHIPPED,
    auto=cassandra_defaults.AUTO,
    jvm=cassandra_defaults.JVM,
    agent="jamm-0.3.0.jar",
    young=True,
    tells_settings=False,
    own={"start_rpc": False},
)
V5_0 = Release(
    shipped=cassandra_5_defaults.SHIPPED,
    auto=cassandra_5_defaults.AUTO,
    jvm=cassandra_5_defaults.JVM,
    agent="jamm-0.4.0.jar",
    young=False,
    tells_settings=True,
)
