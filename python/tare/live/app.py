"""The page's routes. All of them only read, and none is answered before the guard has checked the request."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.resources import files

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp

from tare.errors import TareError
from tare.knowledge.advice_text import context_words, effect_words, source_words
from tare.knowledge.claim import Qualitative, load_claims
from tare.live.charts import charting_script, specifications
from tare.live.detail import of_arm
from tare.live.guard import HEADERS, Guard
from tare.live.look import StoreReader, reports
from tare.live.view import View
from tare.live.watch import Watch, ident, tags_of
from tare.sites.layout import default_layout
from tare.study.catalogue import claims_folder
from tare.version import __version__

_STATIC = {"live.js": "text/javascript", "knowledge.js": "text/javascript", "live.css": "text/css"}
_REPORT_POLICY = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A report is shown with its own style and without scripts, whatever the file contains. Its study can be saved."""


def claim_rows() -> Sequence[Mapping[str, str]]:
    """All claims: those that come with tare and the user's own. Raises `StudyError` for a file that cannot be read.

    `says` is empty if the claim's effect is itself a sentence.
    """
    own = default_layout().knowledge
    folders = (claims_folder(), own) if own.is_dir() else (claims_folder(),)
    return [
        {
            "id": known.id,
            "study": known.study,
            "context": context_words(known.claim),
            "effect": effect_words(known.claim),
            "says": "" if isinstance(known.claim.effect, Qualitative) else known.claim.says,
            "source": source_words(known.claim),
        }
        for known in load_claims(folders)
    ]


class Page:
    """Handlers of the routes."""

    def __init__(
        self,
        reader: StoreReader,
        watch: Watch,
        script: Callable[[], bytes],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reader, self._watch, self._script, self._clock = reader, watch, script, clock
        self._static = {name: files("tare.live").joinpath(f"static/{name}").read_bytes() for name in _STATIC}
        self._static["live.css"] = (
            files("tare.report").joinpath("templates/report.css").read_bytes() + self._static["live.css"]
        )

    @property
    def _view(self) -> View:
        return self._reader.view

    def _html(self, template: str, **given: object) -> Response:
        page = self._watch.templates.get_template(template).render(version=__version__, **given)
        return HTMLResponse(page)

    async def page(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Return the page at once; its parts follow as events."""
        return self._html("page.html.j2", view=self._view)

    async def events(self, request: Request) -> Response:
        """Send parts that differ from the viewer's, now and whenever they change."""
        seen = dict(tags_of(request.headers.get("last-event-id")))
        return StreamingResponse(self._changes(seen), media_type="text/event-stream")

    async def _changes(self, tags: dict[str, str]) -> AsyncIterator[str]:
        yield f"retry: 2000\nevent: clock\ndata: {self._clock():.3f}\n\n"
        async for new in self._watch.changes(tags):
            if not new:
                yield ": still here\n\n"
            for part in new:
                tags[part.name] = part.tag
                content = json.dumps({"name": part.name, "content": part.content})
                yield f"id: {ident(tags)}\nevent: part\ndata: {content}\n\n"
        yield "event: end\ndata: {}\n\n"

    async def arm(self, request: Request) -> Response:
        """All runs of one arm, as a fragment of the page."""
        await self._watch.newest()
        details = of_arm(self._view, request.path_params["number"])
        if details is None:
            return PlainTextResponse("There is no such arm.\n", 404)
        return self._html("arm.html.j2", arm=details)

    async def charts(self, request: Request) -> Response:  # noqa: ARG002 - a handler's
        """Specifications with which the browser draws charts."""
        return JSONResponse(specifications())

    async def static(self, request: Request) -> Response:
        """The page's own script and style."""
        name = request.path_params["name"]
        if name not in self._static:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(self._static[name], media_type=_STATIC[name])

    async def vega(self, request: Request) -> Response:  # noqa: ARG002 - a handler's
        """The charting library."""
        script = await to_thread.run_sync(self._script)
        return Response(script, media_type="text/javascript", headers={"Cache-Control": "private, max-age=86400"})

    async def report(self, request: Request) -> Response:
        """A report in the store's directory."""
        name = request.path_params["name"]
        if name not in {file.name for file in reports(self._reader.path)}:
            return PlainTextResponse("There is no such report.\n", 404)
        headers = {**HEADERS, "Content-Security-Policy": _REPORT_POLICY}
        return FileResponse(self._reader.path / name, media_type="text/html", headers=headers)

    async def knowledge(self, request: Request) -> Response:  # noqa: ARG002 - a handler's
        """The claims that come with tare, and the user's own."""
        try:
            claims = await to_thread.run_sync(claim_rows)
        except (TareError, OSError) as error:
            return self._html("knowledge.html.j2", claims=(), problem=str(error))
        return self._html("knowledge.html.j2", claims=claims, problem=None)


def application(
    reader: StoreReader, watch: Watch, token: str, script: Callable[[], bytes] = charting_script
) -> ASGIApp:
    """Make the page's application for one store."""
    page = Page(reader, watch, script)
    routes = [
        Route("/", page.page),
        Route("/events", page.events),
        Route("/arm/{number:int}", page.arm),
        Route("/charts.json", page.charts),
        Route("/static/{name}", page.static),
        Route("/vega.js", page.vega),
        Route("/report/{name}", page.report),
        Route("/knowledge", page.knowledge),
    ]
    return Guard(Starlette(routes=routes), token)
