"""Options that several commands have."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import click

from assetlock.model.limits import LONGEST_ASSET_NAME

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class _AssetName(click.ParamType[str]):
    """The name of an asset, checked before anything is sent: pay/status would be another path."""

    name = "asset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if len(text) <= LONGEST_ASSET_NAME and _NAME.fullmatch(text):
            return text
        meant = re.sub(r"[^a-z0-9.]+", "-", re.sub(r"^(assets?|ast)/", "", text.lower())).strip("-.")
        hint = f"; did you mean {meant}?" if _NAME.fullmatch(meant[:LONGEST_ASSET_NAME].strip("-.")) else ""
        rule = f"an asset's name has at most {LONGEST_ASSET_NAME} of a-z, 0-9, - and single dots"
        return self.fail(f"{text!r}: {rule}{hint}", param, ctx)


asset = click.argument("asset", type=_AssetName())

kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    help="Default: $KUBECONFIG (several files are merged), else ~/.kube/config, else the ServiceAccount of the pod.",
)

context = click.option("--context", help="The kubeconfig's context to use. Default: its current one.")

namespace = click.option("-n", "--namespace", help="The asset's namespace. Default: that of the context.")
