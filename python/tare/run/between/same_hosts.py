"""A study continues on the hosts where it began: runs on other hosts are not comparable with the existing ones."""

from __future__ import annotations

from collections.abc import Iterable

from tare.errors import StudyError
from tare.record.run_record import RunRecord
from tare.sites import Site

Parts = tuple[tuple[str, ...], str]
"""Hosts of the SUT in the order of its nodes, and host of the client."""


def refuse_other_hosts(records: Iterable[RunRecord], site: Site, store: str) -> None:
    """Raise `StudyError` if good runs in the store come from other hosts than this site's.

    Runs on sites of other names are ignored: a store may hold blocks of several sites.
    """
    name, here = site.labels.get("site"), parts_of_site(site)
    other = f"or give the study another store than {store} (--store)"
    for record in (record for record in records if record.outcome.ok):
        if record.site is None and name is not None:
            raise StudyError(
                f"the runs in {store} were made on one machine alone, without --sites",
                hint=f"go on without --sites, {other}",
            )
        if record.site is not None and name is None:
            raise StudyError(
                f"the runs in {store} were made on the site {record.site}, not on this machine alone",
                hint=f"add --sites FILE --site {record.site}, {other}",
            )
        there = parts_of(record)
        if record.site == name and there is not None and there != here:
            raise StudyError(
                f"the site {name} has {_hosts(here)}, and the runs in {store} were made with {_hosts(there)}",
                hint=f"restore the sites file, {other}",
            )


def parts_of(record: RunRecord) -> Parts | None:
    """Hosts of a record, in the parts that the sites file gives them; `None` for a run on a single host."""
    between = record.between
    if between is None:
        return None
    if between.swapped:
        return (between.client,), between.sut
    nodes = tuple(node.on for node in (record.nodes or {}).values() if node.on)
    return nodes or (between.sut,), between.client


def parts_of_site(site: Site) -> Parts:
    """Hosts of a site, by part."""
    return tuple(host.name for host in site.sut_hosts), site.client.name


def _hosts(parts: Parts) -> str:
    servers, client = parts
    return f"the server on {' and '.join(servers)} and the client on {client}"
