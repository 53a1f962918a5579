"""Folders to the files in them: every row on a real tree."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from quire.errors import SettingError, Unreadable
from quire.sources import files
from quire.sources.files import ENDINGS, UNWANTED_FOLDERS, FoundFile, PassedOver, Skipped

CAP = 1000


def grow(root: Path, *paths: str) -> Path:
    """Files under a folder; a path that ends in a slash is a folder."""
    for path in paths:
        place = root / path
        (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.write_text("text\n", "utf-8")
    return root


def ignore(root: Path, *lines: str, name: str = ".gitignore") -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def walk(root: Path, cap: int = CAP) -> list[FoundFile | Skipped]:
    """What is wanted of a folder; what nobody asked for is passed over."""
    return [seen for seen in files.walk(root, max_bytes=cap) if not isinstance(seen, PassedOver)]


def paths(root: Path) -> list[str]:
    """The files found, when nothing is skipped."""
    walked = walk(root)
    assert [item for item in walked if isinstance(item, Skipped)] == []
    return [item.path for item in walked if isinstance(item, FoundFile)]


def only_skipped(root: Path, cap: int = CAP) -> Skipped:
    (item,) = walk(root, cap)
    assert isinstance(item, Skipped)
    return item


def test_files_come_in_order_of_name_and_depth_first(tmp_path: Path) -> None:
    """DESIGN §1: the same input gives the same result, in any process."""
    grow(tmp_path, "c.md", "b/z.md", "b/a/x.md", "a.md", "B.md")
    assert paths(tmp_path) == ["B.md", "a.md", "b/a/x.md", "b/z.md", "c.md"]


def test_a_found_file_can_be_opened_and_says_its_size_and_time(tmp_path: Path) -> None:
    """Size and time tell whether a file may have changed."""
    grow(tmp_path, "docs/a.md")
    os.utime(tmp_path / "docs/a.md", ns=(1, 1_700_000_000_123_456_789))
    (found,) = walk(tmp_path)
    assert found == FoundFile(str(tmp_path / "docs/a.md"), "docs/a.md", 5, 1_700_000_000_123_456_789)
    assert files.read_bytes(found.absolute) == b"text\n"


def test_a_relative_root_gives_absolute_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A found file opens from anywhere."""
    grow(tmp_path, "docs/a.md")
    monkeypatch.chdir(tmp_path)
    (found,) = files.walk("docs", max_bytes=CAP)
    assert found == FoundFile(
        str(tmp_path / "docs/a.md"), "a.md", 5, (tmp_path / "docs/a.md").stat().st_mtime_ns
    )


def test_only_wanted_endings_are_found_in_any_case(tmp_path: Path) -> None:
    """Endings are compared in lower case; other files are passed over without a word."""
    grow(tmp_path, "a.MD", "b.Markdown", "c.mdx", "d.txt", "e.rst", "f.py", "md", "g.md.bak")
    assert paths(tmp_path) == ["a.MD", "b.Markdown", "c.mdx", "d.txt", "e.rst"]


def test_what_is_included_is_taken_whatever_its_ending(tmp_path: Path) -> None:
    """Issue: include names what is wanted, and nothing else is."""
    grow(tmp_path, "a.md", "b.adoc")
    wanted = files.Wanted(include=("*.adoc",))
    (found,) = (s for s in files.walk(tmp_path, wanted=wanted, max_bytes=CAP) if isinstance(s, FoundFile))
    assert isinstance(found, FoundFile)
    assert found.path == "b.adoc"


def test_hidden_and_unwanted_folders_are_not_entered(tmp_path: Path) -> None:
    """Hidden files and folders, and those of package managers and caches, are passed over."""
    grow(tmp_path, ".a.md", ".git/a.md", "node_modules/a.md", "x/node_modules/y/a.md", "__pycache__/a.md")
    grow(tmp_path, "node_modules.md", "x/a.md")
    assert paths(tmp_path) == ["node_modules.md", "x/a.md"]


