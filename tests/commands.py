"""The `quire` command, run as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(place: Path, *args: str, stdin: bytes = b"", code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints on stdout and stderr, in a folder that is also its user's home."""
    variables = {k: v for k, v in os.environ.items() if k != "QUIRE_LIBRARY"} | {
        "COLUMNS": "100",
        "HOME": str(place),
        "QUIRE_EMBED_MODEL": "none",  # the tests that use this are about words and files
    }
    done = subprocess.run(
        [Path(sys.executable).parent / "quire", *args],
        input=stdin,
        capture_output=True,
        cwd=place,
        check=False,
        env=variables | env,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err
    return out, err
