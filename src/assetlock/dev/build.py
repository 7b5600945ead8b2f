"""Building programs from Go modules into the cache: once, whoever asks, and whole or not at all.

The folder of finished programs appears by one rename. A lock beside it makes a second builder wait for the first;
what a killed builder left behind goes when the next one starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assetlock.dev import golang
from assetlock.dev.binaries import VERSION, Report
from assetlock.dev.children import dies_with_parent
from assetlock.dev.errors import BuildFailed

_PAUSE = 0.5
_STAMP = f"-X k8s.io/component-base/version.gitVersion={VERSION} -X k8s.io/client-go/pkg/version.gitVersion={VERSION}"
_NO_NETWORK = (
    "dial tcp",
    "no such host",
    "i/o timeout",
    "proxyconnect",
    "connection refused",
    "TLS handshake",
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A folder with `go.mod` and `go.sum`, and the packages to build from it, each under the name it gets."""

    source: pathlib.Path
    programs: Mapping[str, str]
    linker_flags: str = "-s -w"
    duration: str = ""


CONTROL_PLANE = Recipe(
    source=pathlib.Path(__file__).parent / "controlplane",
    programs={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    },
    linker_flags=f"-s -w {_STAMP}",
    duration="once; about 6 minutes on two cores",
)


def build(target: pathlib.Path, recipe: Recipe, report: Report) -> None:
    """Make the folder `target` hold the recipe's programs."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _only_builder(target, report):
        if target.exists():
            return
        for leftover in target.parent.glob(f".{target.name}.building-*"):
            shutil.rmtree(leftover)
        workshop = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}.building-", dir=target.parent))
        try:
            _build_in(workshop, recipe, report)
            (workshop / "out").rename(target)
        finally:
            shutil.rmtree(workshop)


@contextlib.contextmanager
def _only_builder(target: pathlib.Path, report: Report) -> Iterator[None]:
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that builds the same")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_in(workshop: pathlib.Path, recipe: Recipe, report: Report) -> None:
    go = str(golang.find())
    source, out = workshop / "source", workshop / "out"
    shutil.copytree(recipe.source, source, copy_function=shutil.copyfile)
    out.mkdir()
    packages = list(recipe.programs.values())
    names = ", ".join(recipe.programs)
    report(f"building {names} ({recipe.duration})" if recipe.duration else f"building {names}")
    total = len(_run([go, "list", "-deps", *packages], source, _Downloads(report)))
    _run(
        [
            go,
            "build",
            "-v",
            "-trimpath",
            "-buildvcs=false",
            f"-ldflags={recipe.linker_flags}",
            f"-o={out}{os.sep}",
            *packages,
        ],
        source,
        _Compiling(report, total),
    )
    for name, package in recipe.programs.items():
        (out / _default_name(package)).rename(out / name)


def _default_name(package: str) -> str:
    """What `go build` calls a package's program: the last element of its path that is not a major version."""
    return next(part for part in reversed(package.split("/")) if not re.fullmatch(r"v\d+", part))


class _Downloads:
    """Tells of modules being fetched."""

    def __init__(self, report: Report) -> None:
        self._report, self._count, self._next = report, 0, 0.0

    def __call__(self, line: str) -> None:
        if not line.startswith("go: downloading ") or (now := time.monotonic()) < self._next:
            self._count += line.startswith("go: downloading ")
            return
        self._count, self._next = self._count + 1, now + _PAUSE
        self._report(f"downloading modules: {self._count} so far, now {line.split()[2]}")


class _Compiling:
    """Tells how many packages are done and, once that can be told, how long the rest takes."""

    def __init__(self, report: Report, total: int) -> None:
        self._report, self._total, self._done = report, total, 0
        self._start = time.monotonic()
        self._next = self._start

    def __call__(self, line: str) -> None:
        self._done += not line.startswith(("go:", "#", " ", "\t"))
        if (now := time.monotonic()) >= self._next:
            self._next = now + _PAUSE
            self._report(f"compiling: {self._done} of at most {self._total} packages{self._rest(now)}")

    def _rest(self, now: float) -> str:
        fraction = min(self._done / self._total, 1)
        if now - self._start < 15 or fraction < 0.05:
            return ""
        seconds = (now - self._start) * (1 / fraction - 1)
        return f", about {seconds / 60:.0f} min left" if seconds >= 90 else ", about a minute left"


def _run(argv: Sequence[str], folder: pathlib.Path, on_line: _Downloads | _Compiling) -> list[str]:
    """Run Go, pass on each line that it says, and return what it printed; end it when we are interrupted."""
    said: list[str] = []
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=golang.environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=dies_with_parent(),
        )
        try:
            for line in process.stderr or ():
                said.append(line)
                on_line(line)
            process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode != 0:
            raise BuildFailed(_explain(said, process.returncode))
        printed.seek(0)
        return printed.read().splitlines()


def _explain(said: Sequence[str], status: int) -> str:
    words = "".join(said[-15:]).rstrip()
    if any(sign in words for sign in _NO_NETWORK):
        return (
            "the Go modules of the control plane can't be fetched: a network with a Go module proxy (GOPROXY) is "
            f"needed once.\n{words}\nWithout one: set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, "
            "kube-controller-manager and kubectl."
        )
    return f"building the control plane failed: go ended with {status}.\n{words}"
