"""The web from the command line: what is printed, and the exit codes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import environment, run, user_settings
from tests.web_server import Handler, Site, site

GUIDE = b"# Guide\n\nWelcome.\n\n## Install\n\nUse the package manager.\n"
HTML = b"<!doctype html><title>Guide</title><main><h1>Guide</h1><h2>Install</h2><p>Penguins swim.</p></main>"
REPORT = "added updated unchanged removed skipped failed documents sections chunks bytes seconds"


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as web:
        yield web


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The home of a user whose settings allow loopback; a second try would only wait."""
    user_settings(tmp_path, '[web]\nallow_hosts = ["127.0.0.1"]\nretries = 0\n')
    return tmp_path


def publish(web: Site, *names: str) -> str:
    """Serve pages and the llms.txt that names them; its URL."""
    for name in names:
        web.page(f"/{name}.md", f"# Page {name}\n\nAll about {name}.\n".encode())
    links = "".join(f"- [{name}](/{name}.md)\n" for name in names)
    return web.page("/llms.txt", f"# Site\n\n{links}".encode())


def test_a_page_is_added_found_read_and_refreshed(web: Site, place: Path) -> None:
    """Issue: `quire add https://…` end to end."""
    url = web.page("/docs/guide", HTML, content_type="text/html")
    out, err = run(place, "add", url)
    assert out.startswith("1 added, 0 updated, 0 unchanged: ")
    assert err == ""
    out, _ = run(place, "search", "penguins")
    assert out.splitlines()[0] == "  1. 127.0.0.1:docs/guide#install"
    assert json.loads(run(place, "search", "penguins", "--json")[0])["results"][0]["url"] == url
    assert run(place, "read", "127.0.0.1:docs/guide#install")[0].strip() == "## Install\n\nPenguins swim."
    assert [line.split("  (")[0] for line in run(place, "toc", "127.0.0.1:docs/guide")[0].splitlines()] == [
        "Guide",
        "  Install  #install",
    ]
    listed = json.loads(run(place, "list", "--json")[0])
    assert (listed["address"], listed["url"], listed["title"]) == ("127.0.0.1:docs/guide", url, "Guide")
    assert run(place, "refresh")[0].startswith("0 added, 0 updated, 1 unchanged: ")


def test_a_site_is_added_with_what_failed_and_what_was_left(web: Site, place: Path) -> None:
    """Issue: JSON of add; failed pages are listed, the rest is there, and the exit code is 3."""
    url = publish(web, "a", "b", "c")
    web.page("/b.md", status=404)
    more = b"- [x](https://example.org/x)\n"
    web.page("/llms.txt", b"# Site\n\n- [a](/a.md)\n- [b](/b.md)\n- [c](/c.md)\n" + more)
    out, err = run(place, "add", url, "--json", code=3)
    added = json.loads(out)
    assert set(REPORT.split()) <= set(added)
    assert (added["added"], added["documents"]) == (3, 3)
    (failed,) = added["failed"]
    assert failed["source"] == web.url("/b.md")
    assert "404" in failed["reason"]
    assert added["warnings"] == ["1 link leads to another site: not followed."]
    assert failed["code"] == "not_found"
    assert f"{web.url('/b.md')}: the server answered 404" in err
    assert "1 link leads to another site" in err
    out, _ = run(place, "add", url, code=3)
    assert out.startswith("0 added, 0 updated, 3 unchanged, 1 failed: ")
    assert run(place, "search", "about", "-c", "127.0.0.1")[0].count(". 127.0.0.1:") == 2


def test_refresh_and_what_it_would_do(web: Site, place: Path) -> None:
    """--check lists changed and missing pages of sites and pages by themselves, and changes nothing."""
    run(place, "add", publish(web, "a", "b"), web.page("/alone.md", GUIDE))
    publish(web, "a")
    web.page("/a.md", b"# Page a, new\n")
    web.page("/alone.md", status=404)
    shown = {"changed  127.0.0.1:a.md", "changed  127.0.0.1:llms.txt"}
    shown |= {"kept     127.0.0.1:alone.md", "missing  127.0.0.1:b.md"}
    assert set(run(place, "refresh", "--check", code=1)[0].splitlines()) == shown
    changes = json.loads(run(place, "refresh", "--check", "--json", code=1)[0])
    assert sorted(changes["changed"]) == ["127.0.0.1:a.md", "127.0.0.1:llms.txt"]
    assert sorted(changes["missing"]) == ["127.0.0.1:alone.md", "127.0.0.1:b.md"]
    out, err = run(place, "refresh", code=3)
    assert out.startswith("0 added, 2 updated, 0 unchanged, 1 removed, 1 failed: ")
    assert f"quire: {web.url('/alone.md')}: the server answered 404" in err
    assert run(place, "read", "127.0.0.1:alone.md")[0] == GUIDE.decode()


def test_a_network_failure_is_said_and_loses_nothing(place: Path) -> None:
    """Message and exit code; the rest of what is asked for is done."""
    with site() as web:
        url = web.page("/guide.md", GUIDE)
        run(place, "add", url)
    _, err = run(place, "add", url, code=4)
    assert f"quire: {url}: cannot be fetched: " in err
    assert "Try again later" in err
    assert "cannot be fetched" in run(place, "refresh", code=4)[1]
    out, err = run(place, "refresh", "--check")
    assert out == ""
    assert "cannot be fetched" in err
    (place / "notes.md").write_text("# Notes\n")
    assert run(place, "add", url, "notes.md", "-c", "both", code=3)[0].startswith("1 added")
    assert "package" in run(place, "search", "package manager")[0]


