"""A service of the user that runs `quire watch`: a unit of systemd, or a property list of launchd.

Always: a file that Quire did not write is neither replaced nor removed.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quire import redact
from quire.errors import SettingError
from quire.settings import LIBRARY

_MARK = "Written by: quire watch --install"
# -P: the folder that it runs in may be a stranger's, and nothing is imported from there.
_COMMAND = (sys.executable, "-P", "-m", "quire", "watch")


@dataclass(frozen=True, slots=True)
class UserService:
    """The file of a service, and the commands that start and stop it."""

    path: Path
    content: bytes
    starts: tuple[str, ...]
    stops: tuple[str, ...]  # once the file is gone
    links: tuple[Path, ...] = ()  # that the system makes to it when it is started

    def install(self) -> None:
        """Write the file, for its user alone. Raises SettingError if another file is in its place."""
        self._check()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            # The URL of a library may hold a password.
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(self.content)
        except OSError as problem:
            raise SettingError(str(self.path), f"cannot be written: {problem.strerror}") from None

    def uninstall(self) -> bool:
        """Remove the file; returns whether there was one. Raises SettingError if it is another's."""
        self._check()
        try:
            for link in self.links:
                link.unlink(missing_ok=True)
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise SettingError(str(self.path), f"cannot be removed: {problem.strerror}") from None
        return True

    def _check(self) -> None:
        try:
            found = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as problem:
            raise SettingError(str(self.path), f"cannot be read: {problem.strerror}") from None
        if _MARK.encode() not in found:
            raise SettingError(str(self.path), "was not written by Quire. It was left as it is")


def watch_service(
    library: str, folder: Path, platform: str = sys.platform, environ: Mapping[str, str] = os.environ
) -> UserService:
    """The service that watches a library. It runs in a folder, whose settings apply.

    Raises SettingError if the system has no services that Quire knows.
    """
    if not f"{library}{folder}".isprintable():  # a line feed would begin another setting
        raise SettingError("--install", "does not take names with characters that cannot be printed")
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    name = f"quire-watch-{hashlib.sha256(library.encode()).hexdigest()[:8]}"
    if platform == "darwin":
        return _launchd(name, library, folder, home)
    if platform == "linux":
        given = environ.get("XDG_CONFIG_HOME", "")
        return _systemd(name, library, folder, Path(given) if os.path.isabs(given) else home / ".config")  # noqa: PTH117
    raise SettingError("--install", f"knows systemd and launchd, and no services of {platform}")


def _systemd(name: str, library: str, folder: Path, config: Path) -> UserService:
    content = f"""\
# {_MARK}
[Unit]
Description=Quire keeps {_escaped(redact.url(library))} up to date

[Service]
ExecStart={" ".join(map(_quoted, _COMMAND))}
WorkingDirectory={_escaped(str(folder))}
Environment={_quoted(f"{LIBRARY}={library}", is_command=False)}
Nice=10
Restart=on-failure
RestartSec=60

[Install]
WantedBy=default.target
"""
    starts = "systemctl --user daemon-reload", f"systemctl --user enable --now {name}.service"
    stops = f"systemctl --user stop {name}.service", "systemctl --user daemon-reload"
    path = config / "systemd" / "user" / f"{name}.service"
    link = path.parent / "default.target.wants" / path.name
    return UserService(path, content.encode("utf-8", "surrogateescape"), starts, stops, (link,))


def _escaped(text: str) -> str:
    """Text in which systemd sees no specifiers."""
    return text.replace("%", "%%")


def _quoted(text: str, *, is_command: bool = True) -> str:
    """One argument of systemd, whatever it holds. Only in commands a $ stands for a variable."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escaped(plain.replace("$", "$$") if is_command else plain)}"'


def _launchd(name: str, library: str, folder: Path, home: Path) -> UserService:
    content = {
        "Comment": _MARK,
        "Label": name,
        "ProgramArguments": list(_COMMAND),
        "WorkingDirectory": str(folder),
        "EnvironmentVariables": {LIBRARY: library},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
    }
    path = home / "Library" / "LaunchAgents" / f"{name}.plist"
    domain = f"gui/{os.getuid()}"
    starts = (f"launchctl bootstrap {domain} '{path}'",)
    return UserService(path, plistlib.dumps(content), starts, (f"launchctl bootout {domain}/{name}",))
