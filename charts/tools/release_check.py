"""A dry run of a release: ``python -m charts.tools.release_check``, or ``make release-check``.

Wheel and sdist are built twice, in two folders, and must be the same to the byte. The wheel is then installed into an
empty environment with the locked versions, and run there, outside the checkout.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).parents[2]
EPOCH = "1767225600"
"""Any fixed time: what is built depends on the files alone."""

_BUILD = (
    "import sys; from hatchling.build import build_sdist, build_wheel; "
    "print(build_sdist(sys.argv[1])); print(build_wheel(sys.argv[1]))"
)
_MANIFESTS = (
    "from assetlock.install import manifests; print(len([*manifests('crds'), *manifests('manifests')]))"
)


def main() -> int:
    """Build, compare, install and run; says what differs or fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first, second = (_built(folder, number) for number in (1, 2))
        for path in first:
            print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
        if differing := [
            a.name for a, b in zip(first, second, strict=True) if a.read_bytes() != b.read_bytes()
        ]:
            print(f"built twice, these differ: {', '.join(differing)}", file=sys.stderr)
            return 1
        [wheel] = [path for path in first if path.suffix == ".whl"]
        _tried(folder, wheel)
    return 0


def _built(folder: pathlib.Path, number: int) -> list[pathlib.Path]:
    """Wheel and sdist of what Git knows, from a copy: no leftover of a build gets in."""
    source, out = folder / f"checkout-{number}", folder / f"dist-{number}"
    out.mkdir()
    for path in _output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).splitlines():
        if (ROOT / path).is_file():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, source / path)
    _output([sys.executable, "-c", _BUILD, str(out)], source, SOURCE_DATE_EPOCH=EPOCH)
    return sorted(out.iterdir())


def _tried(folder: pathlib.Path, wheel: pathlib.Path) -> None:
    """Install the wheel and what it needs, by hash, and run its command."""
    environment, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    _output([sys.executable, "-m", "venv", str(environment)], empty)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    _output([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(ROOT / "requirements.lock")], empty)
    _output([*pip, "--no-deps", "--no-index", str(wheel)], empty)
    program = str(environment / "bin" / "assetlock")
    print(_output([program, "--version"], empty).strip())
    for command in (["--help"], ["install", "--help"], ["operator", "controller", "--help"]):
        _output([program, *command], empty)
    count = _output([str(environment / "bin" / "python"), "-P", "-c", _MANIFESTS], empty).strip()
    print(f"runs from an empty environment, with {count} manifests in it")


def _output(command: Sequence[str], folder: pathlib.Path, **env: str) -> str:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=folder, env={**outside, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
