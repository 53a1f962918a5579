"""A query to results: parse, find chunks, rank, merge up the tree, cite."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quire import analyze, fusion, merge, query, reranking
from quire.address import is_in_collection
from quire.cite import Citations
from quire.confidence import JUDGES, Judge
from quire.config import DEFAULT, SearchSettings, TokenSettings
from quire.embed.cross import CrossEncoder
from quire.errors import NoResults, nearest, no_collection
from quire.freshness import other_words
from quire.links import ALIASES
from quire.meaning import Meaning, ready
from quire.query import FieldTest, Query, Term
from quire.rank import Ranking
from quire.result import Hit, Merged, Node, Result
from quire.sources.entries import KINDS
from quire.spelling import respelled
from quire.stores import DocumentRow, Filters, Model, Store
from quire.stores.filters import described
from quire.tokens import budget_counter

if TYPE_CHECKING:
    from quire.embed.base import Vectors

log = logging.getLogger("quire")
Nodes = Mapping[tuple[int, int], Node]  # sections by document and position
_LEAST = 10  # results to make: who asks for fewer gets the first of those that others get
_MANY = 500  # chunks to fetch by meaning if some will be left out
_OTHER_FIELDS = ("", "title", "heading", "path", "tag")  # that are not front matter
_PROMOTED = {"important": 1.5}
_NOUNS = {"memory": ("memory", "memories"), "knowledge": ("piece of knowledge", "pieces of knowledge")}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search."""

    query: str
    mode: str
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    model: str = ""  # whose vectors were compared; "" if only words were

    @property
    def good_match(self) -> bool:
        """Whether any result has to do with the query. If not, they are the nearest that there are."""
        return any(result.strength != "none" for result in self.results)


def search(
    store: Store,
    text: str,
    filters: Filters,
    settings: SearchSettings,
    meaning: Meaning | None = None,
    cross: CrossEncoder | None = None,
    *,
    explain: bool = False,
    tokens: TokenSettings = DEFAULT.tokens,
) -> Found:
    """The best sections for a query. Raises NoResults if nothing was ever indexed there.

    If a cross-encoder is given, it reads the best again.
    """
    started = time.monotonic()
    log.debug("searching for %r", text)
    found = _found(store, text, filters, settings, meaning, cross, explain, tokens)
    spent, results = (time.monotonic() - started) * 1000, len(found.results)
    log.info("searched for %d characters in %.0f ms: %d results (%s)", len(text), spent, results, found.mode)
    return found


def _found(
    store: Store,
    text: str,
    filters: Filters,
    settings: SearchSettings,
    meaning: Meaning | None,
    cross: CrossEncoder | None,
    explain: bool,
    tokens: TokenSettings,
) -> Found:
    has_vector = meaning is not None and meaning.is_given
    known, unmet = _fields_in(store, text, filters)
    asked = query.parse(text, may_be_empty=has_vector, fields=known)
    _check_indexed(store, filters)
    filters = _narrowed(filters, asked)
    notes = [*asked.notes, *unmet]
    if other := other_words(store):
        remade = "quire refresh --remake" if store.is_shared else "quire refresh"
        notes.append(f"Some words may not be found in this library: {other}. To remake them: {remade}")
    else:
        asked, note = respelled(store, asked, filters.scope)
        notes += [note] if note else []
    asked = _excluding(store, asked, filters, notes)
    meaning = ready(store, asked, filters, settings, meaning, notes)
    ranking = Ranking(store, asked, filters)
    hits, mode = ranked(ranking, settings, meaning, notes)
    if not hits and any(term.phrase for group in asked.demanded for term in group):
        notes.append("Nothing has what is in quotes, word for word: the words were searched instead.")
        asked = asked.relaxed()
        ranking = Ranking(store, asked, filters)
        hits, mode = ranked(ranking, settings, meaning, notes)
    hits, is_reread = fusion.with_document_evidence(hits, settings.document_evidence), False
    if cross:
        hits, is_reread = reranking.reranked(store, cross, asked.words, hits, notes)
    merged = ranking.told_of(_merge(ranking, _promote(store, hits), settings))
    judge = _judge(asked, settings, meaning, mode, is_reread)
    most = None if settings.merging == "ra" else settings.max_result_tokens
    citations = Citations(store, asked, most, judge, budget_counter(tokens), explain=explain)
    results = citations.first(settings.limit, merged, hits)
    if citations.damaged:
        left = ", ".join(citations.damaged)
        notes.append(f"Left out, because they are damaged: {left}. To repair them: quire doctor --repair")
    if not results:
        notes.append(_no_match(store, asked, filters))
    if any(result.stale for result in results):
        notes.append("Some files have changed since they were indexed. Bring them up to date: quire refresh")
    used = meaning.model.name if meaning and mode != "keyword" else ""
    return Found(asked.text, mode, tuple(results), tuple(notes), used)


