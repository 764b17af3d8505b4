"""The sentence on netfilter of reports with a bare baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.report.words.loopback import on_loopback

ENGINE = {
    "netfilter_conntrack": True, "netfilter_nat_output": 1, "netfilter_nat_prerouting": 1, "netfilter_rules": 24,
}  # fmt: skip
NONE = dict.fromkeys(ENGINE, 0) | {"netfilter_conntrack": False}
UNREAD = {"tare_is_root": False}
ARMS = ("bare", "bridge")


def sentences(*hosts: dict[str, Any], sut: dict[str, Any] | None = None) -> list[str]:
    placed = {"sut": {"deployment": "bare", "network": "host", "database": "redis", **(sut or {})}}
    records = [
        record.model_copy(update={"host": replace(record.host, **hosts[n % len(hosts)]), "settings": placed})
        for n, record in enumerate(one for one in synthetic.records(ARMS, 4) if one.arm == "bare")
    ]
    return list(on_loopback(synthetic.study(ARMS), records))


def test_a_bare_baseline_beside_an_engine_is_said_to_pay_for_it() -> None:
    (sentence,) = sentences(ENGINE)
    assert "(connection tracking, 1 and 1 of 24 rules in nat OUTPUT and PREROUTING)" in sentence
    assert "`sut.network: untracked`" in sentence
    assert sentences(NONE) == ["Netfilter does not see the bare baseline's connections on the host's loopback."]
    assert "unknown" in sentences(UNREAD)[0]
    assert sentences(ENGINE, NONE)[0].startswith(
        "Between runs of the bare baseline, netfilter on the host's loopback"
    )


def test_other_containers_of_the_day_are_no_change() -> None:
    (sentence,) = sentences(ENGINE, ENGINE | {"netfilter_rules": 45})
    assert "(connection tracking, 1 and 1 of 24 to 45 rules in nat OUTPUT and PREROUTING)" in sentence


def test_a_number_of_rules_that_was_not_read_is_not_zero() -> None:
    (sentence,) = sentences(ENGINE | {"netfilter_rules": None})
    assert "(connection tracking, 1 and 1 in nat OUTPUT and PREROUTING)" in sentence


@pytest.mark.parametrize("sut", [{"deployment": "container"}, {"network": "untracked"}, {"database": None}])
def test_another_baseline_has_no_such_sentence(sut: dict[str, Any]) -> None:
    assert sentences(ENGINE, sut=sut) == []


def test_records_of_an_older_tare_have_none() -> None:
    assert sentences({}) == []
