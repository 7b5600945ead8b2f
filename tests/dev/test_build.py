"""Programs are built once, whole or not at all, and who can't build is told what helps."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import venv

import pytest

from assetlock.dev import BuildFailed, binaries, build, find
from assetlock.dev.build import Recipe
from tests.dev.conftest import Run

BUILDS = """
import pathlib, sys
from assetlock.dev import build
source, target, then = sys.argv[1:]
def report(text):
    print(text, flush=True)
    exec(then)
recipe = build.Recipe(pathlib.Path(source), {"greeter": "example.org/tiny/cmd/hello"})
build.build(pathlib.Path(target), recipe, report)
"""


@pytest.fixture
def target(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "cache" / "v1"


def start(recipe: Recipe, target: pathlib.Path, then: str = "pass") -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", BUILDS, str(recipe.source), str(target), then]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def silent(_: str) -> None:
    """Nobody looks."""


def beside(target: pathlib.Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_a_built_program_has_the_name_asked_for_and_runs(tiny: Recipe, target: pathlib.Path) -> None:
    build.build(target, tiny, silent)
    done = subprocess.run([target / "greeter"], capture_output=True, text=True, check=True)
    assert done.stderr == "hello\n"
    assert beside(target) == [".v1.lock", "v1"]


def test_the_modules_that_ship_are_left_as_they_are(tiny: Recipe, target: pathlib.Path) -> None:
    for path in (*tiny.source.rglob("*"), tiny.source):
        path.chmod(0o555 if path.is_dir() else 0o444)
    build.build(target, tiny, silent)
    assert (target / "greeter").exists()


def test_two_who_ask_at_once_build_once(tiny: Recipe, target: pathlib.Path) -> None:
    both = [start(tiny, target), start(tiny, target)]
    outputs = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("building greeter" in output for output in outputs) == 1


def test_what_is_built_is_not_built_again(tiny: Recipe, target: pathlib.Path) -> None:
    build.build(target, tiny, silent)
    said: list[str] = []
    build.build(target, tiny, said.append)
    assert said == []


def test_an_interrupted_build_leaves_nothing(tiny: Recipe, target: pathlib.Path) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("compiling"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(target, _never_compiled(tiny), interrupt)
    assert beside(target) == [".v1.lock"]


def test_what_a_killed_build_leaves_is_not_taken_for_finished_and_goes_with_the_next(
    tiny: Recipe, target: pathlib.Path
) -> None:
    killed = start(tiny, target, "import os; os.kill(os.getpid(), 9)")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    build.build(target, tiny, silent)
    assert beside(target) == [".v1.lock", "v1"]


def test_a_build_that_fails_shows_what_go_said_and_leaves_nothing(tiny: Recipe, target: pathlib.Path) -> None:
    (tiny.source / "cmd" / "hello" / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(BuildFailed, match="undefined: undefined"):
        build.build(target, tiny, silent)
    assert beside(target) == [".v1.lock"]


def test_without_a_network_the_ways_out_are_listed(
    tiny: Recipe, target: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tiny.source / "go.mod").write_text(
        "module example.org/tiny\n\ngo 1.24\n\nrequire example.org/other v1.0.0\n"
    )
    main = 'package main\n\nimport _ "example.org/other"\n\nfunc main() {}\n'
    (tiny.source / "cmd" / "hello" / "main.go").write_text(main)
    (tiny.source / "go.sum").write_text(
        "example.org/other v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
        "example.org/other v1.0.0/go.mod h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    )
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(BuildFailed, match=r"can't be fetched(.|\n)*KUBEBUILDER_ASSETS"):
        build.build(target, tiny, silent)


def test_without_go_the_ways_out_are_listed(
    assetlock: Run, goless: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    refused = assetlock("dev", "up", python=goless, **_nothing_here(tmp_path))
    assert refused.returncode == os.EX_UNAVAILABLE
    for way in ("install Go 1.26 or later", "pip install 'assetlock[dev]'", "KUBEBUILDER_ASSETS"):
        assert way in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_go_that_is_too_old_is_named(assetlock: Run, goless: pathlib.Path, tmp_path: pathlib.Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.19.8\n")
    old.chmod(0o755)
    refused = assetlock("dev", "up", python=goless, **_nothing_here(tmp_path))
    assert f"{old} is 1.19" in refused.stderr


def test_kubebuilder_assets_without_any_of_the_programs_is_an_error(
    assetlock: Run, tmp_path: pathlib.Path
) -> None:
    refused = assetlock("dev", "up", KUBEBUILDER_ASSETS=str(tmp_path))
    assert refused.returncode == os.EX_UNAVAILABLE
    assert f"KUBEBUILDER_ASSETS={tmp_path} holds none of" in refused.stderr


def test_kubebuilder_assets_come_first_and_the_cache_fills_the_gaps(tmp_path: pathlib.Path) -> None:
    cached = tmp_path / "assetlock" / "controlplane" / binaries.cached_version()
    assets = tmp_path / "assets"
    for folder, names in ((cached, binaries.NAMES), (assets, ("etcd", "kube-apiserver", "kubectl"))):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).touch(mode=0o755)
    found = find({"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path)})
    assert found is not None
    assert found.apiserver.parent == assets
    assert found.controller_manager.parent == cached


def _never_compiled(recipe: Recipe) -> Recipe:
    """The same program with other bytes in it, which no compiler's cache can know."""
    main = recipe.source / "cmd" / "hello" / "main.go"
    main.write_text(f"package main\n\nfunc main() {{ println({os.getpid()}) }}\n")
    return recipe


def _nothing_here(folder: pathlib.Path) -> dict[str, str]:
    return {"KUBEBUILDER_ASSETS": "", "XDG_CACHE_HOME": str(folder / "cache"), "PATH": str(folder)}


@pytest.fixture
def goless(tmp_path: pathlib.Path) -> pathlib.Path:
    """A Python whose scripts have no Go among them; it imports what this one can import."""
    venv.create(tmp_path / "venv", symlinks=True)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "ours.pth").write_text("\n".join(path for path in sys.path if path))
    return tmp_path / "venv" / "bin" / "python"
