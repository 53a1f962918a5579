"""Git repositories as sources: named, cloned safely, read and refreshed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client

from quire import DocumentChange, Library, places
from quire.config import DEFAULT, Config, override
from quire.errors import NotFound, Refused, SourceError, TooLarge, TransientError, Unreadable
from quire.progress import Silent, Stopped
from quire.sources import files
from quire.sources.git import is_repository, repository_of
from quire.sync import is_web
from tests.commands import environment, run, user_settings
from tests.git_server import GitServer, Project, git, git_server, needs_git
from tests.mcp_client import ask, parameters, refused, talk
from tests.test_sources import forget_sources
from tests.web_server import site

# ------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "place", "collection"),
    [
        ("https://github.com/owner/name", "https://github.com/owner/name", "name"),
        ("https://GitHub.com/owner/name.git/", "https://github.com/owner/name", "name"),
        ("http://github.com/owner/name", "https://github.com/owner/name", "name"),
        ("github.com/owner/name@v1:docs/", "https://github.com/owner/name@v1:docs", "name@v1"),
        ("https://github.com/o/n/tree/5.2/docs/ref", "https://github.com/o/n@5.2:docs/ref", "n@5.2"),
        ("https://codeberg.org/o/n/src/tag/v2", "https://codeberg.org/o/n@v2", "n@v2"),
        ("https://gitlab.com/o/n/-/tree/main/docs", "https://gitlab.com/o/n@main:docs", "n@main"),
        ("https://git.sr.ht/~user/name", "https://git.sr.ht/~user/name", "name"),
        ("https://a.example:8443/x/y.git@1.0:docs", "https://a.example:8443/x/y.git@1.0:docs", "y@1.0"),
        ("git+https://a.example/x@team/next", "git+https://a.example/x@team/next", "x@team/next"),
        ("ssh://git@a.example:2222/x.git@v1", "ssh://git@a.example:2222/x.git@v1", "x@v1"),
        ("git@github.com:o/n.git@v1:a b.md", "git@github.com:o/n.git@v1:a b.md", "n@v1"),
        (
            "https://github.com/o/mono@pkg@1.0.0:a:b@c",
            "https://github.com/o/mono@pkg@1.0.0:a:b@c",
            "mono@pkg@1.0.0",
        ),
    ],
)
def test_a_repository_may_be_named_in_many_ways(name: str, place: str, collection: str) -> None:
    """Issue: any git URL, @tag, :path; the name is the collection."""
    found = repository_of(name)
    assert (found.place, found.collection) == (place, collection)
    assert repository_of(found.place) == found
    assert repository_of(found.root).clone == found.clone


@pytest.mark.parametrize(
    "name",
    [
        "https://github.com/o/n/blob/main/README.md",
        "https://github.com/features/actions",
        "https://github.com/o/n?tab=readme",
        "https://github.com/o",
        "https://example.com/guide",
        "example.com",
        "me@example.com:notes.md",
        "C:\\docs\\a.md",
        "C:/docs.git",
        "./docs",
        "docs.git",
        "file:///srv/x.git",
        "git://example.com/x.git",
        "ext::sh -c touch",
        "https://name:secret@github.com/o/n",
    ],
)
def test_other_names_stay_what_they_are(name: str) -> None:
    """Issue: a URL deeper in a forge is a page; a path is a path; other protocols are no repositories."""
    assert not is_repository(name)


@pytest.mark.parametrize(
    "name",
    [
        "https://github.com/o/n@-upload-pack",
        "https://github.com/o/n@",
        "https://github.com/o/n@a..b",
        "https://github.com/o/n@a b",
        "https://github.com/o/n:../../etc",
        "ssh://git:secret@example.com/x.git",
        "ssh://-oProxyCommand=touch/x.git",
        "git+https://name:secret@example.com/x",
    ],
)
def test_names_that_could_mislead_git_are_refused(name: str) -> None:
    """Issue: names that start with - can never be options; a password is never shown."""
    with pytest.raises(Refused) as refused:
        repository_of(name)
    assert "secret" not in str(refused.value)


_WORD = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,8}[a-zA-Z0-9]", fullmatch=True).filter(
    lambda word: not word.endswith(".git") and ".." not in word
)
_HOSTS = st.sampled_from(
    ["github.com", "gitlab.com", "codeberg.org", "a.example", "a.example:8443", "[2001:db8::1]"]
)


@given(_HOSTS, _WORD, _WORD, st.lists(_WORD, max_size=2), st.lists(_WORD, max_size=3))
def test_what_a_name_says_is_what_is_read(
    host: str, owner: str, name: str, ref: list[str], folder: list[str]
) -> None:
    """Issue: parsing is exact, and the stored name means the same repository."""
    tag, path = "/".join(ref), "/".join(folder)
    if tag.endswith(".lock") or ".lock/" in tag:
        return
    typed = f"git+https://{host}/{owner}/{name}{f'@{tag}' if tag else ''}{f':{path}' if path else ''}"
    found = repository_of(typed)
    assert (found.ref, found.folder, found.path) == (tag, path, f"{owner}/{name}")
    assert repository_of(found.place) == found
    assert repository_of(found.root).clone == found.clone
    assert found.root.startswith("git+")


@given(st.text(max_size=40))
def test_no_name_breaks_the_parser(text: str) -> None:
    """BAD_INPUTS: anything can be typed."""
    for name in (
        text,
        f"https://github.com/o/n{text}",
        f"git@h:{text}",
        f"ssh://{text}",
        f"git+https://{text}",
    ):
        if not is_repository(name):
            continue
        try:
            found = repository_of(name)
        except SourceError:
            continue
        assert repository_of(found.place) == found
        assert not found.url.startswith("-")


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: existing files and folders of that name win, as for sites."""
    monkeypatch.chdir(tmp_path)
    assert is_web("github.com/o/n")
    (tmp_path / "github.com" / "o" / "n").mkdir(parents=True)
    assert not is_web("github.com/o/n")


