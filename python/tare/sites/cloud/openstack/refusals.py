"""Errors of OpenStack, or of the connection to it, as one sentence with a way forward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keystoneauth1 import exceptions as auth
from openstack import exceptions as sdk

from tare.errors import EnvironmentLacks
from tare.sites.cloud import StillUsed, Unanswered

_CREDENTIALS = (
    "openstacksdk takes them from OS_CLOUD with clouds.yaml, or OS_* variables; check with: openstack token issue"
)
_REGION = "is the region spelt as the cloud spells it? See: openstack catalog list"
_HINTS = {
    400: None,
    401: _CREDENTIALS,
    403: "a quota is reached, or a right is missing: plan fewer or smaller machines, or ask the operator",
    413: "a quota is reached: plan fewer or smaller machines, or ask the operator for more",
    429: "wait some minutes: the cloud limits the rate of requests",
}
_CONFLICT, _SERVER_ERROR = 409, 500


@contextmanager
def in_words(what: str) -> Iterator[None]:
    """Turn any error of openstacksdk in the context into `EnvironmentLacks`; `what`: what was tried."""
    try:
        yield
    except sdk.HttpException as error:
        raise _refusal(what, error) from error
    except (auth.Unauthorized, auth.MissingRequiredOptions, sdk.ConfigException) as error:
        hint = _REGION if " region" in str(error) else _CREDENTIALS  # openstacksdk raises one for both
        raise EnvironmentLacks(f"{what} was refused: {_flat(error)}", hint=hint) from error
    except (auth.EndpointNotFound, auth.EmptyCatalog) as error:
        raise EnvironmentLacks(f"{what} was not possible: {_flat(error)}", hint=_REGION) from error
    except (auth.ConnectFailure, auth.ConnectTimeout, sdk.ResourceTimeout) as error:
        raise Unanswered(
            f"{what}: OpenStack did not answer: {_flat(error)}", hint="is this machine online?"
        ) from error
    except (auth.ClientException, sdk.SDKException) as error:
        raise EnvironmentLacks(f"{what} was not possible: {_flat(error)}", hint=_CREDENTIALS) from error


def _refusal(what: str, error: sdk.HttpException) -> EnvironmentLacks:
    status = error.status_code or 0
    words = " ".join(str(error.details or error.message or error).split()).rstrip(".")
    if status == _CONFLICT:
        return StillUsed(f"{what} was refused: {words} ({status})")
    if status >= _SERVER_ERROR:
        return Unanswered(f"{what} failed at OpenStack: {words} ({status})", hint="try again later")
    return EnvironmentLacks(f"{what} was refused: {words} ({status})", hint=_HINTS.get(status))


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
