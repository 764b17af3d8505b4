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

SITE = Site(FakeHost("db"), FakeHost("load"))


def test_it_says_which_arm_and_how_to_come_by_two_hosts() -> None:
    plan = expand(load(find_study("grambow-2018"), installed(), "pair-demo"))
    with pytest.raises(StudyError, match=r"the client of the arm bare-bare-.* needs a host of its own .*--sites"):
        refuse_without_rights(plan, None)
    refuse_between(plan, SITE)


@pytest.mark.parametrize(
    ("study", "scale", "why"),
    [
        ("percona-2016", "demo", "the arm published-loopback .* from published-loopback"),
        ("bth-thesis", "demo", "3 nodes, each of which needs a host of its own, and the site has one host"),
    ],
)
def test_between_two_hosts_the_first_arm_that_cannot_be_is_named(study: str, scale: str, why: str) -> None:
    with pytest.raises(StudyError, match=why):
        refuse_between(expand(load(find_study(study), installed(), scale)), SITE)
