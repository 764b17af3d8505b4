"""What bare has of its own host: compared, and told from what a container has by nature."""

from __future__ import annotations

from tests.unit.run.parity.test_compare import SERVER, found, record, study

from tare.run.parity.compare import changed_during


def test_shared_memory_is_the_nature_of_a_container_and_of_no_two_containers() -> None:
    bare, small = record("bare", sut={"shm_bytes": 12 << 30}), record("bridge", sut={"shm_bytes": 64 << 20})
    assert found(bare, small) == []
    other = record("host", sut={"shm_bytes": 1 << 30})
    assert found(other, small) == ["SUT: size of /dev/shm: 1073741824 in host, 67108864 in bridge"]
    assert found(other, small, study(("sut.limits.shm",))) == []
    assert found(record("host"), small) == []  # of an older tare, which did not read it


def test_netfilter_on_the_loopback_is_compared_where_it_was_read_and_not_against_what_the_run_adds() -> None:
    facts = {"netfilter_conntrack": True, "netfilter_nat_output": 1, "netfilter_nat_prerouting": 1}
    one, other = record("bare", host=facts), record("bridge", host=facts | {"netfilter_nat_output": 0})
    assert found(one, other) == ["host: rules in nat OUTPUT: some in bare, none in bridge"]
    assert found(one, record("bridge", host=facts | {"netfilter_nat_prerouting": 7})) == []
    assert found(one, record("bridge", host=dict.fromkeys(facts))) == []
    assert changed_during(one, other, SERVER) == ()
    assert changed_during(one, record("bare", host=facts | {"netfilter_conntrack": False}), SERVER) != ()