@pytest.mark.parametrize("name", ["absent", "a.md", "nul\0"])
def test_a_root_that_is_no_folder_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """BAD_INPUTS: unreadable is said, before anything is taken from the walk."""
    grow(tmp_path, "a.md")
    with pytest.raises(Unreadable):
        files.walk(tmp_path / name, max_bytes=CAP)


def test_a_cap_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    """BAD_INPUTS: a setting out of its range is an error that names it."""
    with pytest.raises(SettingError, match="max_bytes"):
        files.walk(tmp_path, max_bytes=0)


def test_an_empty_root_holds_nothing(tmp_path: Path) -> None:
    """BAD_INPUTS: a folder that is empty is no error."""
    assert walk(tmp_path) == []


def test_a_file_over_the_cap_is_skipped_and_the_cap_named(tmp_path: Path) -> None:
    """BAD_INPUTS: over the size cap, a clear error with the cap's name."""
    grow(tmp_path, "a.md")
    assert paths(tmp_path) == ["a.md"]
    assert [type(item) for item in walk(tmp_path, cap=5)] == [FoundFile]
    skipped = only_skipped(tmp_path, cap=4)
    assert skipped.source == "a.md"
    assert "5 bytes is over max_bytes = 4" in skipped.reason


# Links


def test_links_inside_the_root_are_followed(tmp_path: Path) -> None:
    """A link to a file, or to a folder no other way leads to, is read under its own name."""
    grow(tmp_path, ".store/deep/a.md", "real.md")
    (tmp_path / "alias.md").symlink_to("real.md")
    (tmp_path / "shown").symlink_to(".store/deep")
    assert paths(tmp_path) == ["alias.md", "real.md", "shown/a.md"]


def test_a_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    """The inside of a root is judged by where it really is."""
    grow(tmp_path, "real/.b/b.md")
    (tmp_path / "real/b").symlink_to(tmp_path / "real/.b")
    (tmp_path / "root").symlink_to("real")
    assert paths(tmp_path / "root") == ["b/b.md"]


def test_links_out_of_the_root_are_skipped(tmp_path: Path) -> None:
    """BAD_INPUTS: symlink out of the root, skipped; a name that only begins alike is outside."""
    root = grow(tmp_path, "root/", "root2/secret.md") / "root"
    (root / "file.md").symlink_to("../root2/secret.md")
    (root / "folder").symlink_to(tmp_path / "root2")
    (root / "program").symlink_to("../root2/secret.md")
    reason = "links to a place outside root"
    assert walk(root) == [Skipped("file.md", reason), Skipped("folder", reason)]


def test_a_link_to_a_link_out_of_the_root_is_skipped(tmp_path: Path) -> None:
    """BAD_INPUTS: where a link leads in the end is what counts."""
    root = grow(tmp_path, "root/", "secret.md") / "root"
    (root / ".hop").symlink_to(tmp_path)
    (root / "a.md").symlink_to(".hop/secret.md")
    assert only_skipped(root) == Skipped("a.md", "links to a place outside root")


def test_link_loops_are_visited_once(tmp_path: Path) -> None:
    """BAD_INPUTS: symlink loop, visited once."""
    grow(tmp_path, "a/b/x.md")
    (tmp_path / "a/b/up").symlink_to("..")
    (tmp_path / "a/root").symlink_to(tmp_path)
    (tmp_path / "here").symlink_to(".")
    (tmp_path / "self").symlink_to("self")
    assert paths(tmp_path) == ["a/b/x.md"]


def test_a_folder_keeps_its_own_name_and_rules_when_a_link_comes_first(tmp_path: Path) -> None:
    """Adding a link to a folder does not rename its documents, nor lose them."""
    grow(tmp_path, "z/x.md", "a/")
    ignore(tmp_path / "a", "*.md")
    (tmp_path / "a/link").symlink_to("../z")
    (tmp_path / "b").symlink_to("z")
    assert paths(tmp_path) == ["z/x.md"]