def _fields_in(store: Store, text: str, filters: Filters) -> tuple[set[str], list[str]]:
    """The fields that a query filters by, and notes. What no document has is no filter: it is words."""
    names = query.possible_fields(text)
    known = store.has_fields(names, filters.scope) if names else set()
    if not known:
        return set(), []
    terms = [
        term for term in query.parse(text, may_be_empty=True, fields=known).filters if term.field in known
    ]
    met = {term.field for term in terms if _is_met(store, term, filters)}
    unmet = [term for term in terms if term.field not in met]
    notes = [f"No document has {_shown(term)}, so it was searched as words." for term in unmet]
    return known - {term.field for term in unmet}, notes


def _is_met(store: Store, term: Term, filters: Filters) -> bool:
    return store.has_documents(replace(filters.scope, fields=tuple(_on_fields([term], "="))))


def _shown(term: Term) -> str:
    """A term as it is typed."""
    text = f'"{term.text}"' if term.phrase else term.text
    return f"{term.field}:{text}" if term.field else text


def _narrowed(filters: Filters, asked: Query) -> Filters:
    """Filters that also keep to the paths, tags and fields in a query."""
    return replace(
        filters,
        query_paths=_texts(asked.filters, "path"),
        not_paths=_texts(asked.negated, "path"),
        tags=tuple(tag.lstrip("#") for tag in (*filters.tags, *_texts(asked.filters, "tag"))),
        not_tags=tuple(tag.lstrip("#") for tag in (*filters.not_tags, *_texts(asked.negated, "tag"))),
        fields=(*filters.fields, *_on_fields(asked.filters, "="), *_on_fields(asked.negated, "!=")),
    )


def _on_fields(terms: Iterable[Term], operator: str) -> Iterator[FieldTest]:
    """The conditions on front matter in a query."""
    for term in terms:
        if term.field not in _OTHER_FIELDS:
            yield FieldTest(ALIASES if term.field == "alias" else term.field, operator, term.text)


def _texts(terms: Iterable[Term], field: str) -> tuple[str, ...]:
    return tuple(term.text for term in terms if term.field == field)


def _excluding(store: Store, asked: Query, within: Filters, notes: list[str]) -> Query:
    """A query without exclusions that no document there has; a note names those that remain."""
    scope = within.scope
    absent = [term for term in asked.left_out if not store.search_words(_only(asked, term), scope, 1)]
    kept = [term for term in asked.negated if term not in absent]
    words = [_shown(term) for term in kept if term in asked.left_out]
    filters = [_shown(term) for term in kept if term not in asked.left_out]
    if words:
        notes.append(f"Excluded: {', '.join(words)}. To search for such a word, leave out its minus sign.")
    if filters:
        said = "Without the minus sign, only these are searched."
        notes.append(f"Excluded: all documents with {' or '.join(filters)}. {said}")
    return asked.without(absent) if absent else asked


def _only(asked: Query, term: Term) -> Query:
    return replace(asked, groups=((replace(term, negated=False),),), negated=())


