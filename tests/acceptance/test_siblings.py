"""S1, S2, …: demands from the specifications beside the founding documents, one test for each."""

from __future__ import annotations

import json
import os
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

import quire
from quire.embed.http import Ollama
from tests.acceptance import meaning
from tests.acceptance.conftest import cli, config
from tests.commands import run
from tests.mcp_client import ask, call, parameters, refused, some_docs, talk
from tests.models_server import status


def document(library: quire.Library, address: str) -> quire.DocumentRow:
    """A document that is there."""
    row = library.document(address)
    assert row is not None
    return row


# --------------------------------------------------------------------------- beside brain chunks (B)


def test_s1_fusion_adds_the_reciprocals_of_sixty_and_the_rank(library_url: str) -> None:
    """S1: By reciprocal ranks with weights of 1, a score is the sum of 1 / (60 + rank), ranks from 1."""
    texts = {  # by words from a to d, by meaning from d to b: so often has each the lion that nobody asks for
        "a": "Quagga quagga quagga.",
        "b": "Quagga, quagga. Zebra, lion, lion, lion.",
        "c": "A quagga among other words. Zebra, lion, lion.",
        "d": "A quagga among very many other words that say nothing of it. Zebra, lion.",
        "e": "Nothing but a zebra.",
    }
    ranks = {"a": (1, 0), "b": (2, 4), "c": (3, 3), "d": (4, 2), "e": (0, 1)}
    with meaning.knowing("zebra", "lion") as models:
        chosen = meaning.config(models, {"search": {"fusion": "rrf", "meaning": 1.0}})
        with quire.Library.open(library_url, create=True, config=chosen) as library:
            for path, text in texts.items():
                library.add(content=text, path=path, collection="c")
            found = {result.path: result.score for result in library.search("quagga zebrawood").results}
    scores = {path: sum(1 / (60 + rank) for rank in both if rank) for path, both in ranks.items()}
    assert found == pytest.approx(scores, abs=1e-6)


def test_s2_without_an_embedding_a_query_is_full_text_only(library_url: str) -> None:
    """S2: With nothing embedded, or no model to ask, words alone answer, and a note says why.

    With instant vectors, which are there unless embed.model is none, meaning answers all the same.
    """
    with quire.Library.open(library_url, create=True, config=config()) as library:
        library.remember("The zebra runs.", name="zebra")
        found = library.recall("zebra runs")
        assert (found.mode, found.notes, [result.match for result in found.results]) == (
            "keyword",
            (),
            ["keyword"],
        )
    with meaning.knowing("zebra", "lion") as models:
        chosen = meaning.config(models)
        without = meaning.config(models, {"embed": {"model": "none"}})
        with quire.Library.open(library_url, config=without) as library:
            library.embed("ollama/words")
        with quire.Library.open(library_url, config=chosen) as library:
            assert library.recall("zebra").results[0].match == "both"
            answer, models.always = models.always, status(404)
            found = library.recall("zebra")
            assert (found.mode, [result.match for result in found.results]) == ("keyword", ["keyword"])
            assert found.notes[0].startswith("Searched by words only.")
            models.always = answer
            library.embed()
            models.always = status(404)
            found = library.recall("zebra")
            assert (found.mode, found.model, found.results[0].match) == ("hybrid", "static", "both")
            assert found.notes[0].startswith("Searched with static.")


# -------------------------------------------------------------------------- beside header chunks (H)


def _tenants(library: quire.Library) -> None:
    """The same two paths in three branches of a project, and in another project."""
    for tenant in ("app@main", "app@dev", "app@dev/new", "apple@main"):
        for path in ("docs/guide.md", "notes.md"):
            library.add(content=f"# Guide\n\nThe zebra of {tenant}.\n", path=path, collection=tenant)


