"""Commands that start quickly load nothing heavy."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import click
import pytest

from assetlock.cli.main import COMMANDS, root
from assetlock.version import VERSION

HEAVY = ("pydantic", "aiohttp", "kubernetes", "kopf", "asyncio", "rich", "cryptography", "prometheus_client")

PROGRAM = """
import json, sys
from assetlock.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]), file=sys.stderr)
"""


def loaded_by(*arguments: str, **environ: str) -> tuple[int, set[str]]:
    """The exit code of a command, and the top-level modules that it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, set(modules)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("--help",), 0),
        (("run", "--help"), 0),
        (("completion", "bash"), 0),
        (("acquire", "vm-1", "--kubeconfig", "/no/such/file"), os.EX_CONFIG),
        (("release", "vm-1-0", "--kubeconfig", "/no/such/file"), os.EX_CONFIG),
        (("extend", "vm-1-0", "--kubeconfig", "/no/such/file"), os.EX_CONFIG),
        (("run", "vm-1", "--kubeconfig", "/no/such/file", "--", "true"), os.EX_CONFIG),
        (("run", "pay/status", "--", "true"), os.EX_USAGE),
    ],
)
def test_a_quick_command_loads_nothing_heavy(arguments: tuple[str, ...], code: int) -> None:
    ended, modules = loaded_by(*arguments)
    assert ended == code
    assert not modules & set(HEAVY)


def test_the_version_is_that_of_the_package() -> None:
    assert importlib.metadata.version("assetlock") == VERSION


def test_every_command_is_there_and_says_what_it_is_for() -> None:
    for name, lazy in COMMANDS.items():
        command = root.get_command(click.Context(root), name)
        assert command is not None
        assert command.get_short_help_str(), lazy
