"""The names that a study may use, as one value, so that a study can be read without the plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.workloads import Parameters


@dataclass(frozen=True)
class Registry:
    """Names known to the plug-ins, and the little of them that reading a study needs.

    `deployments`: name → whether a task of it can have a network namespace of its own.
    `workloads`: name → model of its parameters. `recipes`: images that can be named without a prefix.
    """

    databases: frozenset[str]
    workloads: Mapping[str, type[Parameters]]
    deployments: Mapping[str, bool]
    protocols: frozenset[str]
    recipes: frozenset[str]


FAKE = "fake"
"""The name under which each kind keeps its implementation for tests: no study may measure with it."""


def installed() -> Registry:
    """What this installation has. Imported here, as plug-ins may import the study's words."""
    from tare.databases import DATABASES
    from tare.deployments import DEPLOYMENTS
    from tare.protocols import PROTOCOLS
    from tare.study.catalogue import recipes
    from tare.workloads import WORKLOADS

    return Registry(
        databases=frozenset(DATABASES) - {FAKE},
        workloads={name: workload.parameters for name, workload in WORKLOADS.items() if name != FAKE},
        deployments={name: deployment.isolates_network for name, deployment in DEPLOYMENTS.items() if name != FAKE},
        protocols=frozenset(PROTOCOLS) - {FAKE},
        recipes=frozenset(recipes()),
    )
