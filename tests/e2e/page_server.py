"""The page of a store on a port and with a token that the test knows: `page_server.py STORE PORT TOKEN`."""

from __future__ import annotations

import sys
from pathlib import Path

from tare.live.serving import open_listener, serve

if __name__ == "__main__":
    serve(Path(sys.argv[1]), open_listener(int(sys.argv[2]), sys.argv[3]))