def test_s3_a_tenant_is_a_project_a_branch_and_a_path(library: quire.Library) -> None:
    """S3: Documents of a tenant are apart from all others; a search keeps to a project, branch and path."""
    _tenants(library)
    assert len({row.id for row in library.documents()}) == 8
    assert len(library.documents("app@dev")) == 2
    for collection, branches in {
        "app@dev": {"app@dev"},
        "app@*": {"app@main", "app@dev", "app@dev/new"},
        "apple@*": {"apple@main"},
    }.items():
        found = library.search("zebra", collection=collection).results
        assert {result.collection for result in found} == branches
        assert len(found) == 2 * len(branches)
        narrow = library.search("zebra", collection=collection, paths=["docs/"]).results
        assert {result.path for result in narrow} == {"docs/guide.md"}
        assert {result.collection for result in narrow} == branches
    for missing in ("app", "ap@*"):
        with pytest.raises(quire.NoResults):
            library.search("zebra", collection=missing)


def test_s4_documents_of_a_tenant_are_deleted_by_project_branch_and_path(library: quire.Library) -> None:
    """S4: A project, a branch or a path of one is deleted with its chunks; a dry run only tells."""

    def left() -> list[str]:
        return [row.address for row in library.documents()]

    _tenants(library)
    before = left()
    dry = library.remove(collection="app@dev", paths=["docs/"], dry_run=True)
    assert ([row.address for row in dry], left()) == (["app@dev:docs/guide.md"], before)
    assert library.remove(collection="app@dev", paths=["docs/"]) == dry
    assert left() == [address for address in before if address != "app@dev:docs/guide.md"]
    gone = library.remove(collection="app@dev/new")
    assert {row.collection for row in gone} == {"app@dev/new"}
    assert len(library.remove(collection="app@*", dry_run=True)) == 3
    assert len(library.remove(collection="app@*")) == 3
    assert left() == ["apple@main:docs/guide.md", "apple@main:notes.md"]
    assert library.status().chunks == 2
    assert {result.collection for result in library.search("zebra").results} == {"apple@main"}
    with pytest.raises(quire.NoResults):
        library.remove(collection="app@*")


def test_s5_important_documents_score_half_as_much_again(library: quire.Library) -> None:
    """S5: An important document scores 1.5 times as much as before, and passes one that was better."""
    library.add(content="# A\n\nzebra\n", path="a.md", collection="c")
    library.add(content="# B\n\nzebra and some other words\n", path="b.md", collection="c")

    def scores() -> dict[str, float]:
        return {result.path: result.score for result in library.search("zebra").results}

    before = scores()
    assert before["a.md"] > before["b.md"] > before["a.md"] / 1.5
    library.promote("c:b.md", "important")
    assert scores() == pytest.approx({"a.md": before["a.md"], "b.md": 1.5 * before["b.md"]}, abs=2e-6)
    assert library.search("zebra").results[0].path == "b.md"
    library.promote("c:b.md", "standard")
    assert scores() == before


def test_s6_critical_documents_come_first_in_context_and_count_against_the_budget(
    library: quire.Library,
) -> None:
    """S6: A critical document opens every context, whatever is asked, and takes its room from the budget."""
    rules = "# Rules\n\n" + "Be kind to every animal. " * 40
    library.add(content=rules, path="rules.md", collection="c")
    library.add(content="# Zebra\n\n" + "The zebra runs. " * 40, path="zebra.md", collection="c")
    assert [passage.path for passage in library.context("zebra").passages] == ["zebra.md"]
    library.promote("c:rules.md", "critical")
    whole = library.context("zebra")
    assert [(passage.path, passage.reason) for passage in whole.passages] == [
        ("rules.md", "critical"),
        ("zebra.md", "match"),
    ]
    assert whole.passages[0].text == rules.rstrip()
    tight = library.context("zebra", max_tokens=whole.tokens - 50)
    assert tight.passages[0].text == rules.rstrip()
    assert tight.tokens <= whole.tokens - 50
    assert sum(len(passage.text) for passage in tight.passages[1:]) < len(whole.passages[1].text) - 100
    assert library.context("no such word at all").passages[0].path == "rules.md"


