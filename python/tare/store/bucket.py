"""S3 behind fsspec: credentials from AWS's own chain, no value of which is ever shown."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_CONNECT_S, _READ_S, _RETRY_S = 10, 60, 90


def bucket_system(url: str) -> tuple[AbstractFileSystem, str]:
    """The bucket's file system and the path in it. Raises `ImportError` where the extra is not installed.

    Without AWS_ACCESS_KEY_ID in the environment boto3 finds the credentials: its files, a role, the machine's own.
    """
    from obstore.fsspec import FsspecStore

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: dict[str, Any] = {
        "client_options": {
            "connect_timeout": f"{_CONNECT_S}s",
            "timeout": f"{_READ_S}s",
            "allow_http": urlsplit(endpoint).scheme == "http",
        },
        "retry_config": {"max_retries": 5, "retry_timeout": {"seconds": _RETRY_S}},
    }
    if endpoint:
        options["config"] = {"endpoint": endpoint}
    return FsspecStore("s3", **options), url.split("://", 1)[1]
