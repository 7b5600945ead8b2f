"""Assets that people name: that they exist, or which one may have been meant."""

from __future__ import annotations

import difflib
import os

import click

from assetlock.kube.api import Api
from assetlock.kube.errors import KubeError, NotFound
from assetlock.kube.resources import ASSETS


class NoSuchAsset(click.ClickException):
    """There is no asset of this name in that namespace."""

    exit_code = os.EX_NOINPUT


async def ensure(api: Api, namespace: str, asset: str) -> None:
    """Do nothing if the asset exists; else raise `NoSuchAsset`, with what may have been meant."""
    try:
        await api.get(ASSETS, namespace, asset)
    except NotFound:
        hint = await _near(api, namespace, asset)
        raise NoSuchAsset(f"there is no asset {asset} in namespace {namespace}{hint}") from None


async def _near(api: Api, namespace: str, asset: str) -> str:
    try:
        names = [found["metadata"]["name"] for found in (await api.list(ASSETS, namespace)).items]
    except KubeError:
        return ""
    near = difflib.get_close_matches(asset, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