def test_s7_reconciling_goes_by_hash(library_url: str, tmp_path: Path) -> None:
    """S7: A refresh compares contents: a touched file stays, and a change is seen whatever its time."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("touched", "changed", "same"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe zebra runs.\n")
    with (
        meaning.knowing("zebra") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        library.add(folder)
        before = {row.path: row for row in library.documents()}
        asked = len(models.asked)
        (folder / "touched.md").touch()
        kept = (folder / "changed.md").stat()
        (folder / "changed.md").write_text("# changed\n\nThe okapi runs.\n")  # of the same size
        os.utime(folder / "changed.md", ns=(kept.st_atime_ns, kept.st_mtime_ns))
        report = library.refresh()
        assert (report.updated, report.unchanged, report.failed) == (1, 2, [])
        after = {row.path: row for row in library.documents()}
        assert after["touched.md"].updated_at == before["touched.md"].updated_at
        assert after["same.md"] == before["same.md"]
        assert after["changed.md"].checksum != before["changed.md"].checksum
        assert len(models.asked) == asked + 1
        assert [result.path for result in library.search("okapi", mode="keyword").results] == ["changed.md"]


def test_s8_a_rename_keeps_embeddings(library_url: str, tmp_path: Path) -> None:
    """S8: A renamed file is the same document with a new path, and nothing of it is embedded again."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "old.md").write_text("# Animals\n\nThe zebra runs.\n\n## More\n\nThe lion sleeps.\n")
    (folder / "other.md").write_text("# Other\n\nNothing.\n")
    with (
        meaning.knowing("zebra", "lion") as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        library.add(folder)
        library.promote("docs:old.md", "important")
        old, asked = document(library, "docs:old.md"), len(models.asked)
        (folder / "sub").mkdir()
        (folder / "old.md").rename(folder / "sub" / "new.md")
        report = library.refresh()
        assert (report.moved, report.added, report.removed) == (1, 0, 0)
        assert len(models.asked) == asked
        new = document(library, "docs:sub/new.md")
        assert (new.created_at, new.promotion, new.checksum) == (old.created_at, "important", old.checksum)
        assert library.document("docs:old.md") is None
        assert (library.status().chunks, library.status().embedded) == (3, 3)
        found = library.search("lion", mode="semantic").results
        assert [result.address for result in found] == ["docs:sub/new.md#more"]


def test_s9_the_dimension_of_an_ollama_model_is_checked_at_the_start(library_url: str) -> None:
    """S9: A model is asked for its dimension before it embeds; another one than the library's is refused."""
    with (
        meaning.knowing("zebra", dimension=8) as models,
        quire.Library.open(library_url, create=True, config=meaning.config(models)) as library,
    ):
        assert library.add(content="The zebra runs.", path="a.md", collection="c").failed == []
        assert (models.asked[0].path, models.asked[0].body["model"]) == ("/api/embed", "words")
        assert [len(texts) for texts in models.inputs] == [1, 1]
        assert "zebra" not in models.inputs[0][0]  # the first asks for the dimension
    with (
        meaning.knowing("zebra", dimension=9) as models,
        quire.Library.open(library_url, config=meaning.config(models)) as library,
    ):
        failed = library.add(content="The zebra sleeps.", path="b.md", collection="c").failed
        assert ["returns 9 dimensions; this library has 8" in one.reason for one in failed] == [True]
        assert len(models.asked) == 1  # no text was sent
        assert (library.status().chunks, library.status().embedded) == (2, 1)
        assert library.search("sleeps").results[0].path == "b.md"


def test_s10_ollama_is_tried_again_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S10: A server that fails is asked again after 1, 2 and 4 seconds; then words alone find the text."""
    with meaning.knowing("zebra") as models:
        waited = list[float]()
        monkeypatch.setattr(Ollama, "__init__", partialmethod(Ollama.__init__, sleep=waited.append))
        models.always = status(500)
        with quire.Library.open(tmp_path / "l.db", create=True, config=meaning.config(models)) as library:
            (failed,) = library.add(content="The zebra runs.", path="a.md", collection="c").failed
            assert "tried once, again after 1 s, again after 2 s, again after 4 s" in failed.reason
            assert len(models.asked) == 4
            assert waited == [1, 2, 4]
            assert library.search("zebra").results[0].path == "a.md"


def test_s11_a_server_that_is_down_gets_a_pause(tmp_path: Path) -> None:
    """S11: After giving up, requests fail at once without asking the server, and searches go on by words."""
    with meaning.knowing("zebra") as models:
        models.always = status(503, retry_after="3600")  # longer than anyone waits
        with quire.Library.open(tmp_path / "l.db", create=True, config=meaning.config(models)) as library:
            (failed,) = library.add(content="The zebra runs.", path="a.md", collection="c").failed
            assert "cannot be used: tried once" in failed.reason
            assert len(models.asked) == 1
            (failed,) = library.add(content="The zebra sleeps.", path="b.md", collection="c").failed
            assert "is resting for" in failed.reason
            with pytest.raises(quire.EmbeddingError, match="is resting for"):
                library.embed()
            assert len(models.asked) == 1
            assert len(library.search("zebra").results) == 2


def test_s12_errors_have_a_code_a_message_and_details(tmp_path: Path) -> None:
    """S12: An error is {code, message, details}, the same in Python, on the command line and over MCP."""
    url = str(tmp_path / "l.db")
    with quire.Library.open(url, create=True, config=config()) as library:
        library.add(content="# A\n\nText.\n", path="a.md", collection="notes")
        with pytest.raises(quire.NoResults) as missing:
            library.search("text", collection="note")
        with pytest.raises(quire.SettingError) as wrong:
            library.search("text", limit=0)
        (tmp_path / "binary.md").write_bytes(b"a\0b")
        (failed,) = library.add(tmp_path / "binary.md").failed
    error = missing.value.to_json()
    assert set(error) == {"code", "message", "details"}
    assert (error["code"], error["details"]) == ("no_results", {"missing": "collection", "name": "note"})
    assert error["message"] == str(missing.value) == "No collection 'note'. Did you mean 'notes'?"
    assert (wrong.value.to_json()["code"], failed.code) == ("setting_error", "not_text")
    assert wrong.value.to_json()["details"]["setting"] == "limit"
    err = cli("search", "-L", url, "-c", "note", "text", "--json", code=1)[1]
    assert json.loads(err) == {"error": error}
    assert json.loads(cli("search", "--no-such-option", "--json", code=2)[1])["error"]["code"] == "usage"

    async def work(client: Client) -> CallToolResult:
        return await call(client, "search", query="text", collection="note")

    (tmp_path / "docs").mkdir()
    result = talk(parameters(tmp_path), work)
    assert result.is_error
    assert result.meta is not None
    assert result.meta.get("quire/error") == error


def test_s13_ollama_num_parallel_bounds_the_requests(tmp_path: Path) -> None:
    """S13: OLLAMA_NUM_PARALLEL is how many requests a server gets at once, unless the user sets it."""
    (tmp_path / "a.md").write_text("".join(f"# Part {number}\n\nText {number}.\n\n" for number in range(12)))
    for parallel, own in ((3, {}), (4, {"QUIRE_EMBED_PARALLEL": "4"})):
        with meaning.answering_together(parallel) as models:
            asked: dict[str, Any] = {
                "OLLAMA_NUM_PARALLEL": "3",
                "QUIRE_EMBED_MODEL": "ollama/words",
                "QUIRE_EMBED_URL": models.url,
                "QUIRE_EMBED_BATCH": "1",
            }
            run(tmp_path, "add", "a.md", "-L", f"{parallel}.db", **(asked | own))
        assert (len(models.inputs), models.busiest) == (1 + 12, parallel)


def test_s14_agents_promote_delete_and_reconcile(tmp_path: Path) -> None:
    """S14: Promoting, deleting a tenant's documents with a dry run, and reconciling are MCP tools."""
    some_docs(tmp_path)
    (tmp_path / "more.md").write_text("# More\n\nOutside of the roots.\n")

    async def work(client: Client) -> None:
        await ask(client, "add", sources=[str(tmp_path / "docs")], collection="app@main")
        assert "critical" in await ask(client, "promote", address="app@main:guide.md", level="critical")
        assert "standard" in await refused(client, "promote", address="app@main:guide.md", level="urgent")
        (tmp_path / "docs" / "faq.md").write_text("# FAQ\n\nPenguins dive.\n")
        (tmp_path / "docs" / "new.md").write_text("# New\n\nOkapi.\n")
        checked = await ask(client, "refresh", check=True)
        assert "app@main:faq.md" in checked
        assert "app@main:new.md" in checked
        assert "No match" in await ask(client, "search", query="okapi")
        await ask(client, "refresh")
        assert "app@main:new.md" in await ask(client, "search", query="okapi")
        assert "up to date" in await ask(client, "refresh", check=True)
        given = {"collection": "app@main", "paths": ["new"]}
        assert "app@main:new.md" in await ask(client, "remove", **given, dry_run=True)
        assert "app@main:new.md" in await ask(client, "search", query="okapi")
        await ask(client, "remove", **given)
        assert "No match" in await ask(client, "search", query="okapi")

    talk(parameters(tmp_path), work)
    with quire.Library.open(tmp_path / "l.db", config=config()) as library:
        rows = {row.path: row.promotion for row in library.documents()}
    assert rows == {"guide.md": "critical", "faq.md": "standard"}


def test_s15_vectors_of_a_callers_own_are_stored_and_searched(library: quire.Library) -> None:
    """S15: A caller stores a vector for a chunk, reads it, and searches by one, alone or with words."""
    library.add(content="# A\n\nThe zebra.\n\n# B\n\nThe lion.\n", path="a.md", collection="c")
    library.add(content="# C\n\nThe okapi.\n", path="c.md", collection="c")
    first, second = library.chunks("c:a.md")
    (third,) = library.chunks("c:c.md")
    with pytest.raises(quire.NoResults):
        library.search(vector=[1.0, 0.0, 0.0])
    assert library.vector(first.id) is None
    library.set_vector(first.id, [1.0, 0.0, 0.0])
    library.set_vector(second.id, [0.0, 3.0, 0.0])
    assert [chunk.embedded for chunk in library.chunks("c:a.md")] == [True, True]
    assert [chunk.embedded for chunk in library.chunks("c:c.md")] == [False]
    assert library.vector(second.id) == pytest.approx([0, 1, 0], abs=0.01)
    library.set_vector(second.id, [0.0, 3.0, 4.0])  # again
    assert library.vector(second.id) == pytest.approx([0, 0.6, 0.8], abs=0.01)

    def found(query: str = "", **given: Any) -> list[tuple[str, str]]:
        results = library.search(query, **given).results
        return [(chunk_id, result.match) for result in results for chunk_id in result.chunk_ids]

    assert found(vector=[0.0, 0.9, 1.0]) == [(second.id, "semantic")]
    assert found(vector=[1.0, 0.5, 0.5]) == [(first.id, "semantic"), (second.id, "semantic")]
    assert found("okapi", vector=[1.0, 0.0, 0.0]) == [(first.id, "semantic"), (third.id, "keyword")]
    assert found("zebra", vector=[1.0, 0.0, 0.0]) == [(first.id, "both")]
    assert found("zebra") == [(first.id, "keyword")]
    for wrong in ([1.0, 0.0], [0.0, 0.0, 0.0], [float("nan"), 0.0, 0.0]):
        with pytest.raises(quire.SettingError, match="vector"):
            library.set_vector(first.id, wrong)
        with pytest.raises(quire.SettingError, match="vector"):
            library.search(vector=wrong)
    assert library.vector(first.id) == pytest.approx([1, 0, 0], abs=0.01)
