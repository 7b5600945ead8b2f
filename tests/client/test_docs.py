"""The Python blocks of the pages about the client are run, against a real Redis and a real Temporal server."""

from __future__ import annotations

import asyncio
import importlib
import pathlib
import re
import types
import uuid
from collections.abc import Iterator

import pytest
from temporalio.client import Client

from assetlock import use
from tests.client.servers import Server
from tests.client.temporal import server

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.fixture
def in_redis(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("REDIS_PORT", str(redis_server.port))
    monkeypatch.setenv("APPLICATION_NAME", f"docs-{uuid.uuid4().hex[:8]}")
    use(None)
    yield
    use(None)


def run(page: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """All blocks of a page, one after the other, as one module."""
    text = (DOCS / f"{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (folder / f"page_about_{page}.py").write_text("\n\n".join(blocks))
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(f"page_about_{page}")


def test_a_python_program_locks_as_the_page_shows(
    in_redis: None,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = run("python", tmp_path, monkeypatch)
    assert "patched 1" in capsys.readouterr().out
    asyncio.run(page.main())
    asyncio.run(page.call_the_slow_service())
    page.test_a_busy_machine_is_left_alone()


async def test_a_worker_locks_as_the_page_shows(
    in_redis: None, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = run("temporal", tmp_path, monkeypatch)
    with server.serving() as address:
        client = await Client.connect(address)
        async with page.worker(client):
            done = await client.execute_workflow(
                page.PatchVm.run, "1", id=f"w-{uuid.uuid4().hex}", task_queue="vms"
            )
    assert done == "patched 1"
