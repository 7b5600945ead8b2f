"""`assetlock demo`: locks at work on a real control plane, told with real commands and their real output.

It checks itself: a step that does not show what it says ends the demo with exit code 1.
"""

from __future__ import annotations

import importlib.resources
import os
import pathlib
import shutil
import signal
import sys
import time

import click

from assetlock.cli._demo_stage import Stage
from assetlock.dev import ControlPlane, provide

NAME = "demo"


@click.command()
@click.option("--keep", is_flag=True, help="Leave it running, and say how to look around.")
def demo(keep: bool) -> None:
    """Watch locks at work on a real control plane."""
    from assetlock.cli import stack
    from assetlock.cli._demo_story import tell
    from assetlock.cli.dev import Progress

    signal.signal(signal.SIGTERM, _interrupt)
    progress = Progress()
    provide(progress)
    begun = time.monotonic()
    with ControlPlane(NAME if keep else None, durable=False, report=progress) as cluster:
        operator = stack.start(cluster, report=progress)
        progress.done()
        click.echo(
            f"A real Kubernetes control plane runs at {cluster.server}, with assetlock installed in it."
        )
        stage = Stage(_manifests(cluster.folder / "demo"))
        tell(stage, operator)
        _summarize(stage, time.monotonic() - begun)
        if keep:
            cluster.keep()
            _tell_how_to_look_around(stage.folder)


def _manifests(folder: pathlib.Path) -> pathlib.Path:
    """A folder with the manifests that the story uses."""
    folder.mkdir()
    for source in importlib.resources.files("assetlock.cli").joinpath("demo_manifests").iterdir():
        with importlib.resources.as_file(source) as path:
            shutil.copy(path, folder)
    return folder


def _summarize(stage: Stage, seconds: float) -> None:
    import rich.box
    import rich.console
    import rich.table

    table = rich.table.Table(title="What was seen", title_justify="left", box=rich.box.SIMPLE_HEAD)
    table.add_column("promise")
    table.add_column("how it showed")
    for row in stage.seen:
        table.add_row(*row)
    click.echo()
    rich.console.Console(highlight=False).print(table)
    click.secho(f"All of it was so, on a real API server, in {seconds:.0f} s.", fg="green")


def _tell_how_to_look_around(folder: pathlib.Path) -> None:
    assetlock = "assetlock" if shutil.which("assetlock") else os.path.relpath(sys.argv[0])
    click.echo(f"""
It runs on. To look around:
  eval "$({assetlock} dev env --name {NAME})"       # be the administrator
  kubectl -n shop get assets,assetlocks,leases
  kubectl -n shop describe asset web
  KUBECONFIG=$({assetlock} dev kubeconfig --name {NAME} --user alice) kubectl -n shop delete deployment web
The manifests of the demo are in {folder}
To end it:
  {assetlock} dev down --name {NAME}""")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
