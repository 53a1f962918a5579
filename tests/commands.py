"""The `quire` command, run as people run it."""

from __future__ import annotations

import os
from pathlib import Path

from tests import forks


def user_settings(place: Path, toml: str) -> None:
    """Write the settings of the user whose home is a folder: these are always trusted."""
    path = place / ".config" / "quire" / "quire.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(toml)


def environment(place: Path) -> dict[str, str]:
    """The variables of a user whose home is a folder, and who has set nothing else."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("QUIRE_", "XDG_"))} | {
        "COLUMNS": "100",
        "HOME": str(place),
        "QUIRE_EMBED_MODEL": "none",  # the tests that use this are about words and files
    }


def run(place: Path, *args: str, stdin: bytes = b"", code: int = 0, **env: str) -> tuple[str, str]:
    """What a command prints on stdout and stderr, in a folder that is also its user's home."""
    done = forks.run(args, stdin=stdin, cwd=place, env=environment(place) | env)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err
    return out, err
