"""The names of git repositories: `https://github.com/owner/name@tag:docs`, as people type them and as stored.

Pure, and light to load. Always: the place of a repository is a name of the same one; a name that is no
repository stays what it was, a page or a path; nothing of a name can be an option of git.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from quire import redact
from quire.errors import Refused
from quire.sources.names import REPOSITORY

SSH_PORT = 22
# How a forge shows a file of a ref; what kind of ref it is must be said on some.
_LINKS = {
    "github.com": "/blob/{ref}/{path}",
    "gitlab.com": "/-/blob/{ref}/{path}",
    "codeberg.org": "/src/{kind}/{ref}/{path}",
    "bitbucket.org": "/src/{ref}/{path}",
    "git.sr.ht": "/tree/{ref}/item/{path}",
}
_WITHOUT_GIT = "git.sr.ht"  # every other forge serves name.git without a redirect
# Pages of forges that look like a repository.
_PAGES = frozenset(
    [
        "about",
        "apps",
        "collections",
        "customer-stories",
        "enterprise",
        "events",
        "explore",
        "features",
        "groups",
        "help",
        "login",
        "marketplace",
        "orgs",
        "organizations",
        "pricing",
        "search",
        "security",
        "settings",
        "site",
        "sponsors",
        "stars",
        "topics",
        "trending",
        "users",
    ]
)
_URL = re.compile(r"(git\+)?(https?|ssh)://([^/?#]*)/(.*)", re.IGNORECASE | re.DOTALL)
_SCP = re.compile(r"(?:git\+)?([a-z0-9._-]+)@([a-z0-9._-]+):(?!/)(.+)", re.IGNORECASE | re.DOTALL)
_FORGE = re.compile(rf"({'|'.join(map(re.escape, _LINKS))})(/.*)", re.IGNORECASE | re.DOTALL)
_DOT_GIT = re.compile(r"([^?#@:]+?\.git)/?(?=[@:]|\Z)", re.IGNORECASE)
_ANY = re.compile(r"([^?#@:]*[^?#@:/])/?(?=[@:]|\Z)")
_PROJECT = re.compile(r"([^/?#@:]+/[^/?#@:]+?)(?:\.git)?/?(?=[@:]|\Z)", re.IGNORECASE)
_SHOWN = re.compile(r"([^/?#@:]+/[^/?#@:]+)/(?:-/)?(?:tree|src/(?:branch|tag|commit))/([^/?#]+)(/[^?#]*)?")
_REST = re.compile(r"(?:@([^:]*))?(?::(.*))?", re.DOTALL)
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\A[-/.]|[/.]\Z|\A@\Z")
_AUTHORITY = re.compile(r"(?:([^@:]*)@)?(\[[0-9a-f:.]+\]|[^@:]+)(?::(\d{1,5}))?", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository, what is read of it, and how it is reached."""

    scheme: str  # https, http, ssh, or scp for git@host:path
    user: str  # of ssh
    host: str  # in lower case
    port: int  # 0 is the usual one
    path: str  # on its host, without a slash at its ends
    ref: str = ""  # a tag, branch or commit; "" is the default branch
    folder: str = ""  # a folder or file of it; "" is all

    @property
    def url(self) -> str:
        """What git is asked for."""
        is_short = self.host in _LINKS and self.host != _WITHOUT_GIT and self.is_web
        return f"{self._base}{'.git' if is_short else ''}"

    @property
    def _base(self) -> str:
        user, port = f"{self.user}@" if self.user else "", f":{self.port}" if self.port else ""
        if self.scheme == "scp":
            return f"{user}{self.host}:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{user}{host}{port}/{self.path}"

    @property
    def is_web(self) -> bool:
        """Whether it is reached by http or https."""
        return self.scheme in ("http", "https")

    @property
    def clone(self) -> str:
        """What one clone is for: the repository at a ref."""
        is_plain = self.host in _LINKS or self.path.lower().endswith(".git") or not self.is_web
        base = self._base if is_plain else f"{REPOSITORY}{self._base}"
        return f"{base}@{self.ref}" if self.ref else base

    @property
    def place(self) -> str:
        """Its name, always written the same way."""
        return f"{self.clone}:{self.folder}" if self.folder else self.clone

    @property
    def root(self) -> str:
        """What its documents' paths start from."""
        return f"{REPOSITORY}{self.clone.removeprefix(REPOSITORY)}"

    @property
    def name(self) -> str:
        """The last name of its path."""
        last = unquote(self.path.rpartition("/")[2])
        return last[:-4] if last.lower().endswith(".git") and len(last) > len(".git") else last

    @property
    def collection(self) -> str:
        """The collection of its documents, unless another is named."""
        name = self.name.replace(":", "-")
        return f"{name}@{self.ref}" if self.ref else name

    @property
    def is_commit(self) -> bool:
        """Whether its ref can be a whole commit id."""
        return _COMMIT.fullmatch(self.ref) is not None

    def link(self, path: str, ref: str, kind: str) -> str | None:
        """The page that shows a file; `kind` is branch, tag or commit. None if the host is not known."""
        if self.host not in _LINKS:
            return None
        where = _LINKS[self.host].format(ref=quote(ref), path=quote(path), kind=kind)
        return f"https://{self.host}/{self.path.removesuffix('.git')}{where}"