REFUSED = {
    "file:///etc/passwd": "is not an http or https URL",
    "ftp://example.com/a.md": "is not an http or https URL",
    "https://user:secret@example.com/": "holds a user name or password",
    "http://10.0.0.1/llms.txt": 'is not at a public address. If you trust it, add "10.0.0.1" to allow_hosts',
    "http://[::1]/": "is not at a public address",
}


def test_urls_that_are_refused_say_why_and_what_to_do(place: Path) -> None:
    """BAD_INPUTS: refused, exit code 4, and no password in what is printed."""
    out, err = run(place, "add", *REFUSED, "--json", code=4)
    lines = map(json.loads, err.splitlines())
    for failed, said, line in zip(json.loads(out)["failed"], REFUSED.values(), lines, strict=True):
        assert said in failed["reason"]
        assert line["error"]["message"] == f"{failed['source']}: {failed['reason']}"
    assert "secret" not in out + err


def test_loopback_is_refused_until_it_is_allowed(web: Site, tmp_path: Path) -> None:
    """Issue: `allow_hosts` opens named hosts."""
    url = web.page("/guide.md", GUIDE)
    _, err = run(tmp_path, "add", url, code=4)
    assert f'names port {web.port}, not 80 or 443. If you trust it, add "{web.host}" to allow_hosts' in err
    assert web.asked == []
    user_settings(tmp_path, f'[web]\nallow_hosts = ["{web.host}"]\n')
    run(tmp_path, "add", url)


def test_a_site_that_says_nothing_of_itself(web: Site, place: Path) -> None:
    """A clear error, with what to do next."""
    _, err = run(place, "add", web.url("/llms.txt"), code=4)
    assert (
        "has neither llms.txt nor llms-full.txt. To read it by its sitemap and links: quire add --site http"
        in err
    )


def test_what_is_not_there_exits_with_1(web: Site, place: Path) -> None:
    """From read and from search, told from a search that matches nothing."""
    run(place, "add", web.page("/guide.md", GUIDE))
    assert "Did you mean '127.0.0.1:guide.md'" in run(place, "read", "127.0.0.1:guid.md", code=1)[1]
    assert "No collection 'example.com'" in run(place, "search", "x", "-c", "example.com", code=1)[1]
    assert "No match" in run(place, "search", "xyzzy", code=1)[1]


def test_files_and_folders_come_before_sites(place: Path) -> None:
    """A file that is called like a domain is a file, and so is one that is not there."""
    (place / "README.md").write_text("# Readme\n\nokapis\n")
    (place / "example.com").mkdir()
    (place / "example.com" / "a.md").write_text("# A\n\nzebras\n")
    run(place, "add", "README.md", "example.com", "-c", "here")
    assert run(place, "list")[0].splitlines() == [
        "here:README.md  Readme  (about 6 tokens)",
        "here:a.md  A  (about 4 tokens)",
    ]
    assert "absent.md: no such file or folder" in run(place, "add", "absent.md", code=4)[1]
    assert "llms.txt: no such file or folder" in run(place, "add", "llms.txt", code=4)[1]


def test_web_pages_of_a_folder_are_read_as_markdown(place: Path) -> None:
    """DESIGN §8: .html in folders; unchanged the second time."""
    (place / "pages").mkdir()
    (place / "pages" / "guide.html").write_bytes(HTML)
    run(place, "add", "pages")
    assert run(place, "search", "penguins")[0].startswith("  1. pages:guide.html#install")
    assert "  Install" in run(place, "toc", "pages:guide.html")[0]
    assert run(place, "toc", "pages/guide.html")[0] == run(place, "toc", "pages:guide.html")[0]
    assert run(place, "add", "pages")[0].startswith("0 added, 0 updated, 1 unchanged")


def test_stopping_a_crawl_leaves_what_was_there(web: Site, place: Path) -> None:
    """Issue: Ctrl-C leaves a consistent library, and says so in a line."""
    url = publish(web, "a", "b")
    run(place, "add", url)
    asked, stopped = threading.Event(), threading.Event()

    def wait(handler: Handler) -> None:
        asked.set()
        stopped.wait(30)
        handler.answer(200, b"# Late\n", {})

    web.route("/a.md", wait)
    command = [str(Path(sys.executable).parent / "quire"), "add", url]
    env = environment(place)
    with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, env=env) as process:
        assert asked.wait(30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    stopped.set()
    assert (process.returncode, "Traceback" in err.decode()) == (130, False), err.decode()
    assert "Stopped." in err.decode()
    assert run(place, "read", "127.0.0.1:a.md")[0] == "# Page a\n\nAll about a.\n"
    assert json.loads(run(place, "status", "--check", "--json")[0])["problems"] == []


def test_people_see_a_bar_of_pages(web: Site, place: Path) -> None:
    """Issue: a progress bar with pages done, failed, left."""
    names = [f"page{number}" for number in range(12)]
    url = publish(web, *names)
    web.page("/page3.md", status=404)
    leader, follower = pty.openpty()
    command = [str(Path(sys.executable).parent / "quire"), "add", url]
    env = environment(place) | {"COLUMNS": "120"}
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=follower, env=env) as process:
        process.wait(30)
    os.close(follower)
    shown = os.read(leader, 100_000).decode(errors="replace")
    os.close(leader)
    assert "reading 127.0.0.1" in shown
    assert "12 pages" in shown
    assert "1 failed" in shown
