"""sites.yaml: the machines that studies may run on, by name. Reference: docs/reference/sites.md."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from tare.errors import StudyError
from tare.study.model import Name
from tare.study.reading.document import Document, KeyPath, Sort, read
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean
from tare.study.values import Strict

FORMAT = 1
LOCAL = "local"
_SORT = Sort("a sites file", "docs/reference/sites.md has an example", "name the file: tare run STUDY --sites FILE")
_DESTINATION = re.compile(r"(ssh://)?([^\s@/:-][^\s@/:]*@)?([A-Za-z0-9_[][^\s@/]*)")

_PORT = re.compile(r":\d+$")


def _destination(text: str) -> str:
    if ":" in text.removeprefix("ssh://").rpartition("@")[0]:
        raise ValueError("passwords are not supported: use a key, and an agent if the key has a passphrase")
    if not _DESTINATION.fullmatch(text):
        raise ValueError("a destination of ssh(1) is needed: user@host, ssh://user@host:port, or an alias")
    return text


def _address(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"expected an IPv4 or IPv6 address, got {text!r}") from None
    return text


def _interface(text: str) -> str:
    try:
        parsed = ipaddress.IPv4Interface(text)
    except ValueError:
        raise ValueError(f"expected an IPv4 address with its prefix length, got {text!r}") from None
    if "/" not in text or parsed.network.num_addresses < 4:
        raise ValueError(
            f"the prefix length of the measured network is missing, as in 192.168.7.102/24; got {text!r}"
        )
    return text


Absolute = Annotated[str, Field(pattern=r"^/[^\x00-\x1f\x7f]*$")]


class SshSpec(Strict):
    """A host that is reached by OpenSSH's client, including the user's settings in ~/.ssh/config."""

    ssh: Annotated[str, AfterValidator(_destination), Field(examples=["root@10.0.0.2"])]
    """Destination as ssh(1) takes it: `user@host`, `ssh://user@host:port`, or an alias."""
    name: Name | None = Field(default=None, examples=["db-1"])
    """Name of the host in reports; default: the host part of `ssh`."""
    address: Annotated[str, AfterValidator(_address)] | None = Field(default=None, examples=["192.168.7.2"])
    """Address at which the other hosts reach it on the measured network; default: the address that `ssh` connects
    to."""
    container_address: Annotated[str, AfterValidator(_interface)] | None = Field(
        default=None, examples=["192.168.7.102/24"]
    )
    """A free address on the measured network, with its prefix length, for a container on `macvlan` or `ipvlan`."""
    sudo: bool = Field(default=False, examples=[True])
    """Whether tare's agent is started through `sudo -n`, for a user who is not root."""
    home: Absolute | None = Field(default=None, examples=["/srv/tare"])
    """TARE_HOME on that host."""
    engine: Absolute = Field(default="/var/run/docker.sock", examples=["/run/podman/podman.sock"])
    """Socket of the container engine on that host."""
    ssh_config: Absolute | None = Field(default=None, examples=["/home/bench/ssh_config"])
    """Configuration file in place of ~/.ssh/config (ssh -F)."""

    @property
    def display_name(self) -> str:
        """`name`, or the host part of the destination."""
        if self.name is not None:
            return self.name
        host = self.ssh.removeprefix("ssh://").rpartition("@")[2]
        if self.ssh.startswith("ssh://"):
            host = _PORT.sub("", host)
        return re.sub(r"[^A-Za-z0-9._-]+", "-", host).strip("-")


def _kind(given: object) -> str | None:
    """Tag of the union's branch. It is not a key, so that errors name only keys."""
    if isinstance(given, str):
        return "<local>"
    return (
        "<ssh>" if isinstance(given, Mapping | SshSpec) else "<nodes>" if isinstance(given, list | tuple) else None
    )


def _which() -> Discriminator:
    wanted = "expected `local` or a mapping with `ssh`"
    return Discriminator(_kind, custom_error_type="which_host", custom_error_message=wanted)


HostSpec = Annotated[Annotated[Literal["local"], Tag("<local>")] | Annotated[SshSpec, Tag("<ssh>")], _which()]
"""`local`, or a mapping with `ssh`."""
Nodes = Annotated[tuple[HostSpec, ...], Field(min_length=1)]
SutSpec = Annotated[
    Annotated[Literal["local"], Tag("<local>")]
    | Annotated[SshSpec, Tag("<ssh>")]
    | Annotated[Nodes, Tag("<nodes>")],
    _which(),
]
"""One host, or one per node of a cluster."""


class SiteSpec(Strict):
    """The machines that one block runs on."""

    name: Annotated[Name, Field(examples=["rack-3"])]
    sut: Annotated[SutSpec, Field(examples=[{"ssh": "root@10.0.0.2"}])]
    """The host of the SUT; a list has one host per node."""
    client: Annotated[HostSpec, Field(examples=[{"ssh": "root@10.0.0.3"}])]
    swap: bool = Field(default=False, examples=[True])
    """Whether server and client swap hosts every other block; for two hosts that are alike."""

    @property
    def nodes(self) -> tuple[HostSpec, ...]:
        """The hosts of the SUT, in the order of its nodes."""
        return self.sut if isinstance(self.sut, tuple) else (self.sut,)

    @property
    def hosts(self) -> tuple[HostSpec, ...]:
        """Every host once: those of the SUT, then the client's."""
        return tuple(dict.fromkeys((*self.nodes, self.client)))


