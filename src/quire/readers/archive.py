"""Files that are ZIP archives of XML, read within limits.

Always: no more than `max_bytes` are unpacked in all; XML with a document type is refused, so no entity is
expanded and nothing is fetched.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import TYPE_CHECKING
from urllib.parse import unquote

from quire.config import DocumentSettings
from quire.errors import NotPrepared, TooLarge

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MOST_MEMBERS = 20_000
_IS_ENCRYPTED = 1  # flag of a member
_HEAD = 8192  # bytes in which a file declares its namespaces
_STRICT, _USUAL = b"http://purl.oclc.org/ooxml/", b"http://schemas.openxmlformats.org/"
_NAMES = {
    b"wordprocessingml/main": _USUAL + b"wordprocessingml/2006/main",
    b"presentationml/main": _USUAL + b"presentationml/2006/main",
    b"drawingml/main": _USUAL + b"drawingml/2006/main",
    b"officeDocument/relationships": _USUAL + b"officeDocument/2006/relationships",
    b"officeDocument/math": _USUAL + b"officeDocument/2006/math",
}
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


class Archive:
    """The members of one file. Raises NotPrepared if it is damaged or encrypted."""

    def __init__(self, source: bytes, name: str, settings: DocumentSettings) -> None:
        self.name, self.settings, self.left = name, settings, settings.max_bytes
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise NotPrepared(name, f"is damaged: {error}") from None
        members = self._zip.infolist()
        if len(members) > _MOST_MEMBERS:
            raise TooLarge(name, f"holds {len(members):,} files, over {_MOST_MEMBERS:,}")
        self.members = {member.filename: member for member in members}

    def has(self, path: str) -> bool:
        """Whether there is a member at a path."""
        return path in self.members

    def read(self, path: str) -> bytes:
        """The bytes of a member. Raises TooLarge if all that was read exceeds `max_bytes`."""
        member = self.members.get(path)
        if member is None:
            raise NotPrepared(self.name, f"is damaged: it has no {path}")
        if member.flag_bits & _IS_ENCRYPTED:
            raise NotPrepared(self.name, "is encrypted. Save it again without a password")
        with self._zip.open(member) as file:  # what the archive says of its size may be wrong
            content = file.read(self.left + 1)
        if len(content) > self.left:
            raise TooLarge(self.name, self.settings.over_cap())
        self.left -= len(content)
        return content

    def xml(self, path: str) -> Element:
        """The root element of a member. Strict Office files have the names of others."""
        source = self.read(path)
        if _STRICT in source[:_HEAD]:
            for strict, usual in _NAMES.items():
                source = source.replace(_STRICT + strict, usual)
        return parse_xml(source, self.name, path)

    def optional_xml(self, path: str) -> Element | None:
        """The root element of a member, if there is one."""
        return self.xml(path) if self.has(path) else None

    def relations(self, path: str) -> dict[str, tuple[str, str, bool]]:
        """What a part of an Office file refers to, by id: type, target, and whether that is elsewhere."""
        folder, base = posixpath.split(path)
        root = self.optional_xml(f"{folder}/_rels/{base}.rels".lstrip("/"))
        found = {}
        for one in root.iter(_RELATION) if root is not None else ():
            target, outside = one.get("Target", ""), one.get("TargetMode") == "External"
            place = target if outside else resolve(path, target)
            found[one.get("Id", "")] = (one.get("Type", "").rpartition("/")[2], place, outside)
        return found


def resolve(path: str, target: str) -> str:
    """The path of a member that another one refers to."""
    target = unquote(target.partition("#")[0])
    joined = posixpath.join(posixpath.dirname(path), target)
    return posixpath.normpath(joined).lstrip("/")


def parse_xml(source: bytes, name: str, path: str) -> Element:
    """The root element of XML. Raises NotPrepared if it is damaged, or may expand entities."""
    from xml.etree import ElementTree

    if b"<!DOCTYPE" in source.replace(b"\0", b"") and b"<!ENTITY" in source.replace(b"\0", b""):
        raise NotPrepared(name, f"is not read, because {path} in it declares entities")
    try:
        return ElementTree.fromstring(source)  # noqa: S314  it declares no entities
    except ElementTree.ParseError as error:
        raise NotPrepared(name, f"is damaged: {path} in it is not XML ({error})") from None
