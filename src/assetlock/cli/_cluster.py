"""The options that every quick command has: which cluster, which namespace, and as whom. As kubectl calls them."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from assetlock.cli import _complete, _names

if TYPE_CHECKING:
    from assetlock.client.api import Api

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was said about the cluster."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: pathlib.Path | None = None
    user: str | None = None
    groups: Sequence[str] = ()
    timeout: float = 30.0

    def connect(self) -> tuple[Api, str]:
        """The API server and the namespace; `ConfigError` says what is missing."""
        from assetlock.client.api import Api, load_config

        config = load_config(self.kubeconfig, self.context).acting_as(self.user, self.groups)
        return Api(config, timeout=self.timeout), self.namespace or config.namespace


_OPTIONS = (
    click.option(
        "-n",
        "--namespace",
        type=_names.NAMESPACE,
        shell_complete=_complete.namespaces,
        help="The namespace. Default: that of the kubeconfig's context.",
    ),
    click.option("--context", shell_complete=_complete.contexts, help="The kubeconfig's context to use."),
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=pathlib.Path, dir_okay=False),
        help="Default: $KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod.",
    ),
    click.option("--as", "as_user", metavar="USER", help="Impersonate a user."),
    click.option("--as-group", "as_groups", metavar="GROUP", multiple=True, help="And a group; repeatable."),
    click.option(
        "--request-timeout",
        type=_names.Seconds(),
        default="30s",
        show_default=True,
        help="How long one request may take.",
    ),
)


def options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command these options, and pass it a `Cluster` first."""

    @functools.wraps(command)
    def with_cluster(*args: Any, **given: Any) -> R:
        cluster = Cluster(
            namespace=given.pop("namespace"),
            context=given.pop("context"),
            kubeconfig=given.pop("kubeconfig"),
            user=given.pop("as_user"),
            groups=given.pop("as_groups"),
            timeout=given.pop("request_timeout"),
        )
        return command(cluster, *args, **given)

    decorated: Callable[..., R] = with_cluster
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
