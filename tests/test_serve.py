"""`quire serve`: the API, what it refuses, long work, and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from quire import Library
from quire.config import ServeSettings, override
from quire.errors import RequestRefused
from quire.surfaces.http import guard, openapi
from quire.surfaces.http.guard import HostNames, Pace
from tests.commands import run
from tests.http_server import QUICK, bearer, serving

GUIDE = "# Lamp\n\nA lamp gives light.\n\n## Install\n\nUse pip.\n\n## Deploy\n\nSee [install](#install).\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "guide.md").write_text(GUIDE)
    (made / "note.md").write_text("---\ntags: [oil]\n---\n# Note\n\nOil for the [[guide]].\n")
    return made


@pytest.fixture
def url(tmp_path: Path, folder: Path) -> str:
    with Library.open(tmp_path / "l.db", create=True, config=QUICK) as library:
        library.add(folder, embed=False)
    return str(tmp_path / "l.db")


@pytest.fixture
def client(url: str, folder: Path) -> Iterator[httpx2.Client]:
    with serving(url, roots=[folder.parent]) as made:
        yield made


def get(client: httpx2.Client, route: str, **params: Any) -> Any:
    answer = client.get(f"/api/{route}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(client: httpx2.Client, route: str, **body: Any) -> Any:
    answer = client.post(f"/api/{route}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ---------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("command", "route", "params"),
    [
        (["search", "light"], "search", {"q": "light"}),
        (["read", "docs:guide.md#install"], "read", {"address": "docs:guide.md#install"}),
        (["toc", "docs:guide.md"], "toc", {"address": "docs:guide.md"}),
        (["links", "docs:note.md"], "links", {"address": "docs:note.md"}),
    ],
)
def test_the_json_is_that_of_the_command_line(
    client: httpx2.Client, url: str, command: list[str], route: str, params: dict[str, Any], tmp_path: Path
) -> None:
    """Issue: JSON as in the CLI."""
    out, _ = run(tmp_path, *command, "-L", url, "--json", QUIRE_SEARCH_MODE="keyword")
    assert get(client, route, **params) == json.loads(out)


def test_listings_have_what_the_command_line_lists(client: httpx2.Client, url: str) -> None:
    """Issue: list, sources and status."""
    listed = get(client, "documents")
    assert [row["address"] for row in listed["documents"]] == ["docs:guide.md", "docs:note.md"]
    assert get(client, "documents", limit=1, offset=1)["documents"][0]["address"] == "docs:note.md"
    assert get(client, "documents", order="largest")["documents"][0]["address"] == "docs:guide.md"
    assert get(client, "documents", tag="oil")["total"] == 1
    assert get(client, "sources")["sources"][0]["documents"] == 2
    status = get(client, "status")
    assert (status["documents"], status["access"]["level"]) == (2, "admin")
    assert status["roots"] == [str(Path(url).parent)]
    assert (status["checked"], status["problems"]) == (False, [])
    checked = get(client, "status", check=True)
    assert (checked["checked"], checked["problems"]) == (True, [])


def test_a_document_is_rendered_with_its_sections_and_the_place_that_was_named(client: httpx2.Client) -> None:
    """Issue: the reader shows the document, its contents, and the hit."""
    shown = get(client, "render", address="docs:guide.md#install")
    assert [one["title"] for one in shown["sections"]] == ["Lamp", "Lamp", "Install", "Deploy"]
    assert shown["focus"] == {
        "address": "docs:guide.md#install",
        "anchor": "s-install",
        "start_line": 5,
        "end_line": 8,
        "location": None,
    }
    assert 'id="s-install"' in shown["html"]
    linked = get(client, "render", address="docs:note.md")
    assert "/read?address=docs%3Aguide.md" in linked["html"]
    assert linked["focus"] is None


def test_cuts_are_shown_of_texts_files_and_documents(client: httpx2.Client) -> None:
    """Issue: chunk preview, strategies side by side; nothing is stored."""
    shown = post(client, "chunk", content=GUIDE, path="x.md", strategies=["auto", "nodes"], max_tokens=50)
    for one in shown["strategies"]:
        assert one["error"] is None
        spans = [(chunk["start"], chunk["end"]) for chunk in one["chunks"]]
        assert spans == sorted(spans)
        assert "Use pip." in "".join(shown["text"][start:end] for start, end in spans)
    assert shown["text"] == GUIDE
    stored = post(client, "chunk", address="docs:guide.md", strategies=["nodes"])
    assert [chunk["index"] for chunk in stored["strategies"][0]["chunks"]] == [0, 1, 2]
    long = post(client, "chunk", content="word " * 20_000, path="x.txt", strategies=["sections"])
    assert long["strategies"][0]["error"]["code"] == "broken_invariant"
    headers = {"Content-Type": "application/octet-stream"}
    params = {"path": "a.ipynb", "strategy": ["auto", "windows"]}
    book = {"cells": [{"cell_type": "markdown", "source": "# A\n\nText."}], "nbformat": 4, "metadata": {}}
    sent = client.post("/api/chunk/file", params=params, content=json.dumps(book), headers=headers).json()
    assert [one["strategy"] for one in sent["strategies"]] == ["auto", "windows"]
    assert sent["strategies"][0]["chunks"][0]["location"] == "cell 1"
    broken = client.post("/api/chunk/file", params={"path": "a.docx"}, content=b"no", headers=headers)
    assert broken.status_code == 422
    assert get(client, "documents")["total"] == 2


def test_adding_shows_its_plan_first_and_removing_takes_away(client: httpx2.Client, folder: Path) -> None:
    """Issue: add, remove, refresh, promote; sources with their plan before anything is applied."""
    (folder / "new.md").write_text("# New\n\nA wick.\n")
    (plan,) = post(client, "plan", sources=["docs"])["plans"]
    assert plan["counts"]["add"] == 1
    assert post(client, "add", sources=["docs"])["added"] == 1
    (folder / "new.md").write_text("# New\n\nAnother wick.\n")
    assert post(client, "plan")["plans"][0]["counts"]["update"] == 1
    assert post(client, "refresh")["updated"] == 1
    assert post(client, "promote", address="docs:new.md", level="critical")["promotion"] == "critical"
    assert len(post(client, "remove", addresses=["docs:new.md"], dry_run=True)["removed"]) == 1
    assert post(client, "remove", addresses=["docs:new.md"])["removed"][0]["path"] == "new.md"
    assert get(client, "documents")["total"] == 2
    place = str(folder)
    assert len(post(client, "sources/remove", place=place)["removed"]) == 2
    assert get(client, "status")["documents"] == 0


def test_files_are_uploaded_and_downloaded_byte_for_byte(client: httpx2.Client) -> None:
    """Issue: add by drop. The exact bytes come back."""
    content = "# Čaj\r\n\r\nText.\n".encode()
    headers = {"Content-Type": "application/octet-stream"}
    sent = client.post("/api/upload", params={"path": "a/čaj.md"}, content=content, headers=headers)
    assert sent.json()["addresses"] == ["content:a/čaj.md"]
    back = client.get("/api/source", params={"address": "content:a/čaj.md"})
    assert back.content == content
    assert back.headers["content-disposition"] == "attachment; filename*=UTF-8''%C4%8Daj.md"
    assert back.headers["x-content-type-options"] == "nosniff"


def test_memories_are_kept_recalled_and_forgotten(client: httpx2.Client) -> None:
    """Issue: memories over HTTP."""
    kept = post(client, "remember", text="The lamp is in the hall.", name="lamp", tags=["house"])
    assert (kept["address"], kept["outcome"]) == ("memory:lamp", "added")
    post(client, "remember", text="The lamp is in the cellar.", name="lamp")
    assert get(client, "recall", q="lamp")["results"][0]["address"] == "memory:lamp"
    assert len(get(client, "history", address="memory:lamp")["versions"]) == 2
    assert post(client, "forget", addresses=["memory:lamp"])["removed"][0]["path"] == "lamp"
    assert get(client, "recall", q="lamp")["results"] == []


def test_memories_in_another_library_are_found_by_address(url: str, tmp_path: Path) -> None:
    """Without -L, memories are in the user's own library, and reading finds them there."""
    own = str(tmp_path / "own.db")
    with serving(url, memory_url=own) as client:
        post(client, "remember", text="The lamp is in the hall.", name="lamp")
        assert "hall" in get(client, "read", address="memory:lamp")["text"]
        assert get(client, "status")["documents"] == 2
        assert get(client, "documents", kind="memory")["total"] == 1
    with Library.open(own) as library:
        assert [row.address for row in library.documents()] == ["memory:lamp"]


