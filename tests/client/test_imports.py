"""What importing costs: a program loads only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"pydantic", "aiohttp", "kubernetes", "kopf", "redis", "temporalio", "yaml", "rich", "click"}


def loaded(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_but_itself() -> None:
    assert not loaded("import assetlock") & {*HEAVY, "asyncio", "ssl", "threading"}


@pytest.mark.parametrize("name", ["needs_lock", "lock", "AsyncLock", "LockTimeout", "current_lock"])
def test_what_programs_use_loads_no_backend(name: str) -> None:
    assert not loaded(f"from assetlock import {name}") & HEAVY


def test_the_kubernetes_backend_loads_only_the_standard_library() -> None:
    assert not loaded("from assetlock.client.backends.kubernetes import KubernetesBackend") & HEAVY


def test_all_names_are_there() -> None:
    loaded("import assetlock\nfor name in assetlock.__all__: getattr(assetlock, name)")
