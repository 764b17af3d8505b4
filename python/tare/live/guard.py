"""Access to the page: only with its link. Wraps the whole application, so that no route can forget the check."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from h11 import LocalProtocolError
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost"})
"""Names of this machine in a browser on it. Another name in `Host` belongs to another site whose name was made to
lead here (DNS rebinding, https://developer.chrome.com/blog/private-network-access-update)."""
REPORT = "/report/"
_TOKEN_BYTES = 32
_PEER_CLOSES_S = 5.0
"""How long a peer that broke off its request may keep its other side open."""
_METHODS = frozenset({"GET", "HEAD"})
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def new_token() -> str:
    """A new token of 256 random bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def report_key(token: str, name: str) -> str:
    """What opens one report, and nothing else: a report may send its address to others."""
    made = hmac.digest(token.encode(), f"{REPORT}{name}".encode("utf-8", "surrogateescape"), hashlib.sha256)
    return urlsafe_b64encode(made).rstrip(b"=").decode()


@dataclass(frozen=True)
class Guard:
    """Lets requests pass whose path begins with the token, and strips it off.

    No cookie has the token: browsers send those to servers on all ports of a host (RFC 6265, section 8.5). The
    address of a page goes nowhere: links are relative, and `Referrer-Policy` forbids it.
    """

    app: ASGIApp
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal, path = self._answer(Request(scope)), _Path.of(scope["path"])
        inner = {**scope, "path": path.rest, "raw_path": path.rest.encode("utf-8", "surrogateescape")}
        try:
            await (refusal or self.app)(inner, receive, _with_headers(send))
        except LocalProtocolError:  # the peer closed its side during its request, so no answer can be sent
            with suppress(TimeoutError):
                async with asyncio.timeout(_PEER_CLOSES_S):
                    while (await receive())["type"] != "http.disconnect":
                        pass

    def _answer(self, request: Request) -> Response | None:
        """The answer instead of the page; `None` if the request may pass."""
        if _host(request) not in HOSTS:
            return PlainTextResponse("This page answers on 127.0.0.1 and localhost only.\n", 421)
        if request.method not in _METHODS:
            return PlainTextResponse("This page is read-only.\n", 405, {"Allow": "GET, HEAD"})
        return self._lead(request.scope["path"])

    def _lead(self, path: str) -> Response | None:
        """Refuse a path without a key, or lead to the one that is meant; `None` if the page has it."""
        given = _Path.of(path)
        first, rest = given.first, given.rest
        name = rest.removeprefix(REPORT)
        is_report = name != rest
        if is_report and _equal(first, report_key(self.token, name)):
            return None
        if not _equal(first, self.token):
            return PlainTextResponse("Open this page by the link that `tare serve` printed.\n", 403)
        if is_report:
            quoted = quote(name, safe="", errors="surrogateescape")
            return RedirectResponse(f"/{report_key(self.token, name)}{REPORT}{quoted}", 303)
        if path == f"/{self.token}":  # links are relative
            return RedirectResponse(f"/{self.token}/", 303)
        return None


@dataclass(frozen=True)
class _Path:
    """A path's first part and the rest, which begins with a slash."""

    first: str
    rest: str

    @classmethod
    def of(cls, path: str) -> _Path:
        first, _, rest = path.removeprefix("/").partition("/")
        return cls(first, f"/{rest}")


def _equal(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _host(request: Request) -> str:
    return request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