_NAMES = st.sampled_from(["a", "b", "a.md", "b.md", ".hidden.md", "node_modules", "c.py", "secrets.txt"])
_PATHS = st.lists(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=12)
_RULES = st.lists(
    st.sampled_from(["a.md", "/a.md", "a/", "b/**", "!a.md", "*.md", "!b/*.md", "a/b.md", "#", ""]),
    max_size=3,
)


@settings(max_examples=40)
@given(_PATHS, st.dictionaries(st.sampled_from(["", "a", "b", "a/b"]), _RULES), _RULES, _RULES)
def test_a_tree_is_chosen_from_as_a_folder_is(
    paths: list[str], ignored: dict[str, list[str]], include: list[str], exclude: list[str]
) -> None:
    """Issue: the same rules as for a folder: hidden, secret and ignored files, --include and --exclude."""
    wanted = files.Wanted(include=tuple(include), exclude=tuple(exclude))
    texts = {folder: "\n".join(rules) for folder, rules in ignored.items()}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for path in paths:
            if not any((root / path).parents[i].is_file() for i in range(path.count("/"))):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                if not (root / path).exists():
                    (root / path).write_text("x")
        kept = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        for folder, text in texts.items():
            if (root / folder).is_dir():
                (root / folder / ".quireignore").write_text(text)
        walked = {
            seen.path
            for seen in files.walk(root, wanted=wanted, max_bytes=1000)
            if isinstance(seen, files.FoundFile)
        }
        chooser = files.Chooser(wanted, "", {f: t for f, t in texts.items() if (root / f).is_dir()})
    assert {path for path in kept if chooser.left_out(path) is None} == walked


# --------------------------------------------------------------------------------------- reading


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with git_server(tmp_path / "server") as found:
        yield found


@pytest.fixture
def project(server: GitServer) -> Project:
    """A repository with two documents, and a file that is none."""
    made = server.project()
    made.write(
        README_md="# Read me\n\nHazelnut.\n", docs__guide_md="# Guide\n\nWalnut.\n", setup_py="print()"
    )
    made.push(tag="v1.0")
    return made


def settings_for(server: GitServer, **changes: object) -> Config:
    given = {"web": {"allow_hosts": [server.host]}, "embed": {"model": "none"}, "git": changes}
    return override(DEFAULT, given)


def open_library(place: Path | str, server: GitServer, **changes: object) -> Library:
    return Library.open(place, create=True, config=settings_for(server, **changes))


def clones() -> list[str]:
    folder = places.cache()
    found = folder / "repositories" if folder else Path()
    return sorted(path.name for path in found.iterdir()) if found.is_dir() else []


def addresses(library: Library) -> list[str]:
    return [row.address for row in library.documents()]


@needs_git
def test_a_repository_is_read_and_refreshed(library_url: str, server: GitServer, project: Project) -> None:
    """Issue: add clones and reads the documents and nothing else; refresh follows what is pushed."""
    with open_library(library_url, server) as library:
        report = library.add(project.url)
        assert (report.added, report.kinds, report.collections) == (2, {".py": 1}, {"project": 2})
        assert addresses(library) == ["project:README.md", "project:docs/guide.md"]
        (found,) = library.search("walnut").results
        assert (found.address, found.stale) == ("project:docs/guide.md#guide", False)

        (project.work / "docs" / "guide.md").rename(project.work / "docs" / "manual.md")
        project.write(README_md="# Read me\n\nPecan.\n", docs__new_md="# New\n\nAcorn.\n")
        commit = project.push()
        changes = library.check()
        assert [row.path for row in changes.changed] == ["README.md"]
        assert changes.new == ("project:docs/manual.md", "project:docs/new.md")
        report = library.refresh()
        assert (report.added, report.updated, report.moved, report.removed) == (1, 2, 1, 0)
        assert addresses(library) == ["project:README.md", "project:docs/manual.md", "project:docs/new.md"]
        assert library.search("pecan").results[0].path == "README.md"
        (source,) = library.sources()
        assert (source.type, source.options.commit, source.problem) == ("repository", commit, "")

        (project.work / "docs" / "new.md").unlink()
        project.push()
        assert library.refresh().removed == 1
        assert addresses(library) == ["project:README.md", "project:docs/manual.md"]


