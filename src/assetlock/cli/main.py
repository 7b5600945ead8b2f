"""The command `assetlock`: its subcommands are loaded only when they are run, and no failure shows a traceback.

Exit codes follow sysexits. An exception that knows its own, in an attribute `exit_code`, is answered with that.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass

import click

from assetlock.version import VERSION

DEBUG_VARIABLE = "ASSETLOCK_DEBUG"


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a subcommand is, and what `--help` says of it without loading it."""

    target: str
    help: str


COMMANDS = {
    "run": Lazy("assetlock.cli.run:run", "Run a command while holding a lock."),
    "acquire": Lazy("assetlock.cli.acquire:acquire", "Acquire a lock, and print its name."),
    "release": Lazy("assetlock.cli.acquire:release", "Release a lock."),
    "extend": Lazy("assetlock.cli.acquire:extend", "Let a lock last longer."),
    "list": Lazy("assetlock.cli.list:list_assets", "List assets, and who holds them."),
    "describe": Lazy("assetlock.cli.list:describe", "Say what is known of an asset."),
    "wait": Lazy("assetlock.cli.wait:wait", "Wait until an asset is free, or held."),
    "why": Lazy("assetlock.cli.why:why", "Say which lock is in the way of an object."),
    "doctor": Lazy("assetlock.cli.doctor:doctor", "Look for what is wrong with the installation."),
    "check": Lazy("assetlock.cli.check:check", "Check that locks are served, and wait for it."),
    "completion": Lazy("assetlock.cli.completion:completion", "Completion for bash, zsh or fish."),
    "dev": Lazy("assetlock.cli.dev:dev", "A real local control plane: start, use and stop one."),
    "demo": Lazy("assetlock.cli.demo:demo", "Watch locks at work on a real control plane."),
    "install": Lazy(
        "assetlock.cli.install:install", "Install the resources, policies and rights into a cluster."
    ),
    "uninstall": Lazy(
        "assetlock.cli.uninstall:uninstall", "End every lock, and remove assetlock from a cluster."
    ),
    "maintain": Lazy("assetlock.cli.maintain:maintain", "Put an asset under maintenance, and end that."),
    "revoke": Lazy("assetlock.cli.revoke:revoke", "End somebody else's lock on an asset."),
    "operator": Lazy("assetlock.cli.operator:operator", "Run one of the operator's processes."),
}


class LazyGroup(click.Group):
    """Knows its subcommands by name and loads the one that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load the command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name].target} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION)
def root() -> None:
    """Locks for things behind a Kubernetes API, enforced by the API server itself."""


def main() -> None:
    """Run the command line and exit."""
    is_plugin = sys.argv[0].rpartition("/")[2].startswith("kubectl-")
    sys.exit(run(sys.argv[1:], "kubectl assetlock" if is_plugin else "assetlock"))


def run(arguments: list[str], name: str = "assetlock") -> int:
    """Run the command line; whatever goes wrong becomes a short message and an exit code."""
    try:
        result = root.main(args=arguments, prog_name=name, standalone_mode=False)
        return result if isinstance(result, int) else os.EX_OK
    except click.UsageError as error:
        error.show()
        return os.EX_USAGE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("assetlock: interrupted", err=True)
        return 130
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    code = getattr(error, "exit_code", None) or _kube_exit_code(error)
    if code is not None:
        click.echo(f"assetlock: {error}", err=True)
        return int(code)
    hint = f"({DEBUG_VARIABLE}=1 shows where)"
    click.echo(f"assetlock: unexpected {type(error).__name__}: {error} {hint}", err=True)
    return os.EX_SOFTWARE


def _kube_exit_code(error: Exception) -> int | None:
    from assetlock.kube import errors

    match error:
        case errors.Unauthorized() | errors.Forbidden():
            return os.EX_NOPERM
        case errors.NotFound():
            return os.EX_NOINPUT
        case errors.Locked() | errors.Conflict() | errors.AlreadyExists() | errors.TooManyRequests():
            return os.EX_TEMPFAIL
        case errors.ApiError() if error.is_refusal:
            return os.EX_USAGE
        case errors.KubeError():
            return os.EX_UNAVAILABLE
    return None


if __name__ == "__main__":
    main()