def is_repository(name: str) -> bool:
    """Whether a name is that of a repository, if no file or folder has it."""
    return _split(name) is not None


def repository_of(name: str) -> Repository:
    """The repository of a name. Raises Refused for one that Quire does not ask for."""
    found = _split(name)
    if found is None:
        raise Refused(redact.text(name), "is not the URL of a git repository")
    scheme, authority, path, rest = found
    shown = name if scheme == "scp" else redact.url(name)
    ref, folder = _rest(shown, rest)
    if scheme in ("ssh", "scp"):
        return Repository(scheme, *_ssh_host(shown, authority), path.strip("/"), ref, folder)
    from quire.sources.web import target_of  # slow to load, and a search does not need it

    target = target_of(f"{scheme}://{authority}/{path.strip('/')}")
    port = 0 if target.authority in (target.host, f"[{target.host}]") else target.port
    return Repository(target.scheme, "", target.host, port, target.path.strip("/"), ref, folder)


_Parts = tuple[str, str, str, str]  # scheme, authority, path, and what follows it: @ref:folder


def _split(name: str) -> _Parts | None:
    """The parts of a repository's name; None if it is none."""
    if url := _URL.fullmatch(name.strip()):
        return _split_url(bool(url[1]), url[2].lower(), url[3], url[4])
    if scp := _SCP.fullmatch(name.strip()):
        path = _DOT_GIT.match(scp[3]) or (_ANY.match(scp[3]) if scp[1] == "git" else None)
        return ("scp", f"{scp[1]}@{scp[2]}", path[1], scp[3][path.end() :]) if path else None
    if bare := _FORGE.fullmatch(name.strip()):
        return _split_url(False, "https", bare[1], bare[2][1:])
    return None


def _split_url(is_git: bool, scheme: str, authority: str, rest: str) -> _Parts | None:
    host = authority.lower()
    if host in _LINKS and scheme != "ssh":
        scheme = "https"  # to which these redirect
        if shown := _SHOWN.fullmatch(rest):
            folder = unquote(shown[3] or "").strip("/")
            return scheme, authority, shown[1], f"@{unquote(shown[2])}{f':{folder}' if folder else ''}"
        path = _PROJECT.match(rest)
        if path and path[1].partition("/")[0].lower() not in _PAGES:
            return scheme, authority, path[1], rest[path.end() :]
    path = _DOT_GIT.match(rest) or (_ANY.match(rest) if is_git or scheme == "ssh" else None)
    return (scheme, authority, path[1], rest[path.end() :]) if path else None


def _rest(name: str, rest: str) -> tuple[str, str]:
    """The ref and the folder of `@ref:folder`."""
    found = _REST.fullmatch(rest)
    ref, folder = (found[1], found[2] or "") if found else ("", "")
    if ref is not None and (not ref or _BAD_REF.search(ref)):
        raise Refused(name, f"{ref!r} is not the name of a tag, a branch or a commit")
    steps = [step for step in folder.split("/") if step not in ("", ".")]
    if ".." in steps or "\0" in folder:
        raise Refused(name, f"{folder!r} is not a path in a repository")
    return ref or "", "/".join(steps)


def _ssh_host(name: str, authority: str) -> tuple[str, str, int]:
    """The user, host and port of ssh. A password is refused, and so is what ssh takes for an option."""
    from quire.sources.web.urls import spelled_host

    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise Refused(name, "is not an ssh URL, or holds a password. Give it as ssh://git@host/path")
    user, host, port = found[1] or "", found[2].strip("[]"), int(found[3] or 0)
    try:
        host = spelled_host(host)
    except ValueError as problem:
        raise Refused(name, f"is not an ssh URL: {problem}") from None
    if host.startswith("-") or user.startswith("-") or port > 65_535 or not re.fullmatch(r"[\w.~-]*", user):
        raise Refused(name, "is not an ssh URL: its user, host or port cannot be one")
    return user, host, 0 if port == SSH_PORT else port