def test_a_server_without_a_library_says_so_and_makes_one(tmp_path: Path) -> None:
    """BAD_INPUTS: states. The page must be able to begin."""
    (tmp_path / "a.md").write_text("# A\n")
    with serving(str(tmp_path / "new.db"), roots=[tmp_path]) as client:
        assert get(client, "status")["documents"] == 0
        assert client.get("/ready").json() == {"ready": True}
        assert (get(client, "documents")["total"], get(client, "sources")["sources"]) == (0, [])
        assert get(client, "map")["points"] == []
        assert post(client, "plan", sources=["a.md"])["plans"][0]["counts"]["add"] == 1
        assert not (tmp_path / "new.db").exists()
        empty = client.get("/api/search", params={"q": "x"})
        assert (empty.status_code, empty.json()["code"]) == (404, "no_results")
        assert post(client, "add", content="# A\n\nText.\n", path="a.md")["added"] == 1
        assert get(client, "search", q="text")["results"]


# ---------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "said"),
    [
        ("GET", "/api/search", {}, 400, "q is needed"),
        ("GET", "/api/search?q=a&limti=2", {}, 400, "Did you mean 'limit'"),
        ("GET", "/api/search?q=a&limit=0", {}, 400, "limit must be at least 1"),
        ("GET", "/api/search?q=a&q=b", {}, 400, "given twice"),
        ("GET", "/api/search?q=a&collection=nope", {}, 404, "No collection 'nope'"),
        ("GET", "/api/search?q=%00", {}, 400, "NUL"),
        ("GET", "/api/read?address=docs:gide.md", {}, 404, "Did you mean"),
        ("GET", "/api/nothing", {}, 404, "no such route"),
        ("POST", "/api/search?q=a", {"json": {}}, 405, "POST is not"),
        ("POST", "/api/add", {"content": "x"}, 415, "application/json"),
        ("POST", "/api/add", {"json": []}, 400, "must be a JSON object"),
        ("POST", "/api/add", {"json": {}}, 400, "either sources, or content"),
        ("POST", "/api/add?x=1", {"json": {}}, 400, "not in the query"),
        (
            "POST",
            "/api/promote",
            {"content": '{"address": "\\ud83d", "level": "critical"}'},
            400,
            "an incomplete character",
        ),
        ("POST", "/api/remember", {"content": '{"text": "a\\u0000"}'}, 400, "NUL"),
        ("POST", "/api/add", {"json": {"sources": ["/etc/passwd"]}}, 400, "outside the folders"),
        ("POST", "/api/add", {"json": {"sources": ["file:///etc/passwd"]}}, 400, "only http and https"),
        ("POST", "/api/add", {"json": {"sources": ["http://127.0.0.1:9/x"]}}, 422, "127.0.0.1"),
        ("POST", "/api/upload?path=a.md", {"json": {}}, 415, "octet-stream"),
        ("POST", "/api/remove", {"json": {}}, 400, "Name what to remove"),
        ("DELETE", "/api/jobs/x", {}, 404, "No job 'x'"),
        ("GET", "/static/../server.py", {}, 404, ""),
        ("GET", "/static/%2e%2e%2fserver.py", {}, 404, ""),
    ],
)
def test_what_is_wrong_gets_an_error_that_says_what_to_do(
    client: httpx2.Client, method: str, path: str, given: dict[str, Any], status: int, said: str
) -> None:
    """Issue: errors {code, message, details} from the one table."""
    if str(given.get("content")).startswith("{"):
        given = {**given, "headers": {"Content-Type": "application/json"}}
    answer = client.request(method, path, **given)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["code", "message", "details"]
    assert said in answer.json()["message"]
    assert answer.headers["cache-control"] == "no-store"


