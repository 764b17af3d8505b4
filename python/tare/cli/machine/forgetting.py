"""`tare clean --forget NAME@UID`: remove a namespace from the ledger whose cluster does not exist any more."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer

from tare.deployments.kube.namespaces import why_out_of_reach
from tare.errors import EnvironmentLacks, StudyError
from tare.sites.ledger import Kind, Ledger, Made
from tare.sites.local import LocalHost
from tare.sites.process import alive


def forget(name: str, ledger: Ledger, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the entry of a namespace that no cluster of the kubeconfig has and no running tare uses.

    `name`: as in the ledger, `NAME@UID`. That its cluster is gone, and not merely out of reach, is the user's word.
    """
    entry = _named(name, ledger.entries())
    if alive(LocalHost(), entry.owner):
        raise EnvironmentLacks(
            f"a running tare (process {entry.owner.pid}) made {entry.ident}",
            hint="wait until it ends, or stop it with Ctrl-C: it then removes the namespace",
        )
    why = why_out_of_reach(entry.ident)
    if not dry_run and not yes:
        where, _, cluster = entry.ident.partition("@")
        sys.stderr.write(
            f"namespace {where} of the cluster whose kube-system has the uid {cluster}\n"
            f"It cannot be removed: {why}.\n"
            "If that cluster exists, the leftovers in it stay, and tare will not know about them.\n"
        )
        typer.confirm("Forget it?", abort=True, err=True)
    if not dry_run:
        ledger.forget(entry.kind, entry.ident, host=entry.host)
    if as_json:
        key = "would_forget" if dry_run else "forgot"
        sys.stdout.write(json.dumps({key: [str(entry)], "why": why}, indent=2) + "\n")
        return
    sys.stdout.write(f"{'would forget' if dry_run else 'forgot'} {entry}: {why}\n")


def _named(name: str, entries: Sequence[Made]) -> Made:
    """The namespace of this full name."""
    named = [each for each in entries if name in {each.ident, each.ident.partition("@")[0]}]
    spaces = [each for each in named if each.kind is Kind.NAMESPACE]
    if not named:
        raise StudyError(f"the ledger has no {name}", hint="`tare clean --dry-run` lists its entries")
    if not spaces:
        raise StudyError(
            f"{named[0]} is not forgotten: only namespaces of a cluster that is gone can be forgotten",
            hint="`tare clean` removes it",
        )
    full = next((each for each in spaces if each.ident == name), None)
    if full is None:
        idents = ", ".join(each.ident for each in spaces)
        raise StudyError(
            f"{name} does not name the cluster by the uid of its kube-system; the ledger has {idents}",
            hint="give its full name, if that cluster is gone for good",
        )
    return full
