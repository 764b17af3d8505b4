"""A small OpenStack on loopback, as its API reference describes it: identity, compute, network, image, volumes.

It keeps what was made in dictionaries and refuses what the reference says is refused: removing a port in use, a
quota that is reached, a token that it did not give. `Stack.sent` has what openstacksdk sent to it.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

USER, PASSWORD, REGION = "bench", "CanaryPasswordOfTheTestsThatNobodyMayWrite", "RegionOne"
Made = dict[str, Any]
Answer = tuple[int, Any]
NETWORK, EXTERNAL = "net-private", "net-public"
CLOUDS_YAML = """\
clouds:
  test:
    region_name: RegionOne
    auth:
      auth_url: "{url}/identity/v3"
      username: bench
      password: {password}
      project_name: demo
      user_domain_id: default
      project_domain_id: default
"""
SERVICES = {
    "identity": "identity/v3", "compute": "compute/v2.1", "network": "network",
    "image": "image", "block-storage": "volume/v3/demo",
}  # fmt: skip


@dataclass
class Stack:
    """`faults`: "METHOD /path" (its beginning) → status and words, from which request on (counted from 0)."""

    url: str = ""
    servers: Made = field(default_factory=dict)
    groups: Made = field(default_factory=dict)
    ports: Made = field(default_factory=dict)
    addresses: Made = field(default_factory=dict)
    firewalls: Made = field(default_factory=dict)
    rules: Made = field(default_factory=dict)
    volumes: Made = field(default_factory=dict)
    faults: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    server_status: str = "ACTIVE"
    token: str = "token-of-the-tests"
    accepts: Callable[[str | None], bool] | None = None
    """Whether a token is good, where another than this server gives them."""
    before: Callable[[str, str], None] | None = None

    def left(self) -> list[str]:
        """All that tare can have made."""
        made = (self.servers, self.groups, self.ports, self.addresses, self.firewalls, self.volumes)
        return [each["name"] if "name" in each else each["id"] for things in made for each in things.values()]

    def bodies(self, path: str) -> list[Any]:
        """Of all requests that made something there."""
        return [body for method, where, body in self.sent if method == "POST" and where == path]

    def answer(
        self, method: str, path: str, body: Any, token: str | None, query: Mapping[str, list[str]]
    ) -> Answer:
        """Status and JSON; `None` for no content."""
        earlier = sum((method, path) == each[:2] for each in self.sent)
        self.sent.append((method, path, body))
        if self.before is not None:
            self.before(method, path)
        for where, (status, words, after) in self.faults.items():
            if f"{method} {path}".startswith(where) and earlier >= after:
                return status, {"error": {"message": words, "code": status}}
        if path.startswith("/identity"):
            return self._identity(method, path, body)
        if self._discovery(path) is not None:
            return 200, self._discovery(path)
        if not (token == self.token if self.accepts is None else self.accepts(token)):
            return 401, {"error": {"message": "The request you have made requires authentication.", "code": 401}}
        for pattern, call in ROUTES:
            if match := re.fullmatch(pattern, f"{method} {path}"):
                return call(self, *match.groups(), **({"body": body} if method == "POST" else {"query": query}))
        return 404, {"error": {"message": f"no {method} {path}", "code": 404}}

    def _identity(self, method: str, path: str, body: Any) -> Answer:
        if method == "GET":
            version = {
                "id": "v3.14",
                "status": "stable",
                "links": [{"rel": "self", "href": f"{self.url}/identity/v3/"}],
            }
            return 200, {"version": version}
        given = body["auth"]["identity"]["password"]["user"]
        if (given["name"], given["password"]) != (USER, PASSWORD):
            words = "The request you have made requires authentication."
            return 401, {"error": {"message": words, "code": 401, "title": "Unauthorized"}}
        catalog = [self._service(kind, place) for kind, place in SERVICES.items()]
        project = {"id": "demo", "name": "demo", "domain": {"id": "default", "name": "Default"}}
        user = {"id": USER, "name": USER, "domain": {"id": "default", "name": "Default"}}
        expires = "2099-01-01T00:00:00.000000Z"
        token = {"catalog": catalog, "project": project, "user": user, "expires_at": expires, "issued_at": expires}
        return 201, {"token": {**token, "methods": ["password"], "roles": []}}

    def _service(self, kind: str, place: str) -> dict[str, Any]:
        where = {"region": REGION, "region_id": REGION, "url": f"{self.url}/{place}"}
        return {"type": kind, "name": kind, "id": kind, "endpoints": [{"interface": "public", "id": kind, **where}]}

    def _discovery(self, path: str) -> Any:
        def links(there: str) -> list[dict[str, str]]:
            return [{"rel": "self", "href": f"{self.url}/{there}"}]

        compute = {"id": "v2.1", "status": "CURRENT", "version": "2.96", "min_version": "2.1"}
        volume = {"id": "v3.0", "status": "CURRENT", "version": "3.70", "min_version": "3.0"}
        known: dict[str, Any] = {
            "/compute/v2.1": {"version": {**compute, "links": links("compute/v2.1/")}},
            "/compute": {"versions": [{**compute, "links": links("compute/v2.1/")}]},
            "/network": {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links("network/v2.0/")}]},
            "/image": {"versions": [{"id": "v2.16", "status": "CURRENT", "links": links("image/v2/")}]},
            "/volume/v3": {"versions": [{**volume, "links": links("volume/v3/")}]},
            "/volume": {"versions": [{**volume, "links": links("volume/v3/")}]},
        }
        return known.get(path.rstrip("/"))


def _listing(kind: str, attribute: str) -> Callable[..., Answer]:
    def call(stack: Stack, *, query: Mapping[str, list[str]]) -> Answer:
        return 200, {kind: list(getattr(stack, attribute).values())}

    return call


def _fixed(kind: str, *things: dict[str, Any]) -> Callable[..., Answer]:
    """By name where that is asked for, as OpenStack's lists filter."""

    def call(stack: Stack, *, query: Mapping[str, list[str]]) -> Answer:
        external = query.get("router:external")
        shown = [
            each
            for each in things
            if each["name"] in query.get("name", [each["name"]])
            and (external is None or str(each.get("router:external")) == external[0])
        ]
        return 200, {kind: shown}

    return call


