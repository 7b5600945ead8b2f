"""What the command line costs, next to what people would type without it: kubectl."""

from __future__ import annotations

import asyncio
import os
import pathlib
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from benchmarks.bench import NAMESPACE
from benchmarks.registry import scenario
from benchmarks.rows import Row, Samples
from benchmarks.stage import Stage

ROUNDS = 21
ASSETLOCK = str(pathlib.Path(sys.executable).parent / "assetlock")


@scenario(seconds=120)
async def commands(stage: Stage) -> AsyncGenerator[Row, None]:
    """A command under a lock, the version, and one TAB, each beside kubectl."""
    kubectl = str(stage.cluster.kubectl_path)
    environ = stage.cluster.environment()
    async with stage.bench() as bench:
        await bench.make_asset("commands")
    under_a_lock = [ASSETLOCK, "run", "-n", NAMESPACE, "commands", "--", "true"]
    get = [kubectl, "get", "assets", "-n", NAMESPACE, "-o", "name"]
    tab = {"_ASSETLOCK_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    typed = {**tab, "COMP_WORDS": f"assetlock run -n {NAMESPACE} "}
    ours: dict[str, list[float]] = {"run": [], "version": [], "tab": []}
    theirs: dict[str, list[float]] = {"two": [], "version": []}
    for _ in range(ROUNDS):
        theirs["two"].append(await _took(get, environ) + await _took(get, environ))
        ours["run"].append(await _took(under_a_lock, environ))
        theirs["version"].append(await _took([kubectl, "version", "--client"], environ))
        ours["version"].append(await _took([ASSETLOCK, "--version"], environ))
        ours["tab"].append(await _took([ASSETLOCK], {**environ, **typed}))
    two, version = Samples("two kubectl get", theirs["two"]), Samples("kubectl version", theirs["version"])
    yield Row("assetlock run x -- true", Samples("run", ours["run"]), two, "ms", 1.5)
    yield Row("assetlock --version", Samples("version", ours["version"]), version, "ms", 1.5)
    yield Row("one TAB", Samples("tab", ours["tab"]), version, "ms", 2.5)


async def _took(argv: Sequence[str], environ: Mapping[str, str]) -> float:
    """Milliseconds until the command has ended; RuntimeError if it fails."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *argv, env={**os.environ, **environ}, stdout=asyncio.subprocess.DEVNULL
    )
    if await process.wait():
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(argv)}")
    return (time.perf_counter() - began) * 1000
