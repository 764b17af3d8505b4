"""Access to the page: only with its link. Wraps the whole application, so that no route can forget the check."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from h11 import LocalProtocolError
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost"})
"""Names of this machine in a browser on it. Another name in `Host` belongs to another site whose name was made to
lead here (DNS rebinding, https://developer.chrome.com/blog/private-network-access-update)."""
TOKEN = "token"  # noqa: S105 - the name of a parameter
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


@dataclass(frozen=True)
class Guard:
    """Lets requests with the token pass: first from the link, then from a cookie.

    Cookies are shared by all ports of a host, so the port is part of the cookie's name.
    """

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._answer(Request(scope))
        try:
            await (refusal or self.app)(scope, receive, _with_headers(send))
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
        given = request.query_params.get(TOKEN)
        if given is not None and self._is_ours(given):
            return self._let_in(request)
        if given is None and self._is_ours(request.cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse("Open this page by the link that `tare serve` printed.\n", 403)

    @property
    def cookie(self) -> str:
        """Name of the cookie."""
        return f"tare-live-{self.port}"

    def _is_ours(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _let_in(self, request: Request) -> Response:
        """Redirect to the same page without the token, so that it is in no history and no bookmark.

        `Lax` instead of `Strict`: the link may be opened from a terminal that is itself a web page.
        """
        answer = RedirectResponse(request.url.path, 303)
        answer.set_cookie(self.cookie, self.token, httponly=True, samesite="lax", path="/")
        return answer


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
