"""Who may do what: every route, every key, the right and the wrong collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import TypeAdapter

from quire import Library
from quire.surfaces.http.routes import ROUTES
from tests.http_server import QUICK, bearer, serving

LEVELS = ("read", "write", "admin")
SECRET = "zanzibar"  # a word that only the other collection has


@dataclass(frozen=True)
class Try:
    """A request about one collection."""

    method: str
    path: str
    level: str
    query: dict[str, Any]
    json: dict[str, Any] | None = None
    body: bytes | None = None
    names_collection: bool = True  # else it is about all that the caller may see

    @property
    def id(self) -> str:
        return f"{self.method} {self.path}"


def tries(collection: str) -> list[Try]:
    """A request for each route, about a collection. None of them changes what the next ones need."""
    at = {"address": f"{collection}:guide.md"}
    entry = {"address": f"{collection}-notes:where"}
    given: dict[str, dict[str, Any]] = {
        "/api/search": {"q": "light", "collection": collection},
        "/api/recall": {"q": "cellar", "collection": f"{collection}-notes"},
        "/api/context": {"q": "light", "collection": collection},
        **dict.fromkeys(
            ("/api/read", "/api/render", "/api/source", "/api/toc", "/api/chunks", "/api/links"), at
        ),
        "/api/documents": {"collection": collection},
        "/api/map": {"collection": collection},
        "/api/history": entry,
        "/api/chunk": {**at, "strategies": ["auto", "nodes"]},
        "/api/chunk/file": {"path": "a.md"},
        "/api/plan": {"sources": [], "prune": False},
        "/api/add": {"content": "# New\n\nA wick.\n", "path": "new.md", "collection": collection},
        "/api/upload": {"path": "up.md", "collection": collection},
        "/api/refresh": {},
        "/api/remove": {"collection": collection, "dry_run": True},
        "/api/sources/remove": {"place": "text.md", "collection": collection, "dry_run": True},
        "/api/promote": {**at, "level": "important"},
        "/api/remember": {"text": "A wick is long.", "collection": f"{collection}-notes"},
        "/api/forget": {"collection": f"{collection}-notes", "dry_run": True},
    }
    general: tuple[str, ...] = (
        "/api/sources",
        "/api/status",
        "/api/jobs",
        "/api/doctor",
        "/api/plan",
        "/api/refresh",
    )
    general += ("/api/chunk/file",)
    found = []
    for route in ROUTES:
        values = given.get(route.path, {})
        about: dict[str, Any] = {"names_collection": route.path not in general}
        if route.takes_json:
            about["json"] = values
        else:
            about |= {"body": b"# Up\n\nA wick.\n"} if route.takes_file else {}
        query = {} if route.takes_json else values
        found.append(Try(route.method, route.path, route.level, query, **about))
    others = [("GET", "/api/openapi.json", "read"), ("GET", "/metrics", "admin")]
    return found + [Try(*one, {}, names_collection=False) for one in others]


def ask(client: httpx2.Client, one: Try, key: str = "") -> httpx2.Response:
    headers = bearer(key) if key else {}
    if one.body is not None:
        headers["Content-Type"] = "application/octet-stream"
        return client.request(one.method, one.path, params=one.query, content=one.body, headers=headers)
    return client.request(one.method, one.path, params=one.query, json=one.json, headers=headers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folder")


@pytest.fixture
def team(library_url: str, folder: Path) -> Iterator[tuple[httpx2.Client, dict[str, str], Library]]:
    """A server that others can reach, its keys by level and scope, and the library."""
    with Library.open(library_url, create=True, config=QUICK) as library:
        for name, word in (("open", "lantern"), ("closed", SECRET)):
            text = f"# Guide\n\nHow to light a {word}.\n\n## Care\n\nSee [[guide]].\n"
            library.add(content=text, path="guide.md", collection=name, embed=False)
            library.add(content=f"# Text\n\nOf {word}.\n", path="text.md", collection=name, embed=False)
            library.remember(f"The {word} is in the cellar.", collection=f"{name}-notes", name="where")
        keys = {level: library.make_key(f"all {level}", level=level)[1] for level in LEVELS}
        for level in LEVELS[:2]:
            made = library.make_key(f"some {level}", level=level, collections=["open", "open-notes"])
            keys[f"scoped {level}"] = made[1]
        with serving(library_url, host="192.0.2.1", roots=[folder]) as client:
            yield client, keys, library


def test_every_route_asks_for_a_key(team: Any) -> None:
    """Issue: a key for any other address. Without one, and with a wrong one, there is nothing."""
    client, keys, _ = team
    for one in tries("open"):
        answer = ask(client, one)
        assert answer.status_code == 401, one.id
        assert answer.json()["code"] == "key_needed"
        assert answer.headers["www-authenticate"] == "Bearer"
    wrong = [*(f"{keys['admin'][:-1]}x", "quire", "x" * 5000), keys["read"].replace("quire", "QUIRE")]
    for key in wrong:
        assert client.get("/api/status", headers=bearer(key)).status_code in (401, 429)
    assert client.get("/api/status", headers={"Authorization": f"Basic {keys['admin']}"}).status_code == 401
    assert client.get("/api/status", params={"key": keys["admin"]}).status_code == 401


@pytest.mark.parametrize("who", ["read", "write", "admin", "scoped read", "scoped write"])
def test_every_route_with_every_key_on_the_right_and_the_wrong_collection(team: Any, who: str) -> None:
    """Issue: an authorisation matrix: every route, every scope, the right and the wrong collection."""
    client, keys, library = team
    level = who.rpartition(" ")[2]
    before = {
        row.address: row.updated_at for row in library.documents() if row.collection.startswith("closed")
    }
    for collection in ("open", "closed"):
        for one in tries(collection):
            answer = ask(client, one, keys[who])
            told = f"{who}: {one.id} on {collection}: {answer.status_code} {answer.text[:300]}"
            if LEVELS.index(level) < LEVELS.index(one.level):
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), told
            elif who.startswith("scoped") and collection == "closed" and one.names_collection:
                assert answer.status_code in (403, 404), told
                assert SECRET not in answer.text, told
            else:
                assert answer.status_code == 200, told
                assert not who.startswith("scoped") or SECRET not in answer.text, told
                assert not who.startswith("scoped") or "closed" not in answer.text, told
    after = {
        row.address: row.updated_at for row in library.documents() if row.collection.startswith("closed")
    }
    assert not who.startswith("scoped") or after == before


def test_every_route_of_the_application_is_in_the_matrix(team: Any) -> None:
    """A route that nobody tried could be open to everyone."""
    client, keys, _ = team
    told = client.get("/api/openapi.json", headers=bearer(keys["read"])).json()["paths"]
    described = {(method.upper(), path) for path, methods in told.items() for method in methods}
    tried = {(one.method, one.path) for one in tries("open")}
    jobs = {("GET", "/api/jobs/{id}"), ("DELETE", "/api/jobs/{id}"), ("GET", "/api/jobs/{id}/events")}
    assert described == (tried | jobs) - {("GET", "/api/openapi.json"), ("GET", "/metrics")}


def test_a_job_is_seen_by_those_of_its_scope_and_by_admins(team: Any) -> None:
    """Issue: keys are scoped. A job names what someone adds."""
    client, keys, _ = team
    given = {
        "content": "# Job\n\nText.\n",
        "path": "secret-name.md",
        "collection": "closed",
        "background": True,
    }
    started = client.post("/api/add", json=given, headers=bearer(keys["write"]))
    assert started.status_code == 202
    place = f"/api/jobs/{started.json()['job']}"
    expected = {"admin": 200, "write": 200, "read": 200, "scoped read": 404, "scoped write": 404}
    for who, status in expected.items():
        assert client.get(place, headers=bearer(keys[who])).status_code == status, who
        assert client.get(f"{place}/events", headers=bearer(keys[who])).status_code == status, who
        listed = client.get("/api/jobs", headers=bearer(keys[who])).text
        assert ("secret-name.md" in listed) == (status == 200), who
    assert client.delete(place, headers=bearer(keys["read"])).status_code == 403
    assert client.delete(place, headers=bearer(keys["scoped write"])).status_code == 404
    assert client.delete(place, headers=bearer(keys["admin"])).status_code == 200
    assert client.get(place).status_code == 401


def test_a_key_that_is_withdrawn_or_expires_opens_nothing(team: Any, monkeypatch: Any) -> None:
    """Issue: keys are withdrawn, with expiry."""
    client, _, library = team
    monkeypatch.setattr("quire.surfaces.http.access._KEPT", 0.0)
    soon, key = library.make_key("soon", expires="1d")
    assert client.get("/api/status", headers=bearer(key)).status_code == 200
    later = (soon.expires_at + 1) * 1_000_000
    with monkeypatch.context() as clock:
        clock.setattr("quire.surfaces.http.access.time.time_ns", lambda: later)
        assert client.get("/api/status", headers=bearer(key)).status_code == 401
    assert client.get("/api/status", headers=bearer(key)).status_code == 200
    library.withdraw_key("soon")
    assert client.get("/api/status", headers=bearer(key)).status_code == 401


def test_a_scoped_key_with_one_collection_writes_to_it(team: Any) -> None:
    """Who has one collection need not name it; who has several must."""
    client, keys, library = team
    _, key = library.make_key("one", level="write", collections=["open"])
    given = {"content": "# Mine\n\nText.\n", "path": "mine.md"}
    assert client.post("/api/add", json=given, headers=bearer(key)).json()["addresses"] == ["open:mine.md"]
    refused = client.post("/api/add", json=given, headers=bearer(keys["scoped write"]))
    assert refused.status_code == 400
    assert "open, open-notes" in refused.json()["message"]


def test_a_server_that_is_read_only_writes_for_nobody(library_url: str, tmp_path: Path) -> None:
    """`quire serve --read-only`."""
    with Library.open(library_url, create=True, config=QUICK) as library:
        library.add(content="# A\n\nText.\n", path="a.md", collection="open", embed=False)
    with serving(library_url, read_only=True) as client:
        for one in tries("open"):
            expected = {"read": (200, 404), "write": (403,), "admin": (200,)}[one.level]
            assert ask(client, one).status_code in expected, one.id
        assert client.get("/api/status").json()["access"]["level"] == "read"


def agent_texts(client: httpx2.Client, key: str) -> Callable[[str, dict[str, Any]], str]:
    """Calls tools of the MCP server with a key, in the stateless form of the protocol."""

    def call(method: str, params: dict[str, Any]) -> str:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
        headers |= {"Mcp-Method": method, **({"Mcp-Name": params["name"]} if "name" in params else {})}
        return client.post("/mcp", json=body, headers={**headers, **bearer(key)}).text

    return call


def test_agents_see_what_their_key_allows(team: Any) -> None:
    """Issue: the MCP server is on the same port; keys are scoped there, too."""
    client, keys, _ = team
    whole, some = agent_texts(client, keys["read"]), agent_texts(client, keys["scoped read"])
    found = {"name": "search", "arguments": {"query": "light"}}
    assert SECRET in whole("tools/call", found)
    assert "lantern" in some("tools/call", found)
    for asked in (
        found,
        {"name": "search", "arguments": {"query": SECRET}},
        {"name": "list", "arguments": {}},
        {"name": "status", "arguments": {}},
        {"name": "recall", "arguments": {"query": "cellar"}},
        {"name": "context", "arguments": {"query": "light"}},
        {"name": "read", "arguments": {"address": "closed:guide.md"}},
        {"name": "toc", "arguments": {"address": "closed:guide.md"}},
    ):
        said = some("tools/call", asked).replace(f'"query": "{SECRET}"', "").replace("closed:guide.md", "")
        said = said.replace(f'\\"query\\": \\"{SECRET}\\"', "").replace(f'"query":"{SECRET}"', "")
        assert "of " + SECRET not in said
        assert "a " + SECRET not in said
        assert "closed" not in said, asked
    assert "closed" not in some("resources/list", {})
    assert '"name":"add"' not in some("tools/list", {}).replace(" ", "")
    assert '"name":"add"' in agent_texts(client, keys["scoped write"])("tools/list", {}).replace(" ", "")
    refused = agent_texts(client, keys["scoped write"])(
        "tools/call",
        {"name": "add", "arguments": {"content": "Text.", "path": "x.md", "collection": "closed"}},
    )
    assert "No access to the collection" in refused
    assert client.post("/mcp", json={}).status_code == 401


def test_answers_have_the_form_that_the_openapi_document_says(team: Any) -> None:
    """Issue: OpenAPI document. Nothing is missing in an answer, and nothing is added."""
    client, keys, _ = team
    forms = {(route.method, route.path): route.answer for route in ROUTES}
    for one in tries("open"):
        form = forms.get((one.method, one.path), bytes)
        answer = ask(client, one, keys["admin"])
        if form is not bytes:
            TypeAdapter(form).validate_json(answer.content)
