"""Differences between releases of Cassandra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.databases.cassandra import defaults_3_11 as cassandra_defaults
from tare.databases.cassandra import defaults_5_0 as cassandra_5_defaults
from tare.databases.option_file import Setting


@dataclass(frozen=True)
class Release:
    """A release: its shipped defaults, and what tare must set or query differently.

    `shipped`: keys of cassandra.yaml that a study may change. `auto`: keys without a value, as the server derives
    one from its heap. `own`: keys that tare sets and other releases do not know. `agent`: jar of the Java agent
    that measures objects. `young`: whether tare sets the size of the young generation. `has_settings_table`:
    whether the server has a table of its settings in force.
    """

    shipped: Mapping[str, Setting]
    auto: frozenset[str]
    jvm: tuple[str, ...]
    agent: str
    young: bool
    has_settings_table: bool
    own: Mapping[str, object] = field(default_factory=dict)


V3_11 = Release(
    shipped=cassandra_defaults.SHIPPED,
    auto=cassandra_defaults.AUTO,
    jvm=cassandra_defaults.JVM,
    agent="jamm-0.3.0.jar",
    young=True,
    has_settings_table=False,
    own={"start_rpc": False},
)
V5_0 = Release(
    shipped=cassandra_5_defaults.SHIPPED,
    auto=cassandra_5_defaults.AUTO,
    jvm=cassandra_5_defaults.JVM,
    agent="jamm-0.4.0.jar",
    young=False,
    has_settings_table=True,
)
