"""Options that several commands have."""

from __future__ import annotations

import pathlib

import click

kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    envvar="KUBECONFIG",
    help="Default: $KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod.",
)

namespace = click.option("-n", "--namespace", help="The asset's namespace. Default: the kubeconfig's.")