@needs_git
def test_an_unchanged_repository_costs_one_question(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: a refresh fetches nothing and writes nothing while the commit is the same."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        before = library.documents(), library.sources()[0].options
        server.asked.clear()
        report = library.refresh()
        assert (report.unchanged, report.documents, report.updated) == (2, 0, 0)
        assert (library.documents(), library.sources()[0].options) == before
        assert len(server.asked) == 2  # what the refs are, in two steps of the protocol
        assert not library.check()
        assert library.plan()[0].counts["unchanged"] == 2


@needs_git
def test_a_repository_that_lost_most_documents_keeps_them(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """SEEDS: documents are removed only if their source is healthy; --prune removes them anyway."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        shutil.rmtree(project.work / "docs")
        (project.work / "README.md").unlink()
        project.push()
        assert len(library.refresh().missing) == 2
        assert library.refresh(prune=True).removed == 2
        shutil.rmtree(project.bare)
        assert "not there" in library.refresh().failed[0].reason


@needs_git
def test_tags_branches_commits_and_paths_are_read(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: @tag, @branch, @commit and :path, side by side."""
    first = git(project.work, "rev-parse", "HEAD")
    project.write(docs__guide_md="# Guide\n\nPistachio.\n", docs__deep__more_md="# More\n\nCashew.\n")
    project.push(branch="team/next")
    project.push()
    with open_library(tmp_path / "a.db", server) as library:
        library.add(f"{project.url}@v1.0")
        library.add(f"{project.url}@team/next:docs/deep")
        library.add(f"{project.url}@{first}:README.md", collection="first")
        library.add(f"{project.url}:docs/guide.md")
        assert addresses(library) == [
            *("first:README.md", "project:docs/guide.md", "project@team/next:docs/deep/more.md"),
            *("project@v1.0:README.md", "project@v1.0:docs/guide.md"),
        ]
        assert "Walnut" in library.read("project@v1.0:docs/guide.md").text
        assert "Pistachio" in library.read("project:docs/guide.md").text
        for wrong in ("@v9", ":nowhere", f"@{first[:7]}"):
            with pytest.raises(NotFound):
                library.add(f"{project.url}{wrong}")
        assert len(library.sources()) == 4


@needs_git
def test_two_parts_of_a_repository_share_a_collection(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: paths start at the repository's root, so parts of it never collide."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(f"{project.url}:docs")
        library.add(project.url)
        assert addresses(library) == ["project:README.md", "project:docs/guide.md"]
        library.remove_source(project.url)
        assert addresses(library) == ["project:docs/guide.md"]
        assert library.refresh().unchanged == 1
        other = library.add(f"{project.url}@v1.0", collection="project")
        assert "already has this path" in other.failed[0].reason


@needs_git
def test_the_options_of_a_source_apply(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: --include, --exclude, .quireignore and removed documents, as in a folder."""
    project.write(docs__draft_md="# Draft\n", docs__secrets_txt="x", docs__note_cfg="[a]\n")
    project.put("docs/.quireignore", "draft.md\n")
    project.put(".github/issue.md", "# Issue\n")
    project.put("node_modules/x/README.md", "# X\n")
    project.push()
    with open_library(tmp_path / "a.db", server) as library:
        report = library.add(project.url, exclude=["README.md"])
        assert addresses(library) == ["project:docs/guide.md"]
        assert report.kinds == {".py": 1, ".cfg": 1, "may hold secrets": 1}
        library.add(project.url, exclude=[], include=["*.cfg", "*.md"])
        assert addresses(library) == ["project:README.md", "project:docs/guide.md", "project:docs/note.cfg"]
        library.remove("project:README.md")
        library.refresh()
        assert addresses(library) == ["project:docs/guide.md", "project:docs/note.cfg"]


def test_documents_link_to_the_page_that_shows_them() -> None:
    """Issue: a document has a URL when its host is known to show files."""
    github = repository_of("git@github.com:o/n.git@v1")
    assert github.link("a b/c.md", "v1", "tag") == "https://github.com/o/n/blob/v1/a%20b/c.md"
    forgejo = repository_of("https://codeberg.org/o/n")
    assert forgejo.link("c.md", "main", "branch") == "https://codeberg.org/o/n/src/branch/main/c.md"
    assert repository_of("https://a.example/n.git").link("c.md", "main", "branch") is None


@needs_git
def test_a_renamed_document_has_its_new_link(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: results link to the file as it is called now."""
    from quire.sources.git import repository

    monkeypatch.setitem(repository._LINKS, "127.0.0.1", "/blob/{ref}/{path}")
    monkeypatch.setattr(repository, "_WITHOUT_GIT", "127.0.0.1")
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        (found,) = library.search("walnut").results
        assert (found.url, found.stale) == ("https://127.0.0.1/project/blob/main/docs/guide.md", False)
        (project.work / "docs" / "guide.md").rename(project.work / "docs" / "manual.md")
        project.push()
        assert library.refresh().moved == 1
        (found,) = library.search("walnut").results
        assert found.url == "https://127.0.0.1/project/blob/main/docs/manual.md"
        assert library.refresh().unchanged == 2


# ---------------------------------------------------------------------------------------- safety


@needs_git
def test_a_hostile_repository_runs_nothing(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: no hooks, filters, links, submodules or Git LFS are run or followed."""
    trap, marks = tmp_path / "trap", tmp_path / "marks"
    trap.write_text(f"#!/bin/sh\ntouch {marks}\ncat\n")
    trap.chmod(0o755)
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nhidden pearl\n")
    project.put(".gitattributes", "*.md filter=trap diff=trap\n*.bin filter=lfs\n")
    project.put(".gitmodules", f'[submodule "s"]\n\tpath = s\n\turl = {project.bare}\n\tupdate = !{trap}\n')
    project.put(".lfsconfig", f"[lfs]\n\turl = http://{server.host}/lfs\n")
    project.put("big.md", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    (project.work / "link.md").symlink_to(secret)
    (project.work / "folder").symlink_to(tmp_path)
    git(project.work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    hooks = project.bare / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
        shutil.copy(trap, hooks / name)
    git(project.work, "add", "--all")
    git(project.work, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},s")
    git(project.work, "commit", "--quiet", "--message", "trap")
    (hooks / "reference-transaction").unlink()  # a push runs it on the server, which is the server's business
    git(project.work, "push", "--quiet", str(project.bare), "HEAD:refs/heads/main")
    with open_library(tmp_path / "a.db", server) as library:
        report = library.add(project.url)
        assert report.kinds["behind symbolic links"] == 2
        assert report.kinds["in submodules"] == 1
        assert report.kinds["in Git LFS"] == 1
        assert addresses(library) == ["project:README.md", "project:docs/guide.md"]
        assert not library.search("pearl").good_match
    assert not marks.exists()


@needs_git
def test_the_settings_of_the_user_are_not_used(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: no credential helper, no proxy, no redirection by settings or variables."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[url "http://nowhere.invalid/"]\n\tinsteadOf = http://{server.host}/\n'
    )
    (home / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    for name, value in {
        "HOME": str(home),
        "GIT_DIR": str(tmp_path),
        "GIT_SSH_COMMAND": "false",
        "http_proxy": "http://nowhere.invalid",
        "GIT_PROXY_COMMAND": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": "/tmp",
    }.items():
        monkeypatch.setenv(name, value)
    with open_library(tmp_path / "a.db", server) as library:
        assert library.add(project.url).added == 2
        server.answer = 401, {"www-authenticate": 'Basic realm="x"'}
        with pytest.raises(NotFound, match="not for everyone"):
            library.add(project.url)
    assert server.passwords == []


@needs_git
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1/x.git", "not at a public address"),
        ("git+https://10.0.0.1/x", "not at a public address"),
        ("https://[::1]/x.git", "not at a public address"),
        ("https://a.example:8443/x.git", "names port 8443"),
        ("https://localhost/x.git", "which is not a public address"),
        ("ssh://git@127.0.0.1/x.git", "which is not a public address"),
        ("ssh://git@a.example:2222/x.git", "names port 2222"),
        ("git@localhost:x.git", "which is not a public address"),
        ("git://127.0.0.1/x.git", "not an http or https URL"),
        ("file:///srv/x.git", "not an http or https URL"),
        ("git+file:///srv/x.git", "not an http or https URL"),
    ],
)
def test_hosts_and_protocols_are_checked_as_on_the_web(tmp_path: Path, url: str, reason: str) -> None:
    """Issue: protocol and host checks as for the web."""
    with Library.open(tmp_path / "a.db", create=True) as library:
        with pytest.raises(Refused, match=reason):
            library.add(url)
        assert library.sources() == []


@needs_git
def test_what_the_server_answers_decides_whether_to_try_again(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: 404 and passwords are final, redirects are not followed, and a broken server may work later."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        for status, headers, error in (
            (404, {}, NotFound),
            (401, {"www-authenticate": "Basic"}, NotFound),
            (301, {"location": f"http://{server.host}/project.git/info/refs"}, Refused),
            (503, {}, TransientError),
            (200, {"content-type": "text/html"}, NotFound),
        ):
            server.answer = status, headers
            server.asked.clear()
            with pytest.raises(error):
                library.add(project.url)
            assert len(server.asked) <= 2
        report = library.refresh()
        assert len(report.failed) == 1
        server.answer = None
        assert library.refresh().unchanged == 2
        assert library.sources()[0].problem == ""


@needs_git
def test_a_large_repository_is_stopped(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: limits on bytes, files and time; what is left of a clone is removed."""
    project.put("big.bin", os.urandom(3_000_000))
    project.push()
    for limit, error in (({"max_bytes": 500_000}, TooLarge), ({"max_files": 3}, TooLarge)):
        with open_library(tmp_path / "a.db", server, **limit) as library, pytest.raises(error):
            library.add(project.url)
        assert clones() == []


@needs_git
def test_documents_that_swell_are_stopped(tmp_path: Path, server: GitServer, project: Project) -> None:
    """BAD_INPUTS: a small pack may hold texts of any size."""
    for number in range(4):
        project.put(f"{number}.md", f"# {number}\n" + "walnut " * 100_000)
    project.push()
    with open_library(tmp_path / "a.db", server, max_bytes=1_000_000) as library:
        with pytest.raises(TooLarge, match="its documents are over"):
            library.add(project.url)
        assert library.add(f"{project.url}:1.md").added == 1


@needs_git
def test_a_server_that_says_nothing_is_given_up(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: a limit of time; git ends with all that it started."""
    server.hold = threading.Event()
    began = time.monotonic()
    with open_library(tmp_path / "a.db", server, deadline=0.5) as library:
        with pytest.raises(TransientError, match=r"git\.deadline"):
            library.add(project.url)
        assert library.sources() == []
    assert time.monotonic() - began < 5
    server.hold.set()
    left = [link for link in Path("/proc").glob("[0-9]*/cwd") if _leads_into(link, tmp_path / "cache")]
    assert left == []
    assert clones() == []


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return link.readlink().is_relative_to(folder)
    except OSError:
        return False


@needs_git
def test_a_document_that_is_too_large_is_skipped_alone(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """BAD_INPUTS: whatever one document does, the others are unharmed."""
    project.write(large_md="# Large\n" + "x" * 5000)
    project.push()
    config = settings_for(server)
    config = replace(config, document=replace(config.document, max_bytes=1000))
    with Library.open(tmp_path / "a.db", create=True, config=config) as library:
        report = library.add(project.url)
        assert (report.added, len(report.skipped)) == (2, 1)
        assert "max_bytes" in report.skipped[0].reason


def test_git_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: a clear error that says how to get git."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with (
        Library.open(tmp_path / "a.db", create=True) as library,
        pytest.raises(Unreadable, match=r"git is not installed.*git-scm"),
    ):
        library.add("https://github.com/o/n")


@needs_git
def test_git_connects_to_the_address_that_was_checked(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: the name is looked up once, and git is pinned to what was found."""
    asked = list[str]()

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    host = f"quire.invalid:{server.port}"  # a name that no other resolver knows
    config = override(settings_for(server), {"web": {"allow_hosts": [host]}})
    with Library.open(tmp_path / "a.db", create=True, config=config) as library:
        assert library.add(f"http://{host}/project.git").added == 2
    assert asked == ["quire.invalid"]
    with (
        Library.open(tmp_path / "b.db", create=True) as library,
        pytest.raises(Refused, match=r"127\.0\.0\.1"),
    ):
        library.add("http://quire.invalid/project.git")


@needs_git
def test_a_repository_is_read_by_ssh(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: ssh only if its URL was named; it asks nothing and goes to the checked address."""
    program, log = tmp_path / "bin" / "ssh", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    config = override(settings_for(server), {"web": {"allow_hosts": ["127.0.0.1:22"]}})
    with Library.open(tmp_path / "a.db", create=True, config=config) as library:
        assert library.add(f"ssh://git@127.0.0.1{project.bare}:docs").added == 1
        assert addresses(library) == ["project:docs/guide.md"]
        assert library.refresh().unchanged == 1
    for option in ("BatchMode=yes", "HostName=127.0.0.1", "HostKeyAlias=127.0.0.1"):
        assert option in log.read_text()


@needs_git
def test_paths_and_trees_of_every_kind_are_survived(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """BAD_INPUTS: names that are not UTF-8, names with line feeds and colons, deep folders, empty files."""
    names = [
        "a\nb.md",
        "c:d#e.md",
        "\udcff.md",
        "-rf.md",
        "é.md",
        "x" * 200 + ".md",
        "/".join("d" * 60) + "/deep.md",
    ]
    for number, name in enumerate(names):
        path = project.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Title {number}\n\nBrazil {number}.\n")
    (project.work / "empty.md").write_bytes(b"")
    (project.work / "binary.md").write_bytes(bytes(1000))
    project.push()
    with open_library(tmp_path / "a.db", server) as library:
        report = library.add(project.url)
        assert [one.source for one in report.failed] == ["binary.md"]
        assert {row.path for row in library.documents()} == {
            *("README.md", "docs/guide.md", "empty.md", "\\xff.md"),
            *(name for name in names if name != "\udcff.md"),
        }
        assert library.refresh().unchanged == report.added


@needs_git
def test_a_tree_that_repeats_itself_is_stopped(tmp_path: Path, server: GitServer, project: Project) -> None:
    """BAD_INPUTS: a few objects can stand for billions of files."""
    blob = git(project.work, "hash-object", "-w", "README.md")
    lines = [f"100644 blob {blob}\tf{number}.md" for number in range(10)]
    for _ in range(9):
        tree = _made_tree(project, lines)
        lines = [f"040000 tree {tree}\td{number}" for number in range(10)]
    commit = git(project.work, "commit-tree", _made_tree(project, lines), "-m", "bomb")
    git(project.work, "push", "--quiet", "--force", str(project.bare), f"{commit}:refs/heads/main")
    with (
        open_library(tmp_path / "a.db", server, max_files=20_000) as library,
        pytest.raises(TooLarge, match="max_files"),
    ):
        library.add(project.url)


def _made_tree(project: Project, lines: list[str]) -> str:
    made = subprocess.run(
        ["git", "mktree"],
        input="\n".join(lines),
        cwd=project.work,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


# ----------------------------------------------------------------------------------------- clones


@needs_git
def test_a_damaged_or_missing_clone_is_made_again(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: the cache may be removed or damaged at any time."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        (name,) = clones()
        home = tmp_path / "cache" / "quire" / "repositories" / name
        (home / "git" / "config").write_text("[broken")
        assert library.refresh().unchanged == 2
        for pack in (home / "git" / "objects" / "pack").iterdir():
            pack.chmod(0o600)
            pack.write_bytes(b"nothing")
        project.write(new_md="# New\n\nAcorn.\n")
        project.push()
        assert library.refresh().added == 1
        shutil.rmtree(home)
        assert library.refresh().unchanged == 3


@needs_git
def test_a_clone_does_not_grow_without_end(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: what no commit needs any more leaves the cache."""
    monkeypatch.setattr("quire.sources.git.clone._MANY_PACKS", 1)
    with open_library(tmp_path / "a.db", server) as library:
        for number in range(3):
            project.put("big.bin", os.urandom(300_000))
            project.write(README_md=f"# Read me\n\nPecan {number}.\n")
            project.push()
            library.add(project.url)
        files = (tmp_path / "cache").rglob("*")
        assert sum(path.stat().st_size for path in files if path.is_file()) < 500_000
        assert "Pecan 2" in library.read("project:README.md").text
        assert library.refresh().unchanged == 2


@needs_git
def test_older_commits_do_not_count_against_the_limit(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: the limit is of one commit; what is left of older ones never makes a refresh fail."""
    with open_library(tmp_path / "a.db", server, max_bytes=500_000) as library:
        for number in range(2):
            project.put("big.bin", os.urandom(300_000))
            project.write(README_md=f"# Read me\n\nPecan {number}.\n")
            project.push()
            library.add(project.url)
        assert "Pecan 1" in library.read("project:README.md").text
        project.put("big.bin", os.urandom(600_000))
        project.push()
        assert "git.max_bytes" in library.refresh().failed[0].reason
        assert len(library.documents()) == 2
        project.put("big.bin", b"")
        project.push()
        assert library.refresh().unchanged == 2


@needs_git
def test_a_cache_that_cannot_be_written_harms_no_other_source(
    tmp_path: Path, server: GitServer, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAD_INPUTS: a full or read-only disk is told, and the other sources are refreshed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n")
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        library.add(tmp_path / "docs")
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        report = library.refresh()
        assert (report.unchanged, len(report.failed)) == (1, 1)
        assert "cannot be written" in report.failed[0].reason


@needs_git
def test_a_library_that_lost_its_sources_finds_the_repository_again(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: the root of a document names its repository, as that of a file names its folder."""
    with open_library(tmp_path / "a.db", server) as library:
        library.add(f"{project.url}@v1.0")
        before = library.sources()[0].place
        forget_sources(library)
        (source,) = library.sources()
        assert (source.type, source.place, source.documents) == ("repository", before, 2)
        assert library.refresh().failed == []
        assert library.refresh().unchanged == 2


@needs_git
def test_the_clones_of_removed_sources_go(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: cached clones of removed sources are removed, and those of a dry run."""
    with open_library(tmp_path / "a.db", server) as library:
        assert library.plan(project.url)[0].counts["add"] == 2
        assert clones() == []
        library.add(project.url)
        library.add(f"{project.url}:docs")
        library.add(f"{project.url}@v1.0")
        assert len(clones()) == 2
        library.remove_source(f"{project.url}:docs")
        assert len(clones()) == 2  # the whole repository still needs it
        library.remove(collection="project@v1.0")
        assert len(clones()) == 1
        library.remove(collection="project")
        assert clones() == []


@needs_git
def test_several_processes_may_read_one_repository(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: two processes at once do not break each other."""
    place = tmp_path / "home"
    place.mkdir()
    user_settings(place, f'[web]\nallow_hosts = ["{server.host}"]\n')
    command = [sys.executable, "-m", "quire", "add", project.url]
    started = [
        subprocess.Popen(
            [*command, "-L", f"{number}.db"], cwd=place, env=environment(place), stderr=subprocess.PIPE
        )
        for number in range(2)
    ]
    told = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], told


@needs_git
def test_a_killed_clone_is_made_again(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: a clone that was killed in the middle is no harm, and nothing of it goes on running."""
    hold = threading.Event()
    server.hold = hold
    place = tmp_path / "home"
    place.mkdir()
    user_settings(place, f'[web]\nallow_hosts = ["{server.host}"]\n')
    command = [sys.executable, "-m", "quire", "add", project.url, "-L", "a.db"]
    process = subprocess.Popen(command, cwd=place, env=environment(place), stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while len(server.asked) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.wait()
    hold.set()
    server.hold = None
    out, _ = run(place, "add", project.url, "-L", "a.db", "--json")
    assert '"added": 2' in out


# -------------------------------------------------------------------------------------- surfaces


@needs_git
def test_progress_tells_of_cloning_and_can_stop_it(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: progress reports cloning, then indexing; whoever stops it stops git."""

    class Told(Silent):
        def __init__(self) -> None:
            self.works, self.stops = list[str](), False

        def begin(self, work: str, total: int, unit: str) -> None:
            self.works.append(work)

        def advance(self, amount: int, failed: int = 0) -> None:
            if self.stops:
                raise Stopped

    told = Told()
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url, progress=told)
        assert told.works[:2] == ["cloning project", "indexing 2 files"]
        told.stops = True
        with pytest.raises(Stopped):
            library.refresh(progress=told)
        assert library.refresh().unchanged == 2


@needs_git
def test_repositories_are_watched_as_pages_are(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: watch fetches a repository again after watch.pages seconds."""
    changes, stop = list[str](), threading.Event()
    with open_library(tmp_path / "a.db", server) as library:
        library.add(project.url)
        project.write(new_md="# New\n\nAcorn.\n")
        project.push()
        library.store.note_checked([replace(library.sources()[0], checked_at=0)])

        def seen(change: DocumentChange) -> None:
            changes.append(f"{change.action} {change.address}")
            stop.set()

        end = threading.Timer(20, stop.set)
        end.start()
        library.watch(seen, on_note=lambda _: None, stop=stop)
        end.cancel()
        assert changes == ["add project:new.md"]


@needs_git
def test_agents_add_repositories_by_their_urls(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: the MCP tool add takes a repository, and search the newest of its versions."""
    user_settings(tmp_path, f'[web]\nallow_hosts = ["{server.host}"]\n')
    project.write(docs__guide_md="# Guide\n\nWalnut oil.\n")
    project.push(tag="v1.10")

    async def work(client: Client) -> None:
        urls = [f"{project.url}@v1.0", f"{project.url}@v1.10"]
        assert "4 added" in await ask(client, "add", sources=urls)
        found = await ask(client, "search", query="walnut")
        assert "project@v1.10:docs/guide.md" in found
        assert "project@v1.0:docs/guide.md" not in found
        assert "Older versions were left out: project@v1.0." in found
        listed = await ask(client, "list", collection="project")
        assert "project is project@v1.10, the newest of 2 versions" in listed
        by_ssh = f"ssh://git@{server.host}/x.git"
        assert "only http and https" in await refused(client, "add", sources=[by_ssh])

    (tmp_path / "docs").mkdir()
    talk(parameters(tmp_path), work)


@needs_git
def test_the_command_adds_repositories(tmp_path: Path, server: GitServer, project: Project) -> None:
    """Issue: quire add URL, --dry-run, sources, sources remove."""
    place = tmp_path / "home"
    place.mkdir()
    user_settings(place, f'[web]\nallow_hosts = ["{server.host}"]\n')
    out, _ = run(place, "add", project.url, "--dry-run")
    assert "add" in out
    assert "docs/guide.md" in out
    out, err = run(place, "add", f"{project.url}@v1.0")
    assert "2 added" in out + err
    out, _ = run(place, "where")
    assert f"clones of repositories: {place / '.cache' / 'quire' / 'repositories'}" in out
    out, _ = run(place, "sources")
    assert "repository in project@v1.0: 2 documents" in out
    assert git(project.work, "rev-parse", "HEAD")[:12] in out
    out, _ = run(place, "search", "walnut", "-c", "project")
    assert "project@v1.0:docs/guide.md" in out
    run(place, "sources", "remove", f"{project.url}@v1.0")
    out, _ = run(place, "list")
    assert out == ""


@needs_git
def test_a_branch_that_is_gone_says_how_to_remove_it(
    tmp_path: Path, server: GitServer, project: Project
) -> None:
    """Issue: the message names --prune, and how to remove the source that is left without documents."""
    project.push(branch="next")
    with open_library(tmp_path / "a.db", server) as library:
        with pytest.raises(NotFound) as typed:
            library.add(f"{project.url}@nxt")
        assert "--prune" not in str(typed.value)
        library.add(f"{project.url}@next")
        git(project.bare, "branch", "--delete", "--force", "next")
        remove = f"To remove the source too: quire sources remove {project.url}@next"
        how = f"To remove its documents: quire refresh --prune. {remove}"
        for prune, removed in ((False, 0), (True, 2), (False, 0)):
            report = library.refresh(prune=prune)
            assert report.removed == removed
            assert [failed.reason.endswith(f" {how}") for failed in report.failed] == [True] * (not prune)
        library.remove_source(f"{project.url}@next")
        assert library.refresh().failed == []


@needs_git
@pytest.mark.parametrize("number", [1, 2])
def test_symbolic_links_are_counted_as_such(
    tmp_path: Path, server: GitServer, project: Project, number: int
) -> None:
    """Issue: `skipped 1 links` is no English, and could mean links in a text."""
    for name in range(number):
        (project.work / f"{name}.md").symlink_to("README.md")
    project.push()
    user_settings(tmp_path, f'[web]\nallow_hosts = ["{server.host}"]\n')
    told = "".join(run(tmp_path, "add", project.url))
    assert f" {number} behind symbolic links" in told


@pytest.mark.parametrize(
    ("url", "how"),
    [
        ("git://a.example/x.git", "nor an ssh URL of a git repository. Try https://HOST/NAME.git"),
        ("git+ftp://a.example/x", "nor an ssh URL of a git repository"),
        ("file:///srv/x.git", "To add a file or folder, give its path"),
        ("git+file:///srv/x.git", "To add a file or folder, give its path"),
    ],
)
def test_a_protocol_that_is_not_used_names_another_way(tmp_path: Path, url: str, how: str) -> None:
    """Issue: a message for what people type; ssh is allowed for repositories."""
    with (
        Library.open(tmp_path / "a.db", create=True) as library,
        pytest.raises(Refused, match="is not an http or https URL") as refused,
    ):
        library.add(url)
    assert how in str(refused.value)


@needs_git
def test_a_server_with_the_dumb_protocol_is_named(tmp_path: Path, project: Project) -> None:
    """Issue: plain files over HTTP cannot be cloned shallowly, and the message says so in English."""
    git(project.bare, "update-server-info")
    with site() as web:
        for file in project.bare.rglob("*"):
            if file.is_file():
                web.page(f"/x.git/{file.relative_to(project.bare)}", file.read_bytes())
        config = replace(DEFAULT, web=replace(DEFAULT.web, allow_hosts=(web.host,)))
        with (
            Library.open(tmp_path / "a.db", create=True, config=config) as library,
            pytest.raises(Refused, match='only git\'s old "dumb" protocol, which cannot be cloned shallowly'),
        ):
            library.add(web.url("/x.git"))


@pytest.mark.parametrize(("kept", "asked"), [("shop@v4.9", "shop@4.9"), ("shop@4.9", "shop@v4.9")])
def test_a_version_is_found_with_and_without_its_v(tmp_path: Path, kept: str, asked: str) -> None:
    """Issue: a leading v makes no difference; the exact name wins, and other names stay what they are."""
    with Library.open(tmp_path / "a.db", create=True) as library:
        for collection in (kept, "shop@v4.10", "shop@vmain"):
            library.add(
                content=f"# Sign in\n\nPasskeys in {collection}.\n", path="a.md", collection=collection
            )
        found = library.search("passkeys", collection=asked).results
        assert [result.collection for result in found] == [kept]
        assert [row.collection for row in library.documents(asked)] == [kept]
        assert library.documents("shop@main") == []
        library.add(content="# Sign in\n\nPasskeys.\n", path="b.md", collection=asked)
        assert [row.address for row in library.documents(asked)] == [f"{asked}:b.md"]