def test_a_link_that_leads_nowhere_is_skipped(tmp_path: Path) -> None:
    """BAD_INPUTS: what is absent is reported, and the walk goes on; unwanted names are not."""
    grow(tmp_path, "b.md")
    for name in ("a.md", "a.so"):
        (tmp_path / name).symlink_to("absent")
    (tmp_path / "c.md").symlink_to("c.md")
    nowhere = "is a link that leads nowhere"
    first, second, third = walk(tmp_path)
    assert (first, third) == (Skipped("a.md", nowhere), Skipped("c.md", nowhere))
    assert isinstance(second, FoundFile)


# What is no file


def test_pipes_and_sockets_are_skipped_unopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAD_INPUTS: FIFO and socket, skipped unopened: opening this pipe would never end."""
    monkeypatch.chdir(tmp_path)  # a socket's address is short
    os.mkfifo("a.md")
    os.mkfifo("other")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("b.md")
        walked = walk(tmp_path)
    assert walked == [
        Skipped("a.md", "is a pipe, not a file"),
        Skipped("b.md", "is a socket, not a file"),
    ]


def test_a_link_to_a_pipe_is_skipped_unopened(tmp_path: Path) -> None:
    """BAD_INPUTS: a pipe is one under any name."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.md").symlink_to("pipe")
    assert only_skipped(tmp_path) == Skipped("a.md", "is a pipe, not a file")


