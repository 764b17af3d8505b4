"""Identity of this machine, or pair of hosts, under which calibrations are stored."""

from __future__ import annotations

from docker import DockerClient

from tare.calibrate.summary import Identity, identity_of, pair_of
from tare.run.between.reaching import ReachedSite
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.process import boot_id


def identity_here(engine: DockerClient | None = None, layout: Layout | None = None) -> Identity:
    """Return this machine's identity. Without an engine, the machine's key is the same, the versions' is not."""
    host, layout = LocalHost(), layout or default_layout()
    facts = None if engine is None else engine_facts(engine, host)
    return identity_of(host_facts(host, data_path=str(layout.home)), facts)


def identity_between(reached: ReachedSite) -> Identity:
    """Return the identity of a site of two hosts."""
    site = reached.connection.site
    server, client = (
        identity_of(
            host_facts(each.host, data_path=str(each.layout.home)),
            None if each.engine is None else engine_facts(each.engine, each.host),
        )
        for each in (reached.reached[host.name] for host in (site.sut, site.client))
    )
    return pair_of(server, client, one_kernel=boot_id(site.sut) == boot_id(site.client))
