"""The page of a store on a port and with a token that the test knows: `page_server.py STORE PORT TOKEN`."""

from __future__ import annotations

import sys
from pathlib import Path

from tare.live.serving import open_listener, serve, server_of

if __name__ == "__main__":
    door = open_listener(int(sys.argv[2]), sys.argv[3])
    serve(server_of(Path(sys.argv[1]), door), door)