def ranked(
    ranking: Ranking, settings: SearchSettings, meaning: Meaning | None, notes: list[str]
) -> tuple[list[Hit], str]:
    """Chunks by words, by meaning, or by both, best first; and the mode that was used."""
    if meaning is None or _is_known(ranking.asked, settings, meaning):
        return _ranked(ranking, settings, meaning)
    less = replace(settings, meaning=settings.meaning_unknown)
    hits, mode = _ranked(ranking, less, meaning if less.meaning else None)
    if not hits and not less.meaning:  # a doubtful answer is better than none
        hits, mode = _ranked(ranking, settings, meaning)
    if hits:
        notes.append(_unknown_language(meaning.model.name, hits, mode))
    return hits, mode


def _unknown_language(model: str, hits: list[Hit], mode: str) -> str:
    said = f"{model} does not know the language of this query"
    if mode == "keyword":
        return f"{said}: searched by words only."
    if all(hit.match == "semantic" for hit in hits):
        return f"{said}, and no word matches: these results may be wrong."
    return f"{said}: meaning counts less."


def _is_known(asked: Query, settings: SearchSettings, meaning: Meaning) -> bool:
    """Whether the model knows the language of a query, where that matters."""
    return settings.mode != "hybrid" or meaning.knows(asked.words)


def _judge(
    asked: Query, settings: SearchSettings, meaning: Meaning | None, mode: str, is_reread: bool
) -> Judge:
    """What tells how sure a result is. What cosines tell is known only for the bundled model, and what pairs
    of characters tell is not known.
    """
    if analyze.is_spaceless(asked.words):
        return Judge.UNKNOWN
    if meaning is None or mode == "keyword":
        return Judge.WORDS
    is_fitted = not meaning.is_given and _is_known(asked, settings, meaning)
    judge = JUDGES.get(meaning.model.name, Judge.UNKNOWN) if is_fitted else Judge.UNKNOWN
    return Judge.RERANKED if judge is Judge.DEEP and is_reread else judge


def _ranked(ranking: Ranking, settings: SearchSettings, meaning: Meaning | None) -> tuple[list[Hit], str]:
    store, asked, filters = ranking.store, ranking.asked, ranking.filters
    vector = meaning.vector if meaning else None
    by_words = settings.mode != "semantic" or asked.demanded or vector is None
    words = store.search_words(asked, filters, _candidates(settings)) if by_words else []
    if settings.mode != "semantic" or vector is None:
        words = ranking.with_far_apart(words, settings.limit)
    if meaning is None or vector is None:
        hits, mode = ranking.with_anchors(ranking.judged(fusion.shares(words))), "keyword"
    else:
        hits, mode = _near(store, asked, filters, settings, meaning.model, vector, words), settings.mode
        if mode == "hybrid" and settings.fusion == "rrf":
            weight = fusion.OTHER_WEIGHT if settings.meaning is None else settings.meaning
            return fusion.fuse_ranks(words, hits, weight), mode  # exactly: nothing is added
        if mode == "hybrid":
            hits = _fused(ranking, settings, meaning.model, vector, words, hits)
    return fusion.with_neighbours(hits, settings.neighbours), mode


def _fused(
    ranking: Ranking,
    settings: SearchSettings,
    model: Model,
    vector: Vectors,
    words: list[Hit],
    near: list[Hit],
) -> list[Hit]:
    """Hits by words and by meaning as one list, judged."""
    if not (ranking.asked.demanded or ranking.asked.left_out):
        near = ranking.with_near_documents(model, vector, near, settings)
    if settings.fusion == "meaning":
        return ranking.by_meaning(_both(ranking, model, vector, words, near, 1.0))
    weight = fusion.weight_of(model.name) if settings.meaning is None else settings.meaning
    return ranking.with_anchors(ranking.judged(_both(ranking, model, vector, words, near, weight)))


def _both(
    ranking: Ranking, model: Model, vector: Vectors, words: list[Hit], near: list[Hit], weight: float
) -> list[Hit]:
    """Hits by words and by meaning as one list, each with its cosine."""
    far = {hit.chunk for hit in words} - {hit.chunk for hit in near}
    return fusion.fuse(words, near, ranking.store.cosines(model, vector, far), weight)


