"""Go programs that tests need: built once for their source, beside the control plane."""

from __future__ import annotations

import hashlib
import pathlib

from assetlock.dev import binaries, build


def program(source: pathlib.Path, module: str) -> pathlib.Path:
    """The program of a folder with `go.mod`, which names the module; built by whoever asks first."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()
    name = module.rpartition("/")[2]
    target = binaries.cache_folder().parent / name / digest[:16]
    build.build(target, build.Recipe(source, {name: module}), print)
    return target / name