def test_devices_are_skipped_unopened(tmp_path: Path) -> None:
    """BAD_INPUTS: device, skipped unopened."""
    try:
        os.mknod(tmp_path / "a.md", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only an administrator makes devices")
    assert only_skipped(tmp_path) == Skipped("a.md", "is a device, not a file")


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator may read every folder")
def test_a_forbidden_folder_is_skipped_and_the_rest_found(tmp_path: Path) -> None:
    """BAD_INPUTS: unreadable: report, go on."""
    grow(tmp_path, "a/x.md", "b/x.md")
    (tmp_path / "a").chmod(0)
    try:
        assert walk(tmp_path)[0] == Skipped("a", "permission denied")
        assert len(walk(tmp_path)) == 2
        with pytest.raises(Unreadable, match="permission denied"):
            files.walk(tmp_path / "a", max_bytes=CAP)
    finally:
        (tmp_path / "a").chmod(0o700)


def test_a_folder_too_deep_to_name_is_skipped_and_the_rest_found(tmp_path: Path) -> None:
    """BAD_INPUTS: unreadable: report, go on."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    grow(tmp_path, "e.md")
    skipped, found = walk(tmp_path)
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "file name too long"
    assert isinstance(found, FoundFile)


def test_folders_deeper_than_the_call_stack_are_walked(tmp_path: Path) -> None:
    """BAD_INPUTS: depth is not a limit."""
    deep = tmp_path
    try:
        for _ in range(1200):
            deep = deep / "d"
            deep.mkdir()
        grow(deep, "x.md")
        assert paths(tmp_path) == ["d/" * 1200 + "x.md"]
    finally:
        while deep != tmp_path:  # pytest's own clearing recurses
            shutil.rmtree(deep)
            deep = deep.parent


def test_files_and_folders_that_vanish_while_walking_are_dropped(tmp_path: Path) -> None:
    """BAD_INPUTS: vanished while reading: go on."""
    grow(tmp_path, "a.md", "b.md", "c/x.md", "d.md")
    walked = files.walk(tmp_path, max_bytes=CAP)
    assert isinstance(first := next(walked), FoundFile)
    assert first.path == "a.md"
    (tmp_path / "b.md").unlink()
    shutil.rmtree(tmp_path / "c")
    (last,) = walked
    assert isinstance(last, FoundFile)
    assert last.path == "d.md"


# Names


def test_a_name_that_is_not_utf8_is_escaped_and_still_opens(tmp_path: Path) -> None:
    """BAD_INPUTS: file name not UTF-8, indexed under an escaped name, printable."""
    name = b"d\xff/caf\xe9.md"
    grow(tmp_path, os.fsdecode(name))
    (found,) = walk(tmp_path)
    assert isinstance(found, FoundFile)
    assert found.path == r"d\xff/caf\xe9.md"
    assert os.fsencode(found.absolute) == os.fsencode(tmp_path) + b"/" + name
    assert files.read_bytes(found.absolute) == b"text\n"


def test_composed_and_decomposed_twins_are_two_files(tmp_path: Path) -> None:
    """BAD_INPUTS: NFC and NFD twins, two documents."""
    twins = [unicodedata.normalize(form, "é.md") for form in ("NFD", "NFC")]
    grow(tmp_path, *twins)
    assert paths(tmp_path) == twins


# Ignore files


def test_an_ignored_folder_is_not_entered_so_nothing_in_it_comes_back(tmp_path: Path) -> None:
    """As git does: a file cannot be re-included if a folder above it is ignored."""
    grow(tmp_path, "out/keep.md", "kept/x.md")
    ignore(tmp_path, "out/", "!out/keep.md")
    ignore(tmp_path / "out", "!keep.md")
    assert paths(tmp_path) == ["kept/x.md"]


def test_an_exception_for_a_folder_is_none_for_its_files(tmp_path: Path) -> None:
    """As git does: `!keep/` speaks of the folder only, also against a file further up."""
    grow(tmp_path, "sub/keep/x.md", "sub/keep/y.txt")
    ignore(tmp_path, "*.md")
    ignore(tmp_path / "sub", "!keep/")
    assert paths(tmp_path) == ["sub/keep/y.txt"]


def test_quireignore_has_the_last_word_in_its_folder_and_deeper_files_over_it(tmp_path: Path) -> None:
    """A later file wins, and a deeper one."""
    grow(tmp_path, "a.md", "b.md", "sub/b.md", "sub/c.md")
    ignore(tmp_path, "a.md", "c.md")
    ignore(tmp_path, "!a.md", "b.md", name=".quireignore")
    ignore(tmp_path / "sub", "!b.md")
    assert paths(tmp_path) == ["a.md", "sub/b.md"]


def test_patterns_of_a_folder_hold_below_it_only(tmp_path: Path) -> None:
    """As git does: patterns are relative to the folder of their file."""
    grow(tmp_path, "x.md", "sub/x.md", "sub/in/x.md", "other/x.md")
    ignore(tmp_path / "sub", "/x.md")
    assert paths(tmp_path) == ["other/x.md", "sub/in/x.md", "x.md"]


def test_a_link_to_a_folder_is_ignored_as_a_folder(tmp_path: Path) -> None:
    """A link that would be entered is judged as what would be entered."""
    grow(tmp_path, ".store/a.md")
    (tmp_path / "shown").symlink_to(".store")
    ignore(tmp_path, "shown/")
    assert paths(tmp_path) == []


def test_an_ignore_file_with_bad_bytes_a_mark_and_crlf_is_read(tmp_path: Path) -> None:
    """BAD_INPUTS: BOM, CRLF and bytes that are not UTF-8 are no obstacle."""
    grow(tmp_path, "a.md", "b.md", os.fsdecode(b"\xff.md"))
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfa.md\r\n\xff.md\r\n")
    assert paths(tmp_path) == ["b.md"]


def test_an_ignore_file_that_cannot_be_used_is_told_of(tmp_path: Path) -> None:
    """BAD_INPUTS: a pipe is never opened; a user learns that patterns are not applied."""
    grow(tmp_path, "a.md")
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / ".quireignore").write_bytes(b"#" * 1_000_001)
    first, second, found = walk(tmp_path)
    assert first == Skipped(".gitignore", "is not a regular file; its patterns are not applied")
    assert second == Skipped(
        ".quireignore", "1,000,001 bytes is over 1,000,000; its patterns are not applied"
    )
    assert isinstance(found, FoundFile)


@pytest.mark.parametrize("line", ["*a" * 100 + "b", "[" * 300_000, "**/a*/" * 100 + "b", "a" * 300_000])
def test_no_pattern_stalls_a_walk(tmp_path: Path, line: str) -> None:
    """BAD_INPUTS: bounded time, whatever a stranger's folder holds."""
    grow(tmp_path, "a" * 250 + ".md", "a/" * 200 + "a.md")
    ignore(tmp_path, line)
    start = time.perf_counter()
    assert len(paths(tmp_path)) == 2
    assert time.perf_counter() - start < 10


# git itself as the judge

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(root: Path, *arguments: str, given: str = "") -> str:
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments], cwd=root, env=alone, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr  # check-ignore says 1 when it ignores nothing
    return done.stdout