def _candidates(settings: SearchSettings) -> int:
    return max(settings.candidates, 3 * settings.limit)


def _near(
    store: Store,
    asked: Query,
    filters: Filters,
    settings: SearchSettings,
    model: Model,
    vector: Vectors,
    words: list[Hit],
) -> list[Hit]:
    """Chunks by meaning that satisfy the required and excluded terms, as those in `words` do."""
    limit = _candidates(settings)
    if asked.demanded and len(words) < limit:  # no other chunk has the required terms
        cosines = store.cosines(model, vector, [hit.chunk for hit in words])
        scored = ((hit, cosines.get(hit.chunk, -1.0)) for hit in words)
        found = [hit._replace(score=cosine, meaning=cosine, match="semantic") for hit, cosine in scored]
        found.sort(key=lambda hit: (-hit.score, hit.chunk))
    else:
        found = _allowed(store, asked, filters, model, vector, limit)
    return [hit for hit in found[:limit] if hit.score >= settings.min_cosine]


def _allowed(
    store: Store, asked: Query, filters: Filters, model: Model, vector: Vectors, limit: int
) -> list[Hit]:
    """The nearest chunks. If some must be left out, more are fetched so that enough remain."""
    if not (asked.demanded or asked.left_out):
        return store.search_vectors(model, vector, filters, limit)
    for many in (max(_MANY, limit), 10 * max(_MANY, limit)):
        found = store.search_vectors(model, vector, filters, many)
        allowed = store.allowed(asked, [hit.chunk for hit in found])
        kept = [hit for hit in found if hit.chunk in allowed]
        if len(kept) >= limit or len(found) < many:
            break
    return kept


def _check_indexed(store: Store, filters: Filters) -> None:
    """Raise NoResults if nothing was ever indexed there, which is not the same as no match."""
    known = store.collections()
    if not known:
        raise NoResults("The library is empty. Add documents with: quire add ./docs", missing="documents")
    wanted = filters.collection
    if wanted is not None and not any(is_in_collection(name, wanted) for name in known):
        raise no_collection(wanted, known)


def _promote(store: Store, hits: list[Hit]) -> list[Hit]:
    times = {row: times for level, times in _PROMOTED.items() for row in store.promoted(level)}
    raised = [hit.scoring(hit.score * times.get(hit.document, 1.0)) for hit in hits] if times else hits
    return sorted(raised, key=lambda hit: (-hit.score, hit.chunk))


def _merge(ranking: Ranking, hits: list[Hit], settings: SearchSettings) -> list[Merged]:
    """Merge as many hits as fill the answer. A weak match further down is no reason to merge."""
    size, merged, most = 0, list[Merged](), max(settings.limit, _LEAST)
    if settings.merging == "ra":
        return _merge_plainly(ranking, hits, settings)[:most]
    while len(merged) < most and size < len(hits):
        size = max(2 * size, 2 * most)
        some = hits[:size]
        nodes = ranking.store.nodes({(hit.document, hit.section) for hit in some})
        merged = _merge_bounded(ranking.store, some, nodes, settings)
    return merged[:most]


def _merge_plainly(ranking: Ranking, hits: list[Hit], settings: SearchSettings) -> list[Merged]:
    """Merge by the founding rules: all hits, plain sums, no bound, no floor; a title alone is a match."""
    nodes = ranking.store.nodes({(hit.document, hit.section) for hit in hits})
    return merge.sections(hits, nodes, **_rules(settings), titled=ranking.titled(nodes))


def _rules(settings: SearchSettings) -> dict[str, Any]:
    return {
        "threshold": settings.aggregation_threshold,
        "min_matches": settings.min_aggregation_matches,
        "score_cap": settings.score_cap_multiplier,
    }


