"""The MCP clients that Quire knows: where they keep their servers, and what goes there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from quire.surfaces.jsonc import JsonBlock
from quire.version import VERSION

SERVER = "quire"
CLIENTS = {
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "cursor": "Cursor",
    "vscode": "VS Code",
}
_UVX = ("uvx", "quire-docs")


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file in which a client looks for servers: the user's own, or one of a project, which others share."""

    client: str
    path: Path
    is_shared: bool
    is_found: bool  # whether the client uses it, or would if it were there

    def block(self, command: tuple[str, ...]) -> JsonBlock:
        """What goes into the file to start a command."""
        value: dict[str, Any] = {"command": command[0], "args": [*command[1:], "mcp"]}
        if self.client == "vscode":
            return JsonBlock("servers", SERVER, {"type": "stdio", **value})
        return JsonBlock("mcpServers", SERVER, value)


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's home."""
    return Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111


def project_folder(folder: Path, home: Path) -> Path | None:
    """The repository that a folder is in, else the folder itself; None for the user's home."""
    found = next((up for up in (folder, *folder.parents) if (up / ".git").exists()), folder)
    return None if found.resolve() == home.resolve() else found


def client_files(
    project: Path | None, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> list[ClientFile]:
    """The files of all clients, the user's own first."""
    found = [_own(client, _own_path(client, environ, platform)) for client in CLIENTS]
    if project:
        shared = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}
        found += [
            ClientFile(name, project / path, True, (project / path).is_file())
            for name, path in shared.items()
        ]
    return found


def _own(client: str, path: Path) -> ClientFile:
    # Claude Code makes its file when it first runs. The others make a folder, and often no file.
    sign = path if client == "claude-code" else path.parent
    return ClientFile(client, path, False, sign.exists())


def _own_path(client: str, environ: Mapping[str, str], platform: str) -> Path:
    home = home_folder(environ)
    if client == "claude-code":
        return Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    if client == "cursor":
        return home / ".cursor" / "mcp.json"
    settings = _settings_folder(home, environ, platform)
    if client == "vscode":
        return settings / "Code" / "User" / "mcp.json"
    return _claude_folder(settings, environ, platform) / "claude_desktop_config.json"


def _settings_folder(home: Path, environ: Mapping[str, str], platform: str) -> Path:
    """Where a platform's programs with windows keep their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    named = environ.get("XDG_CONFIG_HOME", "")
    return Path(named) if os.path.isabs(named) else home / ".config"  # noqa: PTH117


def _claude_folder(settings: Path, environ: Mapping[str, str], platform: str) -> Path:
    """The folder of Claude Desktop. On Windows, one from the store sees a folder of its own instead."""
    local = environ.get("LOCALAPPDATA")
    if platform == "win32" and local:
        packages = sorted(Path(local).glob("Packages/Claude_*/LocalCache/Roaming/Claude"))
        return packages[0] if packages else settings / "Claude"
    return settings / "Claude"


def start_command(
    *, uvx: bool = False, is_shared: bool = False, environ: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """The command that starts this Quire from anywhere.

    A client has another PATH than a shell, so the path is absolute; but not that of uvx in a shared file.
    """
    if uvx or _is_passing(environ):
        found = None if is_shared else shutil.which(_UVX[0], path=environ.get("PATH"))
        return (found or _UVX[0], _UVX[1])
    if installed := _installed(environ):
        return (installed,)
    beside = shutil.which("quire", path=str(Path(sys.executable).parent))
    # -P: the folder that it runs in may be a stranger's, and nothing is imported from there.
    return (beside,) if beside else (sys.executable, "-P", "-m", "quire")


def _is_passing(environ: Mapping[str, str]) -> bool:
    """Whether this Quire was started by uvx, whose folder is deleted some day."""
    caches = [
        environ.get("UV_CACHE_DIR"),
        f"{environ.get('XDG_CACHE_HOME') or home_folder(environ) / '.cache'}/uv",
    ]
    if local := environ.get("LOCALAPPDATA"):
        caches.append(f"{local}/uv/cache")
    return any(Path(sys.prefix).is_relative_to(cache) for cache in caches if cache)


def _installed(environ: Mapping[str, str]) -> str | None:
    """The first `quire` on the PATH that is in no virtual environment, if it is this version."""
    for folder in environ.get("PATH", "").split(os.pathsep):
        if not os.path.isabs(folder) or (Path(folder).parent / "pyvenv.cfg").exists():  # noqa: PTH117
            continue
        if found := shutil.which("quire", path=folder):
            return found if _is_this_version(found) else None
    return None


@cache
def _is_this_version(command: str) -> bool:
    try:
        said = subprocess.run([command, "--version"], capture_output=True, timeout=20, check=False).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return False
    return said.decode("utf-8", "replace").strip() == f"quire {VERSION}"