def left_by_git(root: Path, names: list[str]) -> list[str]:
    ignored = git(root, "check-ignore", "--no-index", "-z", "--stdin", given="\0".join(names)).split("\0")
    return sorted(set(names) - set(ignored), key=lambda name: name.split("/"))


NAMES = [
    "a.md",
    "b.md",
    "ab.md",
    "a b.md",
    "end .md",
    "#c.md",
    "!d.md",
    "[z].md",
    "s*r.md",
    "a-b.md",
    "K9.md",
]
FOLDERS = ["", "a/", "b/", "foo/", "a/b/", "a/foo/", "foo/a/", "a/b/a/", "foo/a/b/", "foo/foo/", "two words/"]
TREE = [folder + name for folder in FOLDERS for name in NAMES]

TRICKY = {
    "negation": ["*.md", "!a.md"],
    "negated folders": ["*", "!*/", "!b.md"],
    "a folder's own exception": ["*.md", "!foo/"],
    "order": ["!a.md", "a.md"],
    "anchored": ["/a.md", "/foo/a/"],
    "a slash in the middle anchors": ["a/b.md", "foo/foo"],
    "trailing slash": ["a/", "b.md/"],
    "leading **": ["**/foo/a.md", "**/b"],
    "trailing **": ["a/**", "!a/b/", "!a/b/**/"],
    "middle **": ["a/**/a.md", "foo/**/b/"],
    "** alone": ["**", "!**/", "!/a.md"],
    "** inside a name": ["/f**o", "a**"],
    "star stops at a slash": ["a/*.md", "foo/*/a.md"],
    "question mark": ["?.md", "fo?/a/"],
    "sets": ["[a-b].md", "[!ab]*", "[^f]oo"],
    "odd sets": ["[]a].md", r"[\]b].md", "[z-a]", "[a-]*", "[[:upper:]][[:digit:]].md", "[[:no:]]*", "[a"],
    "spaces": ["a b.md", "two words/", r"end\ .md", "b.md   ", "   a.md"],
    "a space kept": [r"x\ ", r"ab.md\ "],
    "comments": ["# a.md", " #c.md", "#c.md"],
    "escapes": [r"\#c.md", r"\!d.md", r"s\*r.md", r"\[z].md"],
    "blank and odd lines": ["", "/", "!", "//", "\\", "b.md\\", "!!d.md"],
}


@needs_git
@pytest.mark.parametrize("kind", TRICKY)
@pytest.mark.parametrize("folder", ["", "a"])
def test_git_ignores_the_same(tmp_path: Path, kind: str, folder: str) -> None:
    """.gitignore is honoured as git does, at the root and nested."""
    grow(tmp_path, *TREE)
    git(tmp_path, "init", "-q")
    ignore(tmp_path, "foo/a/*", "!foo/a/b/")
    ignore(tmp_path / folder, *TRICKY[kind])
    assert paths(tmp_path) == left_by_git(tmp_path, TREE)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = grow(tmp_path_factory.mktemp("repository"), *TREE)
    git(root, "init", "-q")
    return root


