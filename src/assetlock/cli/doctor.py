"""``assetlock doctor``: what is wrong with an installation, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import click

from assetlock.cli import _checks, _cluster

_MARKS = {_checks.OK: "ok     ", _checks.UNKNOWN: "unknown", _checks.WRONG: "WRONG  "}


@click.command()
@_cluster.options
def doctor(cluster: _cluster.Cluster) -> int:
    """Look for what is wrong with the installation, and say what to do. Exit code 69 if something is.

    It looks at the resources' definitions, the webhooks and their certificate, the policies, the controller, your own
    rights in the namespace, your clock, and stamps that no lock accounts for. What you may not see is `unknown`.
    """
    api, namespace = cluster.connect()
    wrong = False
    for name, check in _checks.CHECKS.items():
        for finding in _found(lambda: check(api, namespace)):  # noqa: B023 - used at once
            wrong = wrong or finding.state == _checks.WRONG
            click.echo(f"{_MARKS[finding.state]}  {name}: {finding.text}")
    return os.EX_UNAVAILABLE if wrong else os.EX_OK


def _found(check: Callable[[], Iterator[_checks.Finding]]) -> list[_checks.Finding]:
    from assetlock.client.api import ClientError, Forbidden

    try:
        return list(check())
    except Forbidden as error:
        return [_checks.Finding(_checks.UNKNOWN, f"you may not look: {error}")]
    except ClientError as error:
        return [_checks.Finding(_checks.WRONG, str(error))]