class SitesFile(Strict):
    """sites.yaml."""

    format: Annotated[Literal[1], Field(examples=[1])]
    sites: Annotated[
        tuple[SiteSpec, ...],
        Field(
            min_length=1,
            examples=[[{"name": "rack-3", "sut": {"ssh": "root@10.0.0.2"}, "client": {"ssh": "root@10.0.0.3"}}]],
        ),
    ]


@dataclass(frozen=True)
class Sites:
    """A checked sites file. `file`: its name in errors."""

    file: str
    sites: tuple[SiteSpec, ...]

    def chosen(self, name: str | None = None) -> SiteSpec:
        """The named site, or the first. Raises `StudyError` with the existing names."""
        if name is None:
            return self.sites[0]
        for site in self.sites:
            if site.name == name:
                return site
        hint = did_you_mean(name, [site.name for site in self.sites], kind="sites")
        raise StudyError(f"{self.file} has no site {name!r}", hint=hint)


def display_name(host: HostSpec) -> str:
    """Name of the host in ledgers and reports."""
    return host.display_name if isinstance(host, SshSpec) else LOCAL


def load_sites(path: Path) -> Sites:
    """Read the file at `path`. Raises `StudyError` naming file, line, column and key path."""
    return resolve(read(path, _SORT))


def resolve(document: Document) -> Sites:
    """The sites in `document`."""
    given = document.tree.get("format")
    if isinstance(given, int) and not isinstance(given, bool) and given > FORMAT:
        hint = f"this tare reads format {FORMAT}: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    if "provider" in document.tree:
        hint = f"tare sites create {document.file} makes its machines and writes their sites file"
        raise document.error(("provider",), "this is a machine plan, not a sites file", hint=hint)
    file = checked(SitesFile, document)
    seen: dict[str, int] = {}
    for n, site in enumerate(file.sites):
        if site.name in seen:
            what = f"a second site {site.name!r}"
            first = document.origin(("sites", seen[site.name], "name")).line
            raise document.error(("sites", n, "name"), what, hint=f"the first is on line {first}")
        seen[site.name] = n
        _check_hosts(document, ("sites", n), site)
    return Sites(document.file, file.sites)


def _check_hosts(document: Document, where: KeyPath, site: SiteSpec) -> None:
    """Check that names and hosts of a site correspond one to one, and that no two nodes share a host."""
    named: dict[str, tuple[HostSpec, KeyPath]] = {}
    for path, host in _hosts_with_paths(where, site):
        _check_address(document, path, host, alone=len(site.hosts) == 1)
        for other, first in named.values():
            _check_two(document, (path, host), (first, other))
        named.setdefault(display_name(host), (host, path))
    if site.swap and (len(site.nodes) != 1 or site.nodes[0] == site.client):
        hint = "leave swap out, or give one host to the server and another to the client"
        raise document.error((*where, "swap"), "only a server and a client on separate hosts can swap", hint=hint)


def _check_address(document: Document, path: KeyPath, host: HostSpec, *, alone: bool) -> None:
    """Check that other hosts of the site, if any, can reach the host at its address."""
    if not isinstance(host, SshSpec) or host.address is None or alone:
        return
    if why := leads_nowhere(host.address):
        hint = "give the address of the interface on the measured network, as in `address: 192.168.7.2`"
        raise document.error(
            (*path, "address"), f"no other host can be reached at {host.address}, {why}", hint=hint
        )


def leads_nowhere(address: str) -> str | None:
    """Why other hosts, wherever they are, cannot reach an address; `None` if nothing prevents it."""
    given = ipaddress.ip_address(address)
    if given.is_loopback:
        return "which is local to each host"
    if given.is_unspecified or given.is_multicast:
        return "which no host can have"
    if given.version == 6 and given.is_link_local:
        return "which is valid on one interface only (link-local)"
    return None


def _check_two(document: Document, later: tuple[KeyPath, HostSpec], first: tuple[KeyPath, HostSpec]) -> None:
    (path, host), (before, other) = later, first
    line = document.origin(before).line
    if host == other:
        if "client" not in path:
            what = f"two nodes on {display_name(host)}"
            raise document.error(path, what, hint=f"the first is on line {line}; give each node its own host")
        return
    if display_name(host) == display_name(other):
        hint = f"the other is on line {line}; write the same keys for one host, or give two hosts a name each"
        raise document.error(path, f"two hosts called {display_name(host)}", hint=hint)
    if not (isinstance(host, SshSpec) and isinstance(other, SshSpec)):
        return
    if (host.ssh, host.ssh_config) == (other.ssh, other.ssh_config):
        hint = f"the other is on line {line}; one host has one name"
        raise document.error(
            path, f"{host.ssh} is called {display_name(host)} here and {display_name(other)} there", hint=hint
        )
    if host.address is not None and other.address is not None and _same_address(host.address, other.address):
        hint = f"the other is on line {line}"
        raise document.error((*path, "address"), f"two hosts with the address {host.address}", hint=hint)


def _same_address(one: str, other: str) -> bool:
    """Whether two addresses are equal, however they are written: IPv6 has several notations."""
    return ipaddress.ip_address(one) == ipaddress.ip_address(other)


def _hosts_with_paths(where: KeyPath, site: SiteSpec) -> Iterator[tuple[KeyPath, HostSpec]]:
    if isinstance(site.sut, tuple):
        yield from (((*where, "sut", n), host) for n, host in enumerate(site.sut))
    else:
        yield (*where, "sut"), site.sut
    yield (*where, "client"), site.client
