"""S3 behind fsspec, with credentials from AWS's own sources, which are never shown."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_CONNECT_S, _REQUEST_S, _RETRY_S = 10, 120, 60
"""A request carries a part of a file, never all of a large one."""


def bucket_system(url: str) -> tuple[AbstractFileSystem, str]:
    """File system of the bucket, and the path in it. Raises `ImportError` if the extra is not installed.

    obstore takes credentials from the environment and the machine's role, boto3 those of ~/.aws.
    """
    from obstore.fsspec import FsspecStore

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: dict[str, Any] = {
        "client_options": {
            "connect_timeout": timedelta(seconds=_CONNECT_S),
            "timeout": timedelta(seconds=_REQUEST_S),
            "allow_http": urlsplit(endpoint).scheme == "http",
        },
        "retry_config": {"max_retries": 5, "retry_timeout": timedelta(seconds=_RETRY_S)},
        "skip_instance_cache": True,  # otherwise an instance with earlier credentials is reused
    }
    if endpoint:
        options["config"] = {"endpoint": endpoint}
    if "AWS_ACCESS_KEY_ID" not in os.environ and (provider := _of_files()) is not None:
        options["credential_provider"] = provider
    return FsspecStore("s3", **options), url.split("://", 1)[1]


def _of_files() -> Any | None:
    """Credentials of the profile in ~/.aws, with its region; `None` without boto3 or a profile."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    session = boto3.Session()
    return None if session.get_credentials() is None else Boto3CredentialProvider(session)
