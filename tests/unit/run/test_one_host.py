"""A study whose client needs a host of its own is refused on one machine before anything is started."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.run.between.site import refuse_between
from tare.run.local import refuse_without_rights
from tare.sites import Site
from tare.sites.fake import FakeHost
from tare.study.catalogue import find_study
from tare.study.reading.load import load
from tare.study.registry import installed
from tare.study.values import NetworkKind

SITE = Site(FakeHost("db"), FakeHost("load"))


def test_it_says_which_arm_and_how_to_come_by_two_hosts() -> None:
    plan = expand(load(find_study("grambow-2018"), installed(), "pair-demo"))
    with pytest.raises(StudyError, match=r"the client of the arm bare-bare-.* needs its own host .*--sites"):
        refuse_without_rights(plan, None)
    refuse_between(plan, SITE)


@pytest.mark.parametrize(
    ("study", "scale", "why"),
    [
        ("percona-2016", "full", "the arm published-loopback .* from published-loopback"),
        ("bth-thesis", "demo", "3 nodes that each need their own host, and the site has one host"),
    ],
)
def test_between_two_hosts_the_first_arm_that_cannot_be_is_named(study: str, scale: str, why: str) -> None:
    with pytest.raises(StudyError, match=why):
        refuse_between(expand(load(find_study(study), installed(), scale)), SITE)


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (NetworkKind.PUBLISHED_ADDRESS, "publish a different one on each host: use `host`"),
        (NetworkKind.BRIDGE, "on `host` alone, not on `bridge`"),
    ],
)
def test_a_cluster_between_hosts_is_refused_with_the_reason_where_its_network_is_not_the_host_s(
    network: NetworkKind, why: str
) -> None:
    nodes = tuple(FakeHost(f"node-{number}") for number in (1, 2, 3))
    plan = expand(load(find_study("bth-thesis"), installed(), "pair-demo"))
    arms = tuple(
        arm.model_copy(
            update={
                "settings": arm.settings.model_copy(
                    update={"sut": arm.settings.sut.model_copy(update={"network": network})}
                )
            }
        )
        for arm in plan.study.arms
    )
    refused = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": arms})})
    with pytest.raises(StudyError, match=why):
        refuse_between(refused, Site(nodes[0], FakeHost("load"), nodes=nodes))
    refuse_between(plan, Site(nodes[0], FakeHost("load"), nodes=nodes))
