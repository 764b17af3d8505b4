"""tare's data about each rental: TARE_HOME/rentals/ID with plan, login key and known hosts, and one ledger for all.

A rental's folder is complete before the first resource is requested, and removed when the last one is gone.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from tare.errors import StoreError, StudyError
from tare.sites import Process
from tare.sites.cloud import Cost, Offer, Resource, Tags
from tare.sites.cloud.blueprint import HostPlace, places, resource_name
from tare.sites.cloud.keys import SshKey, new_key
from tare.sites.cloud.plan import MachinePlan
from tare.sites.file import SshSpec
from tare.sites.layout import Layout, make_home
from tare.sites.ledger import Made
from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive, from_ident, to_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.suggest import did_you_mean
from tare.study.values import Strict

_KEPT, _LOGIN, _KNOWN, _CONFIG, _WHOLE = "rental.json", "login", "known_hosts", "ssh_config", "whole"
_SSH_CONFIG = """\
Host *
  IdentityFile "{folder}/login"
  IdentitiesOnly yes
  UserKnownHostsFile "{folder}/known_hosts"
  UpdateHostKeys no
  Include ~/.ssh/config
"""


class _File(Strict):
    """rental.json. `owner`: the tare process that made it. `sites_file`: absolute path."""

    format: Literal[1] = 1
    plan: MachinePlan
    image: str
    image_name: str
    zone: str | None
    external_network: str | None
    usd_hour: float | None
    made_at: datetime
    end_of_life: datetime
    made_by: str
    sites_file: str
    owner: str


@dataclass(frozen=True)
class Rental:
    """Machines that one `tare sites create` has made or is making. `id`: the plan's name and some random digits."""

    id: str
    folder: Path
    about: _File

    @property
    def plan(self) -> MachinePlan:
        """The plan of the rental."""
        return self.about.plan

    @property
    def tags(self) -> Tags:
        """Tags of each of its resources."""
        about = self.about
        return Tags(self.id, about.plan.name, about.plan.study, about.end_of_life, about.made_by)

    @property
    def offer(self) -> Offer:
        """The provider's offer for the plan, with only the hourly cost."""
        about = self.about
        cost = Cost(about.usd_hour)
        return Offer(about.image, about.image_name, about.zone, cost, about.external_network)

    @property
    def login(self) -> str:
        """The public key with which tare logs in."""
        return (self.folder / f"{_LOGIN}.pub").read_text(encoding="utf-8").strip()

    @property
    def user(self) -> Process | None:
        """The tare process that is making its machines now; `None` if there is none."""
        owner = from_ident(self.about.owner)
        return owner if alive(LocalHost(), owner) and owner != own_process() else None

    @property
    def whole(self) -> bool:
        """Whether its creation was finished."""
        return (self.folder / _WHOLE).exists()

    def finish(self) -> None:
        """Record that its creation is finished."""
        (self.folder / _WHOLE).touch()

    @property
    def asked_at(self) -> float:
        """Time of the last request for a resource, in seconds since the epoch."""
        return (self.folder / _KEPT).stat().st_mtime

    def asking(self) -> None:
        """Record that a resource is requested now."""
        os.utime(self.folder / _KEPT)

    def trust(self, host_keys: Mapping[str, SshKey], addresses: Mapping[str, str]) -> None:
        """Make the hosts' keys known to ssh(1). Arguments: name of the host → its key, and → its address."""
        lines = [f"{addresses[host]} {key.public}\n" for host, key in host_keys.items()]
        _keep(self.folder / _KNOWN, "".join(lines), 0o600)

    def hosts(self, machines: Mapping[str, Resource]) -> tuple[tuple[HostPlace, SshSpec], ...]:
        """How each host is reached. `machines`: name of the resource → resource, for all hosts."""
        return tuple(
            (place, self._spec(place, machines[resource_name(self.id, place.host)])) for place in places(self.plan)
        )

    def _spec(self, place: HostPlace, machine: Resource) -> SshSpec:
        return SshSpec(
            ssh=f"{self.plan.user}@{reached_by(self.plan, machine)}",
            name=place.host,
            address=machine.private_address,
            sudo=self.plan.user != "root",
            ssh_config=str(self.folder / _CONFIG),
        )


def reached_by(plan: MachinePlan, machine: Resource) -> str | None:
    """Address at which tare connects to a machine; `None` if it has none."""
    return machine.public_address if plan.address == "public" else machine.private_address


