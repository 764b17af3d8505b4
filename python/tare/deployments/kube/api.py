"""The cluster's API through the official client and the user's kubeconfig: JSON in, JSON out, with time limits.

Credentials stay in the client: nothing here is ever written to a record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from urllib3.exceptions import HTTPError

from tare.errors import EngineSilent, EnvironmentLacks, RunFailed

Tree = Mapping[str, Any]
CALL_S = 30.0
_CONNECT_S = 5.0
_RETRIES = 2
_INSTALL = "pip install 'tare-bench[kube]'"


class ApiRefused(RunFailed):
    """An error that the API server answered. `status`: its HTTP status."""

    def __init__(self, what: str, status: int, *, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.status = status


class NoCluster(EnvironmentLacks):
    """No cluster is configured."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers at `server`. `client`: an ApiClient of the `kubernetes` package."""

    client: Any
    server: str

    def get(self, path: str, **query: str) -> Tree | None:
        """Get an object or a list by its path; `None` if it does not exist."""
        try:
            return self._call("GET", path, query=query)
        except ApiRefused as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def must_get(self, path: str) -> Tree:
        """Get an object or list that every cluster has; `RunFailed` if it does not exist."""
        return self._call("GET", path)

    def post(self, path: str, body: Tree) -> Tree:
        """Create an object."""
        return self._call("POST", path, body=body)

    def delete(self, path: str, *, uid: str, grace_s: int | None = None) -> bool:
        """Delete the object with exactly this uid; `False` if it is gone or another object has its name."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            self._call("DELETE", path, body=options)
        except ApiRefused as error:
            if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                return False
            raise
        return True

    def _call(
        self, method: str, path: str, *, body: Tree | None = None, query: Mapping[str, str] | None = None
    ) -> Tree:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        words = self.client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=None if body is None else dict(body),
            auth_settings=["BearerToken"],
        )
        try:
            answer = self.client.call_api(*words, _request_timeout=(_CONNECT_S, CALL_S))
            raw = bytes(answer.read() or b"")
        except HTTPError as error:
            raise EngineSilent(
                f"the cluster at {self.server} does not answer: {_plain(error)}",
                hint="kubectl cluster-info; KUBECONFIG names the file with its address",
            ) from error
        tree = _tree(raw)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise _refused(method, path, answer.status, tree)
        return tree


def connect(kubeconfig: str | None = None, context: str | None = None) -> Cluster:
    """Connect through the given file, else the user's chain: KUBECONFIG, ~/.kube/config, a pod's account.

    `context`: of the file, by default its current one. Sends no request yet. Raises `NoCluster`, or
    `EnvironmentLacks` if the client package is not installed.
    """
    client, config = _package()
    settings = client.Configuration()
    chain = kubeconfig or os.environ.get("KUBECONFIG")
    try:
        config.load_kube_config(config_file=chain, context=context, client_configuration=settings)
    except config.ConfigException as error:
        if context is not None:
            raise NoCluster(f"the context {context} of the kubeconfig cannot be used: {error}") from error
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            raise NoCluster(
                f"no cluster is configured: {error}",
                hint="set KUBECONFIG to the file that `kubectl` uses; sudo needs `--preserve-env=KUBECONFIG`",
            ) from error
    settings.retries = _RETRIES
    return Cluster(client.ApiClient(settings), str(settings.host))


def connect_all() -> tuple[Cluster | NoCluster, ...]:
    """Connect through every context of the user's chain; a context that cannot be used is its error.

    Without contexts as `connect`. Sends no request yet. Raises as `connect`.
    """
    _, config = _package()
    try:
        contexts, _ = config.list_kube_config_contexts(config_file=os.environ.get("KUBECONFIG"))
    except config.ConfigException:  # no file, or none of its contexts is the current one
        return (connect(),)
    return tuple(_connected(str(each["name"])) for each in contexts)


def _connected(context: str) -> Cluster | NoCluster:
    try:
        return connect(context=context)
    except NoCluster as error:
        return error


def _package() -> tuple[Any, Any]:
    """Import the client and its configuration."""
    try:
        from kubernetes import client, config
    except ImportError as error:
        raise EnvironmentLacks("the package `kubernetes` is missing", hint=_INSTALL) from error
    return client, config


def _refused(method: str, path: str, status: int, tree: Tree) -> ApiRefused:
    message = str(tree.get("message") or HTTPStatus(status).phrase)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return ApiRefused(
            f"the cluster does not permit {method} {path}: {message}",
            status,
            hint="ask its administrator for these rights, see docs/reference/kubernetes.md",
        )
    return ApiRefused(f"the cluster refuses {method} {path}: {message}", status)


def _tree(raw: bytes) -> Tree:
    try:
        tree = json.loads(raw)
    except ValueError:
        return {"message": raw.decode(errors="replace").strip()[:200]}
    return tree if isinstance(tree, dict) else {}


def _plain(error: BaseException) -> str:
    """The innermost reason, without the addresses of Python objects."""
    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, BaseException) else error
    return str(inner).rpartition(">: ")[2] or type(inner).__name__
