"""Location of a store: a directory, or a schema of a PostgreSQL database with its raw files in another place."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tare.errors import StoreError
from tare.sites.layout import default_layout

EXAMPLE = "postgresql://USER@HOST/DATABASE?store=NAME&raw=s3://BUCKET/PREFIX"
_SCHEMES = ("postgresql", "postgresql+psycopg", "postgres")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,47}")
_DEFAULT_NAME = "tare"
_HINT_FOR_LOGIN = "put it into ~/.pgpass (PGPASSFILE) or PGPASSWORD"


@dataclass(frozen=True)
class StorePlace:
    """Location of a store.

    `directory`: the store itself; for a store at a URL, where this machine works on its files and keeps copies.
    `database`: the URL without tare's own options, `None` for a directory. `name`: of the schema. `raw`: URL below
    which the raw files lie.
    """

    directory: Path
    database: str | None = None
    name: str = field(default=_DEFAULT_NAME)
    raw: str = ""

    def __str__(self) -> str:
        if self.database is None:
            return str(self.directory)
        joint = "&" if "?" in self.database else "?"
        own = urlencode({"store": self.name, "raw": self.raw}, safe=":/~")
        return f"{self.database}{joint}{own}"

    @property
    def is_directory(self) -> bool:
        """Whether the store is a directory of this machine, with SQLite in it."""
        return self.database is None


Place = Path | StorePlace
"""Location of a store, for callers that may pass a plain directory."""


def parse_store_url(text: str | Path | StorePlace) -> StorePlace:
    """Parse the location of a store. Raises `StoreError` for a URL that does not name a store."""
    if isinstance(text, StorePlace):
        return text
    if isinstance(text, Path) or "://" not in text:
        return StorePlace(Path(text))
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise StoreError(f"the URL of the store cannot be read: {error}", hint=f"write it as {EXAMPLE}") from error
    if parts.scheme not in _SCHEMES:
        what = f"a store cannot be at {parts.scheme}://"
        raise StoreError(what, hint=f"name a directory, or a database as {EXAMPLE}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or "password" in options:
        raise StoreError("the URL of the store contains a password, which others can see", hint=_HINT_FOR_LOGIN)
    name, raw = options.pop("store", _DEFAULT_NAME), options.pop("raw", "").rstrip("/")
    if not parts.path.strip("/"):
        raise StoreError("the URL of the store names no database", hint=f"write it as {EXAMPLE}")
    if not _NAME.fullmatch(name):
        hint = "lowercase letters, digits, - and _, starting with a letter; at most 48"
        raise StoreError(f"store={name} is not a valid name of a store", hint=hint)
    if "://" not in raw:
        hint = "add raw=s3://BUCKET/PREFIX, or raw=file:///DIRECTORY that all machines share"
        raise StoreError("the URL of the store does not say where the raw files are", hint=hint)
    if "@" in urlsplit(raw).netloc:
        hint = "give it by the environment or the files of the provider's own tools"
        raise StoreError("raw= contains a user or a password, which others can see", hint=hint)
    query = urlencode(options, quote_via=quote, safe="/")
    database = f"postgresql+psycopg://{parts.netloc}{parts.path}{'?' if query else ''}{query}"
    return StorePlace(
        _working_directory(parts.netloc, parts.path, options.get("host", ""), name), database, name, raw
    )


def _working_directory(*parts: str) -> Path:
    """Directory below tare's home for work on a store at a URL; the same for every user of that database."""
    where = "\0".join((parts[0].rpartition("@")[2], *parts[1:]))
    return default_layout().home / "stores" / hashlib.sha256(where.encode()).hexdigest()[:16]
