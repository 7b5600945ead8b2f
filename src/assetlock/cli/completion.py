"""``assetlock completion``, and what kubectl runs at TAB for ``kubectl assetlock``."""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete, get_completion_class

from assetlock.cli.main import root

VARIABLE = "_ASSETLOCK_COMPLETE"

_NO_FILES = ":4"
"""Kubectl's word for: these and nothing else."""


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the completion for SHELL, with the names of assets and locks.

    \b
        source <(assetlock completion bash)
        assetlock completion fish > ~/.config/fish/completions/assetlock.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(found(root, {}, "assetlock", VARIABLE).source())


def for_kubectl() -> None:
    """Offer what completes the last argument, as kubectl asks its plugins."""
    *given, incomplete = sys.argv[1:] or [""]
    for item in ShellComplete(root, {}, "kubectl assetlock", VARIABLE).get_completions(given, incomplete):
        print(f"{item.value}\t{item.help}" if item.help else item.value)
    print(_NO_FILES)