def _merge_bounded(store: Store, hits: list[Hit], nodes: Nodes, settings: SearchSettings) -> list[Merged]:
    """Merge sections that score close to the best of their document, but never into large ones."""
    strong, weak = _by_strength(hits, settings.merge_from)
    sharp, most = settings.sharpness, settings.max_result_tokens
    merged = merge.sections(_raised(strong, sharp), nodes, **_rules(settings), max_tokens=most)
    root = 1 / sharp
    merged = [replace(it, score=it.score**root, hits=tuple(_raised(it.hits, root))) for it in merged]
    whole = {(found.document, found.section) for found in merged if found.merged_from}
    merged += merge.apart(hit for hit in weak if not _is_within(nodes, hit, whole))
    large = [found for found in merged if _is_large(found, nodes, most)]
    tokens = {key: row.tokens for key, row in store.chunks(_chunks(large)).items()} if large else {}
    parts = [part for found in large for part in merge.runs(found, tokens, most, settings.merge_from)]
    found = [*(found for found in merged if not _is_large(found, nodes, most)), *parts]
    return sorted(found, key=lambda found: (-found.score, found.document, found.section, found.hits[0].chunk))


def _by_strength(hits: list[Hit], share: float) -> tuple[list[Hit], list[Hit]]:
    """The hits of sections that score at least a share of the best in their document, and the others."""
    of_document: dict[int, float] = {}
    of_section: dict[tuple[int, int], float] = {}
    for hit in hits:
        key = hit.document, hit.section
        of_document[hit.document] = max(hit.score, of_document.get(hit.document, hit.score))
        of_section[key] = max(hit.score, of_section.get(key, hit.score))
    strong, weak = list[Hit](), list[Hit]()
    for hit in hits:
        floor = share * of_document[hit.document]
        (strong if of_section[hit.document, hit.section] >= floor else weak).append(hit)
    return strong, weak


def _is_large(found: Merged, nodes: Nodes, most: int) -> bool:
    """Whether a section with several hits is too large to be returned whole."""
    return len(found.hits) > 1 and nodes[found.document, found.section].tokens > most


def _chunks(found: Iterable[Merged]) -> list[int]:
    return [hit.chunk for one in found for hit in one.hits]


def _raised(hits: Iterable[Hit], power: float) -> list[Hit]:
    return [hit.scoring(max(hit.score, 0.0) ** power) for hit in hits]


def _is_within(nodes: Nodes, hit: Hit, whole: set[tuple[int, int]]) -> bool:
    """Whether a hit is in a section that is returned with all that is under it."""
    position = hit.section
    while position >= 0:
        if (hit.document, position) in whole:
            return True
        position = nodes[hit.document, position].parent
    return False


def _no_match(store: Store, asked: Query, filters: Filters) -> str:
    """What to say if nothing matches. Raises NoResults if there are only memories to search."""
    chunks = _counted("chunk", store.counts().chunks)
    documents = store.documents(filters)
    if not documents:
        _check_documents(store, filters)
        what = "Nothing remembered" if set(filters.kinds) & set(KINDS) else "No document"
        return f"{what} {described(filters)}"
    close = nearest(asked.text, [row.title for row in documents[:5000]])
    said = f" {close}" if close.startswith("Did") else ""
    return f"No match in {_counted_kinds(documents)} ({chunks} in the library).{said}"


def _check_documents(store: Store, filters: Filters) -> None:
    """Raise NoResults if a library, or a collection, has memories but none of the kinds to search."""
    if set(filters.kinds) & set(KINDS) or store.documents(Filters(filters.collection, filters.kinds)):
        return
    where = f"Collection {filters.collection}" if filters.collection else "The library"
    if has := _counted_kinds(store.documents(Filters(filters.collection, KINDS))):
        said = f"{where} has no documents, only {has}. Search there with: quire recall QUERY"
        raise NoResults(said, missing="documents")


def _counted_kinds(rows: Iterable[DocumentRow]) -> str:
    """How many documents, memories and pieces of knowledge there are, in words."""
    counts = Counter(row.kind if row.kind in KINDS else "document" for row in rows)
    return " and ".join(_counted(noun, counts[noun]) for noun in ("document", *KINDS) if counts[noun])


def _counted(noun: str, number: int) -> str:
    one, more = _NOUNS.get(noun, (noun, f"{noun}s"))
    return f"{number:,} {one if number == 1 else more}"