@dataclass(frozen=True)
class Rentals:
    """All rentals of this TARE_HOME."""

    layout: Layout

    @property
    def folder(self) -> Path:
        """Folder of all rentals."""
        return self.layout.rentals

    @cached_property
    def ledger(self) -> SqliteLedger:
        """Ledger of the resources of all rentals; `host` of a resource is the ID of its rental."""
        return SqliteLedger(self.folder / "ledger.sqlite", home=self.layout.home)

    def entries(self, rental: str) -> tuple[Made, ...]:
        """Ledger entries of one rental, in the order of removal."""
        return tuple(entry for entry in self.ledger.entries() if entry.host == rental)

    def begin(self, plan: MachinePlan, offer: Offer, *, sites_file: Path, made_by: str) -> Rental:
        """Make a rental's folder with its login key, before anything else.

        Raises `StudyError` if the name is taken.
        """
        if (taken := next((each for each in self.all() if each.plan.name == plan.name), None)) is not None:
            raise StudyError(
                f"machines of the plan {plan.name} exist already: {taken.id}",
                hint=f"tare sites destroy {taken.id}, or give this plan another name",
            )
        made_at = datetime.now(UTC).replace(microsecond=0)
        about = _File(
            plan=plan,
            image=offer.image,
            image_name=offer.image_name,
            zone=offer.zone,
            external_network=offer.external_network,
            usd_hour=offer.cost.usd_hour,
            made_at=made_at,
            end_of_life=made_at + timedelta(hours=plan.lifetime_h),
            made_by=made_by,
            sites_file=str(sites_file.absolute()),
            owner=to_ident(own_process()),
        )
        rental = Rental(name := f"{plan.name}-{secrets.token_hex(3)}", self.folder / name, about)
        make_home(self.layout.home)
        self.folder.mkdir(exist_ok=True, mode=0o700)
        draft = self.folder / f".{name}"
        draft.mkdir(mode=0o700)
        key = new_key()
        _keep(draft / _LOGIN, key.private, 0o600)
        _keep(draft / f"{_LOGIN}.pub", f"{key.public}\n", 0o644)
        _keep(draft / _CONFIG, _SSH_CONFIG.format(folder=rental.folder), 0o644)
        _keep(draft / _KEPT, about.model_dump_json(indent=1) + "\n", 0o644)
        draft.rename(rental.folder)
        _sync(self.folder)
        return rental

    def all(self) -> tuple[Rental, ...]:
        """All rentals, the oldest first. Raises `StoreError` if one cannot be read."""
        if not self.folder.is_dir():
            return ()
        kept = [_read(path) for path in self.folder.glob(f"[!.]*/{_KEPT}")]
        return tuple(sorted(kept, key=lambda rental: (rental.about.made_at, rental.id)))

    def named(self, name: str) -> Rental:
        """The rental with this ID or plan name. Raises `StudyError` if there is none."""
        rentals = self.all()
        for rental in rentals:
            if name in (rental.id, rental.plan.name):
                return rental
        hint = did_you_mean(name, [rental.id for rental in rentals], kind="rentals")
        raise StudyError(
            f"this tare knows no machines called {name!r}", hint=hint or "`tare sites list` lists them"
        )

    def forget(self, rental: Rental) -> bool:
        """Delete a rental's folder and keys unless the ledger still lists a resource.

        Return whether it was deleted.
        """
        if self.entries(rental.id):
            return False
        shutil.rmtree(rental.folder, ignore_errors=True)
        return True


def _read(path: Path) -> Rental:
    try:
        about = _File.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        hint = (
            "was it written by a newer tare? Else look for its machines with the provider, by the tag tare-rental"
        )
        raise StoreError(f"{path} cannot be read", hint=hint) from error
    return Rental(path.parent.name, path.parent, about)


def sites_text(rental: Rental, hosts: Sequence[tuple[HostPlace, SshSpec]]) -> str:
    """Text of sites.yaml: docs/reference/sites.md."""
    plan = rental.plan
    until = f"{rental.about.end_of_life:%Y-%m-%d %H:%M} UTC"
    lines = [f"{heading(rental)}, from {plan.provider} in {plan.region}, until {until}.", "format: 1", "sites:"]
    for site in dict.fromkeys(place.site for place, _ in hosts):
        nodes = [_flow(spec) for place, spec in hosts if place.site == site and place.node is not None]
        client = next(_flow(spec) for place, spec in hosts if place.site == site and place.node is None)
        lines += [f"  - name: {site}"]
        lines += (
            [f"    sut: {nodes[0]}"] if len(nodes) == 1 else ["    sut:", *(f"      - {each}" for each in nodes)]
        )
        lines += [f"    client: {client}"]
    return "\n".join(lines) + "\n"


def heading(rental: Rental) -> str:
    """First words of the sites file that belongs to a rental."""
    return f"# Machines of {rental.id}"


def _flow(spec: SshSpec) -> str:
    given = spec.model_dump(exclude_defaults=True)
    return "{" + ", ".join(f"{key}: {_plain(value)}" for key, value in given.items()) + "}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if all(letter.isalnum() or letter in "@./_-" for letter in text) else f"'{text}'"


def _keep(path: Path, text: str, mode: int) -> None:
    """Write a file completely or not at all, with its mode from its creation, and sync it to disk."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(made)
    draft.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
