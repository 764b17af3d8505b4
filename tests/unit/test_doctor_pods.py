"""The doctor makes each piece of a pod in namespaces of its own, and says which work and why one does not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from tare.doctor import Line, Verdict
from tare.doctor.pods import pod_lines
from tare.errors import RunFailed
from tare.sites import Completed
from tare.sites.fake import Answer, FakeHost

ADDED = json.dumps({"cniVersion": "1.0.0", "ips": [{"address": "10.231.0.2/29"}]}).encode()


class Machine(FakeHost):
    """Whose namespaces are told apart by their holders; `inside`: what programs in them answer, by their name."""

    def __init__(self, inside: dict[str, Answer], *, root: bool = True, plugins: Sequence[str] = ()) -> None:
        super().__init__()
        self.answers: dict[tuple[str, ...], Answer] = {
            ("id", "-u"): Completed((), 0, b"0\n" if root else b"1000\n"),
            ("mktemp",): Completed((), 0, b"/tmp/x\n"),
            ("test", "-x"): Completed((), 1),
            ("nsenter",): self._inside,
            **{("test", "-x", f"/usr/lib/cni/{plugin}"): Completed((), 0) for plugin in plugins},
        }
        self._answers_inside = inside

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        pids = {place: place.split("/")[2] for place in places if place.endswith("/net")}
        return {place: f"net:[{1 if pid == 'self' else pid}]" for place, pid in pids.items()}

    def _inside(self, argv: Sequence[str], stdin: bytes) -> Completed:
        answer = self._answers_inside.get(argv[2].rpartition("/")[2], Completed((), 0))
        if isinstance(answer, Exception):
            raise answer
        return answer(argv, stdin) if callable(answer) else answer


def lines(machine: Machine) -> dict[str, Line]:
    listed = {line.name: line for line in pod_lines(machine)}
    started = [call for call in machine.ran() if call[:2] == ("unshare", "--net")]
    ended = [call for call in machine.ran() if call[4:5] == ("send",)]
    made = [call for call in machine.ran() if call[0] == "mktemp"]
    assert len(started) == len(ended)
    assert machine.ran().count(("rm", "-rf", "--one-file-system", "/tmp/x")) == len(made)
    return listed


ALL = ("bridge", "macvlan", "host-local", "portmap")
SHOWN = Completed((), 0, b"2: eth0    inet 10.231.0.2/29 scope global eth0\n")


def ip(argv: Sequence[str], _stdin: bytes) -> Completed:
    return SHOWN if "show" in argv and "address" in argv and "1001" in argv[1] else Completed((), 0)


@pytest.mark.parametrize(
    ("answer", "verdict", "message"),
    [
        (Completed((), 0, ADDED), Verdict.OK, "/usr/lib/cni: works, a namespace was attached"),
        (Completed((), 1, b'{"code": 999, "msg": "unknown device type"}'), Verdict.MISSING,
         "does not work: the CNI plug-in bridge does not attach"),
        (RunFailed("bridge cannot be run"), Verdict.MISSING, "does not work: bridge cannot be run"),
    ],
)  # fmt: skip
def test_a_plugin_works_when_a_namespace_has_its_address(answer: Answer, verdict: Verdict, message: str) -> None:
    line = lines(Machine({"bridge": answer, "ip": ip}, plugins=ALL))["CNI bridge"]
    assert line.verdict is verdict
    assert line.found.startswith(message)


def test_an_attached_namespace_without_its_address_does_not_work() -> None:
    def another(argv: Sequence[str], stdin: bytes) -> Completed:
        done = ip(argv, stdin)
        return Completed(done.argv, done.code, done.stdout.replace(b"231.0.2/", b"231.0.20/"))

    line = lines(Machine({"bridge": Completed((), 0, ADDED), "ip": another}, plugins=ALL))["CNI bridge"]
    assert line.verdict is Verdict.MISSING
    assert line.found == "does not work: the namespace was attached, but has not its address 10.231.0.2"


def test_what_is_not_installed_is_no_fault_and_makes_nothing() -> None:
    machine = Machine({}, plugins=("bridge",))
    line = lines(machine)["CNI bridge"]
    assert line.verdict is Verdict.OK
    assert line.found.startswith("not installed: the CNI plug-in host-local is in none of /opt/cni/bin")


def test_rules_work_when_the_kernel_tells_them() -> None:
    put: dict[str, str] = {}

    def restore(_argv: Sequence[str], stdin: bytes) -> Completed:
        put["nat"] = stdin.decode().partition("COMMIT")[0]
        return Completed((), 0)

    def save(argv: Sequence[str], _stdin: bytes) -> Completed:
        return Completed((), 0, put["nat"].encode() if argv[-1] == "nat" else b"")

    inside: dict[str, Answer] = {
        "iptables": Completed((), 0, b"iptables v1.8.9 (nf_tables)\n"),
        "iptables-restore": restore,
        "iptables-save": save,
        "nft": RunFailed("nft cannot be run"),
    }
    listed = lines(Machine(inside))
    assert listed["Services by iptables"].found == (
        "iptables v1.8.9 (nf_tables): works, the kernel held 58 rules of 10 Services"
    )
    assert listed["Services by nftables"] == Line(
        "Services by nftables",
        Verdict.MISSING,
        "does not work: rules as kube-proxy's mode nftables writes them need nft, which is missing",
        "only needed by arms with `sut.pod`: apt-get install nftables",
    )


def test_without_root_that_is_said_and_nothing_is_started() -> None:
    machine = Machine({}, root=False)
    (line,) = lines(machine).values()
    assert (line.name, line.verdict) == ("pods", Verdict.MISSING)
    assert machine.ran() == [("id", "-u")]
