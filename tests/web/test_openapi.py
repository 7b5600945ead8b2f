"""The OpenAPI document says what the server takes and answers, and nothing that is thrown at it makes it fail."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from tests.web.conftest import World


def test_every_operation_describes_its_errors_and_the_document_is_served_to_anybody(world: World) -> None:
    document = world.nobody().raw("GET", "/openapi.json").body
    assert document["info"]["title"] == "assetlock"
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert {"401", "403", "404", "423", "429"} <= operation["responses"].keys(), (method, path)
            assert operation["summary"]


def test_whatever_is_sent_is_never_answered_with_a_failure_of_the_server(
    world: World, tmp_path: pathlib.Path
) -> None:
    world.operated.asset()
    token = world.caller("root").token
    account = f"--serviceaccount={world.operated.namespace}:root"
    name = f"root-{world.operated.namespace}"
    world.operated.cluster.kubectl(
        "create", "clusterrolebinding", name, "--clusterrole=cluster-admin", account
    )
    config = tmp_path / "schemathesis.toml"
    config.write_text(f"[parameters]\nnamespace = '{world.operated.namespace}'\nname = 'vm-1'\n")
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={config}"]
    command += ["run", f"{world.base}/openapi.json"]
    command += ["--checks=not_a_server_error", "--phases=examples,fuzzing", "--max-examples=12", "--seed=1"]
    command += ["--header", f"Authorization: Bearer {token}", "--request-timeout=60", "--no-color"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "11 selected / 11 total" in done.stdout
    assert " 11 passed" in done.stdout