PIECES = ["a", "b", "foo", "*", "**", "/", "?", ".md", "[ab]", "[!a]", r"\#", " ", "-"]
PATTERNS = st.builds(
    lambda sign, pieces, end: sign + "".join(pieces) + end,
    st.sampled_from(["", "", "!", "/", "!/"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    st.sampled_from(["", "", "/", "/**"]),
    # git's manual calls the stars in `foo**/x` plain ones; git itself reads `foo`, then `**/x`
).filter(lambda line: not re.search(r"[^/!*]\*\*", line))


@needs_git
@effort(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["", "a/", "foo/", "a/b/"]), st.lists(PATTERNS, min_size=1, max_size=4), min_size=1
    )
)
def test_git_ignores_the_same_for_any_patterns(repository: Path, lines: dict[str, list[str]]) -> None:
    """.gitignore is honoured as git does, whatever the patterns are."""
    for folder in FOLDERS:
        (repository / folder / ".gitignore").unlink(missing_ok=True)
    for folder, patterns in lines.items():
        ignore(repository / folder, *patterns)
    assert paths(repository) == left_by_git(repository, TREE)


# Against the plainest walk there is

PARTS = st.sampled_from(["a", "B", "é", "x y", ".hidden", "node_modules", "z.md"])
LEAVES = st.sampled_from(["a.md", "A.MD", "b.txt", ".c.md", "d.py", "é.rst", "e", "ab.mdx"])


@effort(max_examples=60)
@given(st.sets(st.tuples(st.lists(PARTS, max_size=4).map(tuple), LEAVES), max_size=12))
def test_without_ignore_files_and_links_it_is_a_plain_walk(tree: set[tuple[tuple[str, ...], str]]) -> None:
    """DESIGN §1: nothing that is wanted is lost, nothing else is found."""
    with tempfile.TemporaryDirectory() as folder:
        root = grow(Path(folder), *("/".join((*above, leaf)) for above, leaf in tree))
        assert paths(root) == plain(root)


def plain(root: Path) -> list[str]:
    found = []
    for above, _, names in os.walk(root):
        parts = Path(above).relative_to(root).parts
        if not any(part in UNWANTED_FOLDERS or part.startswith(".") for part in parts):
            wanted = [name for name in names if name.lower().endswith(ENDINGS) and name[0] != "."]
            found += [(*parts, name) for name in wanted]
    return ["/".join(parts) for parts in sorted(found)]


class Counted:
    """A folder's entry that counts how often it is asked for its state."""

    def __init__(self, entry: os.DirEntry[str], asked: list[str]) -> None:
        self.entry, self.asked, self.name, self.path = entry, asked, entry.name, entry.path

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        self.asked.append(self.name)
        return self.entry.stat(follow_symlinks=follow_symlinks)

    def __getattr__(self, name: str) -> object:
        return getattr(self.entry, name)


def test_a_file_costs_one_stat_and_an_unwanted_one_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unchanged tree is cheap: one stat for each file, one for each folder."""
    grow(tmp_path, "a.md", "b.py", "sub/c.md")
    asked: list[str] = []
    scandir, look = os.scandir, os.stat

    class Listing:
        def __init__(self, place: str) -> None:
            self.close = scandir(place).close
            with scandir(place) as listing:
                self.entries = [Counted(entry, asked) for entry in listing]

        def __enter__(self) -> list[Counted]:
            return self.entries

        def __exit__(self, *_: object) -> None:
            self.close()

    def stat_of(place: str) -> os.stat_result:
        asked.append(place)
        return look(place)

    walked = files.walk(tmp_path, max_bytes=CAP)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Listing)
        patch.setattr(os, "stat", stat_of)
        found = list(walked)
    assert [item.path for item in found if isinstance(item, FoundFile)] == ["a.md", "sub/c.md"]
    assert asked == [str(tmp_path), "a.md", str(tmp_path / "sub"), "c.md"]
