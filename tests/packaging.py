"""Builds the source archive, and from it the wheel: python -m tests.packaging FOLDER"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from shutil import copytree, ignore_patterns

ROOT = Path(__file__).parents[1]
_LEFT = ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "bench", "tests", "training")


def build(checkout: Path, folder: Path) -> tuple[Path, Path]:
    """The source archive of a checkout, and the wheel that is made of nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        copy = copytree(checkout, Path(name) / "checkout", ignore=_LEFT)
        archive = _built("build_sdist", copy, folder)
        with tarfile.open(archive) as file:
            file.extractall(name, filter="data")
        wheel = _built("build_wheel", Path(name) / archive.name.removesuffix(".tar.gz"), folder)
    return archive, wheel


def _built(what: str, checkout: Path, folder: Path) -> Path:
    """What setuptools builds of a checkout."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.{what}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / done.stdout.splitlines()[-1]


if __name__ == "__main__":
    print(*build(ROOT, Path(sys.argv[1]).absolute()), sep="\n")