def test_deeply_nested_json_is_refused(client: httpx2.Client) -> None:
    """BAD_INPUTS: hostile input is answered, never a traceback."""
    for body in (b"[" * 100_000, b'{"a":' * 50_000, b'{"content": "' + b"\xff" * 10 + b'"}'):
        answer = client.post("/api/add", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400, answer.text


def test_requests_that_are_too_large_are_refused_before_they_are_read(url: str) -> None:
    """Issue: limits on size, also for a body whose size nobody tells."""
    config = override(QUICK, {"serve": {"max_bytes": 1000}})
    headers = {"Content-Type": "application/octet-stream"}
    with serving(url, config) as client:
        for body in (b"x" * 2000, iter([b"x" * 600] * 3)):
            answer = client.post("/api/upload", params={"path": "a.md"}, content=body, headers=headers)
            assert answer.status_code == 413
            assert "serve.max_bytes = 1,000" in answer.json()["message"]


def test_a_read_that_takes_too_long_is_given_up(url: str, monkeypatch: Any) -> None:
    """Issue: limits on time."""
    monkeypatch.setattr(Library, "links", lambda *_: time.sleep(0.4))
    with serving(url, override(QUICK, {"serve": {"timeout": 0.05}})) as client:
        answer = client.get("/api/links", params={"address": "docs:guide.md"})
        assert (answer.status_code, answer.json()["code"]) == (504, "request_refused")
        assert client.get("/health").status_code == 200


def test_a_bug_is_an_answer_without_its_details(client: httpx2.Client, monkeypatch: Any, caplog: Any) -> None:
    """HABITS: errors help; what is inside stays inside."""
    monkeypatch.setattr(Library, "links", lambda *_: 1 / 0)
    answer = client.get("/api/links", params={"address": "docs:guide.md"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "ZeroDivision" not in answer.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80"])
def test_a_name_that_is_not_the_servers_is_refused(client: httpx2.Client, host: str) -> None:
    """Issue: Host checks, against DNS rebinding. Probes tell nothing, and answer to any name."""
    for path in ("/", "/api/status", "/mcp", "/static/app.js"):
        assert client.get(path, headers={"Host": host}).status_code == 421
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_names_behind_a_reverse_proxy_can_be_allowed(url: str) -> None:
    """Issue: serve.allowed_hosts. Then everyone may reach the server, and needs a key."""
    with Library.open(url) as library:
        _, key = library.make_key("k")
    config = override(QUICK, {"serve": {"allowed_hosts": ["docs.example.com"]}})
    with serving(url, config) as client:
        for host in ("docs.example.com", "DOCS.example.com:443", "localhost:9999"):
            assert client.get("/api/status", headers={"Host": host}).status_code == 401
            assert client.get("/api/status", headers={"Host": host, **bearer(key)}).status_code == 200
        assert client.get("/api/status", headers={"Host": "other.example.com"}).status_code == 421


def test_pages_of_other_sites_can_do_nothing(client: httpx2.Client) -> None:
    """Issue: Origin and Sec-Fetch-Site checks; no CORS unless configured."""
    own = str(client.base_url).rstrip("/")
    crossed = {"Sec-Fetch-Site": "cross-site"}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": own.replace("http:", "https:")},
        crossed,
        {**crossed, "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        answer = client.get("/api/status", headers=headers)
        assert answer.status_code == 403, headers
        assert "access-control-allow-origin" not in answer.headers
        assert client.post("/api/refresh", json={}, headers=headers).status_code == 403
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/api/add", headers=preflight).status_code == 403
    assert client.get("/api/status", headers={"Origin": own, "Sec-Fetch-Site": "same-origin"}).is_success
    visit = {**crossed, "Sec-Fetch-Mode": "navigate"}
    assert client.get("/read?address=docs:guide.md", headers=visit).status_code == 200


def test_an_origin_that_is_allowed_may_call(url: str) -> None:
    """Issue: no CORS unless configured."""
    config = override(QUICK, {"serve": {"allowed_origins": ["https://app.example.com/"]}})
    own = {"Origin": "https://app.example.com"}
    with Library.open(url) as library:
        _, key = library.make_key("app")
    with serving(url, config) as client:
        crossed = {**own, "Sec-Fetch-Site": "cross-site"}
        assert client.get("/api/status", headers=crossed).status_code == 401
        answer = client.get("/api/status", headers={**crossed, **bearer(key)})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://app.example.com"
        before = client.options("/api/add", headers={**own, "Access-Control-Request-Method": "POST"})
        assert before.status_code == 204
        assert "Authorization" in before.headers["access-control-allow-headers"]
        assert (
            client.get("/api/status", headers={"Origin": "https://app.example.com.evil"}).status_code == 403
        )


def test_a_proxy_that_was_not_named_makes_nobody_local(client: httpx2.Client) -> None:
    """A request that was forwarded is not from this machine."""
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert client.get("/api/status", headers={name: "203.0.113.9"}).status_code == 401


def test_only_trusted_proxies_say_whom_a_request_is_from() -> None:
    """Issue: trusted_proxies."""
    names = HostNames(ServeSettings(trusted_proxies=("10.0.0.0/8", "127.0.0.1")), "127.0.0.1")
    told = {"x-forwarded-for": "1.2.3.4, 203.0.113.9, 10.0.0.7", "x-forwarded-proto": "https"}
    assert names.asking("127.0.0.1", "http", told) == guard.Asking("203.0.113.9", "https", True)
    assert names.asking("198.51.100.1", "http", told) == guard.Asking("198.51.100.1", "http", True)
    assert names.asking("198.51.100.1", "http", {}).is_relayed is False
    assert names.is_public


def test_each_key_has_its_pace(url: str) -> None:
    """Issue: rate limits per key."""
    with Library.open(url) as library:
        keys = [library.make_key(name)[1] for name in ("one", "two")]
    config = override(QUICK, {"serve": {"rate": 2.0}})
    with serving(url, config) as client:
        answers = [client.get("/api/status", headers=bearer(keys[0])) for _ in range(12)]
        assert [one.status_code for one in answers[:4]] == [200] * 4
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert client.get("/api/status", headers=bearer(keys[1])).status_code == 200
        assert all(client.get("/api/status").status_code == 200 for _ in range(12))


def test_a_pace_recovers(monkeypatch: Any) -> None:
    """A bucket fills again, and holds no more than twice the rate."""
    now = [100.0]
    monkeypatch.setattr("quire.surfaces.http.guard.time.monotonic", lambda: now[0])
    pace = Pace(1.0)
    for _ in range(2):
        pace.take("a")
    with pytest.raises(RequestRefused):
        pace.take("a")
    now[0] += 1
    pace.take("a")
    now[0] += 1000
    for _ in range(2):
        pace.take("a")
    with pytest.raises(RequestRefused):
        pace.take("a")


# --------------------------------------------------------------------------------------- long work


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = re.findall(r"^event: (\w+)\ndata: (.*)\n\n", text, re.MULTILINE)
    return [(name, json.loads(data)) for name, data in found]


def test_long_work_tells_how_far_it_is(client: httpx2.Client, folder: Path) -> None:
    """Issue: server-sent events for long work."""
    for number in range(30):
        (folder / f"more{number}.md").write_text(f"# More {number}\n\nText {number}.\n")
    sse = {"Accept": "text/event-stream"}
    answer = client.post("/api/add", json={"sources": ["docs"]}, headers=sse)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *progress, (name, job) = events(answer.text)
    assert all(one[0] == "progress" for one in progress)
    assert (name, job["state"], job["result"]["added"]) == ("done", "done", 30)
    again = client.get(f"/api/jobs/{job['job']}/events").text
    assert events(again)[-1][1]["result"]["added"] == 30
    failed = client.post("/api/add", json={"sources": ["docs/none.md"]}, headers=sse)
    assert events(failed.text)[-1][0] == "failed"
    assert events(failed.text)[-1][1]["error"]["code"]


def test_a_job_in_the_background_can_be_stopped(client: httpx2.Client, monkeypatch: Any) -> None:
    """Issue: long work can be stopped; what was written is whole."""
    begun = threading.Event()

    def slow(*_: Any, progress: Any, **__: Any) -> None:
        while True:
            begun.set()
            progress.advance(0)
            time.sleep(0.01)

    monkeypatch.setattr(Library, "refresh", slow)
    started = client.post("/api/refresh", json={"background": True})
    assert started.status_code == 202
    place = f"/api/jobs/{started.json()['job']}"
    assert begun.wait(5)
    assert client.get(place).json()["state"] == "running"
    assert get(client, "search", q="light")["results"]
    waiting = [client.post("/api/refresh", json={"background": True}) for _ in range(25)]
    assert (waiting[0].status_code, waiting[-1].status_code) == (202, 429)
    monkeypatch.undo()
    client.delete(place)
    assert events(client.get(f"{place}/events").text)[-1][0] == "stopped"


def test_a_report_says_what_failed_beside_what_did_not(client: httpx2.Client, folder: Path) -> None:
    """HABITS: bad data in a batch never stops the rest."""
    (folder / "bad.docx").write_bytes(b"no zip")
    (folder / "good.md").write_text("# Good\n\nText.\n")
    report = post(client, "add", sources=["docs"])
    assert (report["added"], len(report["failed"])) == (1, 1)
    alone = client.post("/api/add", json={"sources": ["docs/bad.docx"]})
    assert alone.status_code == 422
    assert alone.json()["details"]["failed"][0]["source"].endswith("bad.docx")


# --------------------------------------------------------------------------------------- operations


def test_metrics_count_requests_and_name_no_query(client: httpx2.Client) -> None:
    """Issue: Prometheus metrics."""
    get(client, "search", q="zanzibar")
    client.get("/api/read", params={"address": "zanzibar"})
    client.get("/zanzibar")
    text = client.get("/metrics").text
    assert 'quire_requests_total{method="GET",route="/api/search",status="200"} 1' in text
    assert 'quire_requests_total{method="GET",route="other",status="404"} 1' in text
    assert 'quire_request_seconds_bucket{route="/api/search",le="+Inf"} 1' in text
    assert "quire_documents 2\n" in text
    assert "zanzibar" not in text
    names = {line.partition("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"}
    assert all(re.fullmatch(r"quire_[a-z_]+", name) for name in names)


@pytest.mark.parametrize("asked", [False, True])
def test_the_access_log_has_queries_only_if_asked(url: str, asked: bool) -> None:
    """Issue: structured access log without queries' text unless asked."""
    out = io.StringIO()
    with Library.open(url) as library:
        _, key = library.make_key("alice")
    with serving(url, override(QUICK, {"serve": {"log_queries": asked}}), log=out) as client:
        client.get("/api/search", params={"q": "zanzibar"}, headers=bearer(key))
        client.get("/zanzibar/unknown")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(one["path"], one["status"], one["key"]) for one in lines] == [
        ("/api/search", 200, "alice"),
        ("other", 404, ""),
    ]
    assert ("zanzibar" in out.getvalue()) == asked
    assert key not in out.getvalue()


def test_every_answer_forbids_guessing_and_framing(client: httpx2.Client) -> None:
    """Issue: strict CSP, nothing remote."""
    for path in ("/", "/static/app.js", "/api/status", "/api/nothing", "/health"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"


def test_files_of_the_page_are_kept_until_they_change(client: httpx2.Client) -> None:
    """The page loads quickly, and is new after an upgrade."""
    first = client.get("/static/app.js")
    again = client.get("/static/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


@contextmanager
def command(tmp_path: Path, *options: str, **env: str) -> Iterator[tuple[str, list[str]]]:
    """`quire serve` as a process, its address, and what it said before. It must end cleanly."""
    arguments = [sys.executable, "-m", "quire", "serve", "--port", "0", *options]
    given = {**os.environ, "QUIRE_EMBED_MODEL": "none", **env}
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=given) as process:
        said = list[str]()
        for line in process.stderr or ():
            said.append(line)
            if found := re.match(r"Serving on (http://\S+)", line):
                yield found[1], said
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0, said


def test_the_command_serves_and_stops_when_told(url: str, tmp_path: Path) -> None:
    """Issue: graceful stop."""
    log = tmp_path / "access.jsonl"
    with command(tmp_path, "-L", url, "--access-log", str(log)) as (place, said):
        assert httpx2.get(f"{place}/api/search", params={"q": "light"}).json()["results"]
        assert httpx2.get(f"{place}/").text.lower().startswith("<!doctype html>")
        assert len(said) == 1
    assert [json.loads(line)["path"] for line in log.read_text().splitlines()] == ["/api/search", "/"]


def test_the_command_says_that_others_need_a_key(tmp_path: Path) -> None:
    """Issue: a key for any other address."""
    with command(tmp_path, "-L", "new.db", QUIRE_SERVE_ALLOWED_HOSTS="docs.example.com") as (place, said):
        assert "quire keys make NAME" in said[0]
        assert httpx2.get(f"{place}/api/status").status_code == 401


def test_keys_are_made_listed_and_withdrawn_by_the_command(tmp_path: Path) -> None:
    """Issue: keys are made, listed and withdrawn by `quire keys`, shown once."""
    at = ("-L", "k.db")
    out, err = run(tmp_path, "keys", "make", "alice", "--can", "write", "-c", "a", "--expires", "90d", *at)
    key = out.strip()
    assert key.startswith("quire_")
    assert "shown once: can write, a, expires" in err
    out, _ = run(tmp_path, "keys", *at)
    assert out.startswith("alice  ")
    assert key not in out
    shown = json.loads(run(tmp_path, "keys", "--json", *at)[0])
    assert (shown["name"], shown["level"], shown["collections"]) == ("alice", "write", ["a"])
    assert "digest" not in shown
    assert run(tmp_path, "keys", "withdraw", "alice", *at)[0] == "Withdrew alice.\n"
    assert "quire keys -L k.db make NAME" in run(tmp_path, "keys", *at, code=1)[1]
    run(tmp_path, "keys", "withdraw", "alice", *at, code=1)
    run(tmp_path, "keys", "make", "x", "--can", "admin", "-c", "a", *at, code=2)


# ------------------------------------------------------------------------------------------ OpenAPI


def test_the_api_survives_what_schemathesis_sends(url: str, folder: Path) -> None:
    """Issue: schemathesis over the OpenAPI document without a 500. Answers have the form it says."""
    schema = schemathesis.openapi.from_dict(openapi.document())
    operations = [cast(Any, found).ok() for found in schema.get_all_operations()]
    assert len(operations) > 25
    with serving(url, roots=[folder]) as client:
        for operation in operations:
            _try(operation.as_strategy(), str(client.base_url))


def _try(cases: Any, base: str) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=cases)
    def tried(case: Any) -> None:
        answer = case.call(base_url=base, timeout=20)
        case.validate_response(answer, checks=(not_a_server_error, response_schema_conformance))

    tried()


def test_settings_that_make_no_sense_are_refused() -> None:
    """BAD_INPUTS: settings."""
    with pytest.raises(Exception, match="no address or network"):
        HostNames(ServeSettings(trusted_proxies=("proxy",)), "127.0.0.1")
    for name, value in (("rate", 0.0), ("max_bytes", 0), ("timeout", 0.0)):
        with pytest.raises(Exception, match=name):
            override(ServeSettings(), {name: value})


def test_many_scopes_at_once_are_answered_though_few_stay_open(url: str, monkeypatch: Any) -> None:
    """Keys have many scopes; the libraries of some are closed, never one that is in use."""
    monkeypatch.setattr("quire.surfaces.threads._SCOPES", 2)
    with Library.open(url) as library:
        keys = [library.make_key(f"k{n}", collections=["docs", f"c{n}"])[1] for n in range(8)]
    with serving(url) as client, ThreadPoolExecutor(8) as pool:
        asked = [keys[n % 8] for n in range(200)]
        answers = pool.map(lambda key: client.get("/api/search?q=light", headers=bearer(key)), asked)
        assert {answer.status_code for answer in answers} == {200}


def test_uploads_are_not_mended_and_open_paths_take_no_body(client: httpx2.Client) -> None:
    """Found by attack: what looks like half a character in a file is kept; the page takes no body."""
    content = rb"A lone half: \ud83d here, and \ud800-\udfff"
    headers = {"Content-Type": "application/octet-stream"}
    client.post("/api/upload", params={"path": "half.txt"}, content=content, headers=headers)
    assert client.get("/api/source", params={"address": "content:half.txt"}).content == content
    for path in ("/", "/health", "/ready", "/static/app.js"):
        assert client.post(path, content=b"x").status_code == 405
    for number in range(50):
        client.request(f"X{number}", "/")
    text = client.get("/metrics").text
    assert 'method="other"' in text
    assert 'method="X1"' not in text
    many = {f"a{number}": 1 for number in range(1000)}
    assert client.post("/api/chunk", json=many).status_code == 400


def test_a_converted_file_is_downloaded_as_the_text_that_it_is(client: httpx2.Client) -> None:
    """Found by a stranger: a PDF that is Markdown inside opens nowhere."""
    book = {"cells": [{"cell_type": "markdown", "source": "# A"}], "nbformat": 4, "metadata": {}}
    headers = {"Content-Type": "application/octet-stream"}
    client.post("/api/upload", params={"path": "a.ipynb"}, content=json.dumps(book), headers=headers)
    back = client.get("/api/source", params={"address": "content:a.ipynb"})
    assert back.headers["content-disposition"].endswith("a.ipynb.md")
    assert back.content.startswith(b"# A")


def test_nobody_without_a_key_learns_where_the_library_is(tmp_path: Path) -> None:
    """Found by attack: probes and wrong keys tell nothing."""
    (tmp_path / "broken.db").write_bytes(b"not a database" * 100)
    with serving(str(tmp_path / "broken.db"), host="192.0.2.1") as client:
        for answer in (client.get("/ready"), client.get("/api/status", headers=bearer("junk"))):
            assert answer.status_code == 503
            assert "broken" not in answer.text


def test_the_password_of_the_database_is_not_printed(tmp_path: Path) -> None:
    """BAD_INPUTS: passwords in any form of URL are never shown."""
    url = "postgresql://quire:s3cret@127.0.0.1:1/prod"
    with command(tmp_path, "-L", url, QUIRE_SERVE_ALLOWED_HOSTS="docs.example.com") as (_, said):
        assert "s3cret" not in "".join(said)


def test_repeated_forwarding_headers_are_read_to_the_end() -> None:
    """Found by attack: a proxy that adds a line of its own must not be overruled by the first one."""
    lines = [(b"x-forwarded-for", b"9.9.9.9"), (b"x-forwarded-for", b"203.0.113.7")]
    names = HostNames(ServeSettings(trusted_proxies=("127.0.0.1",)), "127.0.0.1")
    assert names.asking("127.0.0.1", "http", guard.header_values(lines)).client == "203.0.113.7"


def test_one_plan_of_a_scope_at_a_time(client: httpx2.Client, monkeypatch: Any) -> None:
    """Found by attack: plans wait for web servers, and must keep nobody else waiting."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> list[Any]:
        begun.set()
        go_on.wait(10)
        return []

    monkeypatch.setattr(Library, "plan", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/api/plan", json={})
        assert begun.wait(10)
        second = client.post("/api/plan", json={})
        assert get(client, "render", address="docs:guide.md")["html"]
        go_on.set()
        assert (first.result().status_code, second.status_code) == (200, 429)
