"""`tare inspect`: look at a server that runs, and name the traps that it meets. Nothing is started or changed.

`subject` resolves what the user names to a process; `gather` reads its facts, by the observers that runs use;
`verdict` asks every trap; `text` shows the answers.
"""

from __future__ import annotations