def _missing(stack: Stack, ident: str, *, query: Mapping[str, list[str]]) -> Answer:
    return 404, {"itemNotFound": {"message": f"{ident} could not be found.", "code": 404}}


def _making(
    kind: str, attribute: str, status: int, more: Callable[[Stack, dict[str, Any]], None]
) -> Callable[..., Answer]:
    def call(stack: Stack, *, body: Any) -> Answer:
        made = {**body[kind], "id": str(uuid.uuid4())}
        more(stack, made)
        getattr(stack, attribute)[made["id"]] = made
        return status, {kind: made}

    return call


def _deleting(attribute: str, in_use: Callable[[Stack, str], bool] = lambda *_: False) -> Callable[..., Answer]:
    def call(stack: Stack, ident: str, *, query: Mapping[str, list[str]]) -> Answer:
        if ident not in getattr(stack, attribute):
            return 404, {
                "NeutronError": {"message": f"{ident} could not be found.", "type": "NotFound", "detail": ""}
            }
        if in_use(stack, ident):
            return 409, {"NeutronError": {"message": f"{ident} is in use.", "type": "InUse", "detail": ""}}
        del getattr(stack, attribute)[ident]
        return 204, None

    return call


def _boot(stack: Stack, made: dict[str, Any]) -> None:
    made["status"] = stack.server_status
    if stack.server_status == "ERROR":
        made["fault"] = {"code": 500, "message": "No valid host was found."}
    for wanted in made["networks"]:
        stack.ports[wanted["port"]]["device_id"] = made["id"]


def _port(stack: Stack, made: dict[str, Any]) -> None:
    made["fixed_ips"] = [{"ip_address": f"192.168.0.{len(stack.ports) + 10}", "subnet_id": "s"}]
    made["device_id"] = ""


def _address(stack: Stack, made: dict[str, Any]) -> None:
    made["floating_ip_address"] = f"198.51.100.{len(stack.addresses) + 10}"


def _plain(stack: Stack, made: dict[str, Any]) -> None: ...


def _volume(stack: Stack, made: dict[str, Any]) -> None:
    made["status"] = "available"


