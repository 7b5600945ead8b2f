"""Options that several commands have."""

from __future__ import annotations

import pathlib

import click

from assetlock.cli import _complete, _names

asset = click.argument("asset", type=_names.ASSET)

kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    help="Default: $KUBECONFIG (several files are merged), else ~/.kube/config, else the ServiceAccount of the pod.",
)

context = click.option(
    "--context",
    shell_complete=_complete.contexts,
    help="The kubeconfig's context to use. Default: its current one.",
)

namespace = click.option(
    "-n",
    "--namespace",
    type=_names.NAMESPACE,
    shell_complete=_complete.namespaces,
    help="The asset's namespace. Default: that of the context.",
)
