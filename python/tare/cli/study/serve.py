"""`tare serve`: show a store as a live page on this machine's loopback address."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from tare.errors import EnvironmentLacks
from tare.store_place import Place, StorePlace, parse_store_url


def serve(
    store: Annotated[
        StorePlace,
        typer.Argument(
            parser=parse_store_url, metavar="STORE", help="Store of `tare run`, finished or still running."
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")] = 0,
) -> None:
    """Show a store live in the browser, read-only: plan, phase, figures, intervals, log.

    Only visitors with the printed link can see the page. Ctrl-C ends it.
    """
    from tare.live.guard import new_token  # a web server is slow to import
    from tare.live.serving import open_listener, server_of
    from tare.live.serving import serve as serve_page

    listener = open_listener(port, new_token())
    server = server_of(store, listener)  # may refuse the store: print no link then
    sys.stdout.write(f"{listener.link}\n")
    sys.stdout.flush()
    sys.stderr.write("tare: the page is only reachable from this machine; Ctrl-C ends it\n")
    serve_page(server, listener)


@contextmanager
def page_beside(store: Place, *, wanted: bool, port: int) -> Iterator[None]:
    """Serve the page while a study runs, if `wanted`. If that fails, the run goes on, with a message."""
    if not wanted:
        yield
        return
    from tare.live.guard import new_token
    from tare.live.serving import serve_beside

    with ExitStack() as stack:
        try:
            listener = stack.enter_context(serve_beside(store, port, new_token()))
            sys.stderr.write(f"tare: watch the run at {listener.link}\n")
        except (EnvironmentLacks, OSError) as error:
            sys.stderr.write(f"tare: the run continues without its page: {error}\n")
        yield
