"""What clients of a server may add: URLs, and files in the folders that it was started with.

Always: links are followed before a path is compared with the folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from quire.errors import SettingError


def allowed(source: str, roots: Sequence[Path], how: str) -> str:
    """A source that may be added: a URL, or a path that leads into one of the roots. Raises SettingError.

    `how` tells what to do if there are no roots.
    """
    scheme, is_url, _ = source.partition("://")
    if is_url and scheme.lower() not in ("http", "https"):
        raise SettingError("sources", f"{source}: of URLs, only http and https are taken")
    if is_url:
        return source
    if not roots:
        raise SettingError("sources", f"{source}: this server reads no local files. {how}")
    paths = [path for root in roots if (path := _resolved(root, source))]
    inside = [path for path in paths if any(path.is_relative_to(root) for root in roots)]
    if not inside:
        folders = ", ".join(map(str, roots))
        raise SettingError("sources", f"{source}: is outside the folders that may be read: {folders}")
    return str(next((path for path in inside if os.path.exists(path)), inside[0]))  # noqa: PTH110


def _resolved(root: Path, source: str) -> Path | None:
    """The real path of a path, links followed; a relative one begins at the root."""
    try:
        return (root / source).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name too long, a NUL
        return None