def _server_gone(stack: Stack, ident: str, *, query: Mapping[str, list[str]]) -> Answer:
    if ident not in stack.servers:
        return _missing(stack, ident, query=query)
    server = stack.servers.pop(ident)
    for port in stack.ports.values():
        port["device_id"] = "" if port["device_id"] == ident else port["device_id"]
    for mapping in server.get("block_device_mapping_v2", []):
        if mapping["delete_on_termination"]:
            stack.volumes.pop(mapping["uuid"], None)
    return 204, None


def _port_used(stack: Stack, ident: str) -> bool:
    return bool(stack.ports[ident]["device_id"])


def _firewall_used(stack: Stack, ident: str) -> bool:
    return any(ident in port["security_groups"] for port in stack.ports.values())


NETWORKS = (
    {"id": NETWORK, "name": "private", "router:external": False},
    {"id": EXTERNAL, "name": "public", "router:external": True},
)
FLAVORS = tuple(
    {"id": str(n), "name": name, "vcpus": n, "ram": 2048, "disk": 20}
    for n, name in ((2, "m1.small"), (3, "m1.medium"))
)
IMAGES = ({"id": "11111111-1111-4111-8111-111111111111", "name": "debian-12", "status": "active"},)
ZONES = {"availabilityZoneInfo": [{"zoneName": "nova", "zoneState": {"available": True}}]}
ROUTES: tuple[tuple[str, Callable[..., Answer]], ...] = (
    ("GET /compute/v2.1/flavors(?:/detail)?", _fixed("flavors", *FLAVORS)),
    ("GET /compute/v2.1/flavors/(.+)", _missing),
    ("GET /compute/v2.1/os-availability-zone(?:/detail)?", lambda _, **__: (200, ZONES)),
    ("GET /compute/v2.1/servers/detail", _listing("servers", "servers")),
    ("POST /compute/v2.1/servers", _making("server", "servers", 202, _boot)),
    ("DELETE /compute/v2.1/servers/(.+)", _server_gone),
    ("GET /compute/v2.1/os-server-groups", _listing("server_groups", "groups")),
    ("POST /compute/v2.1/os-server-groups", _making("server_group", "groups", 200, _plain)),
    ("DELETE /compute/v2.1/os-server-groups/(.+)", _deleting("groups")),
    ("GET /image/v2/images", _fixed("images", *IMAGES)),
    ("GET /image/v2/images/(.+)", _missing),
    ("GET /network/v2.0/networks", _fixed("networks", *NETWORKS)),
    ("GET /network/v2.0/networks/(.+)", _missing),
    ("GET /network/v2.0/ports", _listing("ports", "ports")),
    ("POST /network/v2.0/ports", _making("port", "ports", 201, _port)),
    ("DELETE /network/v2.0/ports/(.+)", _deleting("ports", _port_used)),
    ("GET /network/v2.0/floatingips", _listing("floatingips", "addresses")),
    ("POST /network/v2.0/floatingips", _making("floatingip", "addresses", 201, _address)),
    ("DELETE /network/v2.0/floatingips/(.+)", _deleting("addresses")),
    ("GET /network/v2.0/security-groups", _listing("security_groups", "firewalls")),
    ("POST /network/v2.0/security-groups", _making("security_group", "firewalls", 201, _plain)),
    ("DELETE /network/v2.0/security-groups/(.+)", _deleting("firewalls", _firewall_used)),
    ("POST /network/v2.0/security-group-rules", _making("security_group_rule", "rules", 201, _plain)),
    ("GET /volume/v3/demo/volumes/detail", _listing("volumes", "volumes")),
    ("POST /volume/v3/demo/volumes", _making("volume", "volumes", 202, _volume)),
    ("DELETE /volume/v3/demo/volumes/(.+)", _deleting("volumes")),
)


@contextmanager
def serving() -> Iterator[Stack]:
    """A cloud with two flavors, an image, two networks and nothing else."""
    stack = Stack()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            status, answer = stack.answer(
                self.command, parts.path.rstrip("/"), body, self.headers.get("X-Auth-Token"), parse_qs(parts.query)
            )
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Subject-Token", stack.token)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _respond  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stack.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stack
    finally:
        server.shutdown()
        server.server_close()
