"""What the disk of a path is, as far as the system tells: another machine's, or kept in step with others."""

from __future__ import annotations

import os
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")  # there is one on Linux
# The types of file systems that are on another machine, as they begin.
_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.", "virtiofs", "vboxsf", "afs", "ceph", "lustre", "glusterfs")
# What shows that a program keeps a folder in step with other machines: its name, or a file in it.
_SYNCED_NAMES = {
    "Dropbox": "Dropbox",
    "OneDrive": "OneDrive",
    "Google Drive": "Google Drive",
    "GoogleDrive": "Google Drive",
    "My Drive": "Google Drive",
    "Mobile Documents": "iCloud",
    "iCloud Drive": "iCloud",
    "iCloudDrive": "iCloud",
    "CloudStorage": "a cloud service",
    "Nextcloud": "Nextcloud",
    "ownCloud": "ownCloud",
    "pCloudDrive": "pCloud",
}
_SYNCED_FILES = {
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".stfolder": "Syncthing",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
}


def network(path: str) -> str:
    """The type of the file system of a path if it is on another machine; else ""."""
    place = os.path.realpath(path)
    above = [(point, kind) for point, kind in _mounts() if _is_below(place, point)]
    kind = max(above, key=lambda one: len(one[0]), default=("", ""))[1]
    return kind if kind.startswith(_NETWORK) else ""


def synced(path: str) -> str:
    """The program that keeps the folder of a path in step with other machines; "" if none is seen."""
    for folder in Path(os.path.realpath(path)).parents:
        if found := _SYNCED_NAMES.get(folder.name.partition(" - ")[0]):
            return found
        for name, program in _SYNCED_FILES.items():
            if os.path.lexists(folder / name):
                return program
    return ""


def why_unsafe(path: str) -> str:
    """Why a library should not be at a path, and what to do; "" if nothing speaks against it."""
    elsewhere = "Keep it on a disk of this machine: quire copy --to FILE. To share it, use PostgreSQL"
    if kind := network(path):
        why = "SQLite's locks may not work there, and two machines that write can damage it"
        return f"{path} is on another machine ({kind}): {why}. {elsewhere}"
    if program := synced(path):
        why = "it may copy the file while it is written, or replace it by an older one"
        return f"{path} is in a folder that {program} keeps in step: {why}. {elsewhere}"
    return ""


def _mounts() -> list[tuple[str, str]]:
    """The mount points of this machine, and the types of their file systems."""
    try:
        lines = MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    return [(fields[1].replace("\\040", " "), fields[2]) for line in lines if len(fields := line.split()) > 2]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
