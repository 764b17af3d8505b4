"""A study that was broken off goes on on its hosts, or says at once that it would not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.record.parts import between

from tare.errors import StudyError
from tare.run.between.same_hosts import refuse_other_hosts
from tare.sites import Site
from tare.sites.fake import FakeHost


def made(site: str | None = "rack", *, sut: str = "db", client: str = "load", ok: bool = True, **more: Any) -> Any:
    hosts = None if site is None else between(sut, client, **more)
    return SimpleNamespace(site=site, between=hosts, nodes=None, outcome=SimpleNamespace(ok=ok))


def rack(sut: str = "db", client: str = "load", name: str | None = "rack", nodes: tuple[str, ...] = ()) -> Site:
    labels = {} if name is None else {"site": name}
    return Site(FakeHost(sut), FakeHost(client), labels=labels, nodes=tuple(FakeHost(each) for each in nodes))


@pytest.mark.parametrize(
    ("record", "site"),
    [
        (made(), rack()),
        (made(sut="load", client="db", swapped=True), rack()),
        (made(None), rack(name=None)),
        (made("another", sut="x"), rack()),
        (made(sut="x", ok=False), rack()),
    ],
    ids=["the same", "swapped", "one machine", "another site", "a failed attempt"],
)
def test_a_study_goes_on_on_its_hosts(record: Any, site: Site) -> None:
    refuse_other_hosts([record], site, "store")


def test_a_cluster_goes_on_on_its_nodes_hosts() -> None:
    ring = made(sut="a")
    ring.nodes = {"sut-1": SimpleNamespace(on="a"), "sut-2": SimpleNamespace(on="b")}
    refuse_other_hosts([ring], rack("a", nodes=("a", "b")), "store")
    with pytest.raises(
        StudyError, match=r"the server on b and a and the client on load, and the runs .* on a and b"
    ):
        refuse_other_hosts([ring], rack("b", nodes=("b", "a")), "store")


@pytest.mark.parametrize(
    ("record", "site", "sentence", "hint"),
    [
        (
            made(),
            rack("load", "db"),
            "the site rack has the server on load and the client on db, and the runs in store were made with",
            "restore the sites file, or give the study another store",
        ),
        (
            made(),
            rack(name=None),
            "were made on the site rack, not on this machine",
            "add --sites FILE --site rack",
        ),
        (made(None), rack(), "were made on one machine alone, without --sites", "go on without --sites"),
    ],
    ids=["exchanged", "without --sites", "with --sites"],
)
def test_other_hosts_are_refused_before_a_run(record: Any, site: Site, sentence: str, hint: str) -> None:
    with pytest.raises(StudyError) as raised:
        refuse_other_hosts([record], site, "store")
    assert sentence in str(raised.value)
    assert hint in str(raised.value.hint)
