"""Questions that a library's own links ask: the sentence around a link, and the section that it leads to.

Input: a store and its documents. Output: questions, each with where it was taken from. Always: a link leads
to another document; the same documents and the same seed give the same questions.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from quire import analyze, sentences
from quire.address import of_opening, of_section
from quire.document import text_of
from quire.errors import Damaged
from quire.evaluation.measures import TextSpan
from quire.evaluation.questions import EvalQuestion, merged_by_text
from quire.linking import Destination, Finder
from quire.stores import DocumentRow, LinkRow, SectionRow, Store

_AT_ONCE = 100  # documents whose links are followed together
_SPARE = 4  # times as many questions are made as are wanted, to choose from
_EACH = 3  # questions about one place
FEW = 20  # questions: fewer tell little
_LEAST_TERMS, _MOST = 4, 500  # terms that a question has, and its characters
_STOPS = " .:;,"  # that a question does not end with
# Words of links that only point: "here", "this guide", "see the documentation".
_POINTERS = frozenset(
    analyze.terms(
        "above article below chapter details docs documentation example following further guide here"
        " information learn link next page previous read reference see section topic tutorial"
    )
)
_MARK = "\ue000"  # stands before the link while markup is removed
_ROOT = 0  # the position of the section that is the whole document
# A list item, a row of a table, a heading, a definition or a fence is a paragraph of its own.
_STARTS = re.compile(r"\s*(?:[-*+] |\d+[.)] |\||#{1,6} |: |```|~~~|\[\^?[^\]]*\]: |>)")
_SAYS = re.compile(r"\w")  # a line without a word, such as a rule, is between paragraphs
_CODE = re.compile(r"(`+[^`]*`+)")
_TAGS = re.compile(r"\{\{.*?\}\}|<!--.*?-->|</?[a-zA-Z][^<>]*>|!\[[^\]]*\]\([^)]*\)", re.DOTALL)
_MARKUP = (
    (re.compile(r"!?\[\[(?:[^\]|]*\|)?([^\]]*)\]\]"), r"\1"),  # wikilinks
    (re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?:[^()]|\([^()]*\))*\)"), r"\1"),
    (re.compile(r"\[([^\[\]]+)\](?:\[[^\[\]]*\])?"), r"\1"),  # links whose target is elsewhere
    (re.compile(r"[`*]+|(?<!\w)_+|_+(?!\w)"), ""),
    (re.compile(r"^[\s>]*(?:[-*+] |\d+[.)] |#{1,6} )?(?:\[[ xX]\] )?", re.MULTILINE), ""),
    (re.compile(r"[\s|]+"), " "),
)
_LABEL = re.compile(r"\A\s*\S+[ \t]*\n")  # a first line of one word names a paragraph


def from_links(
    store: Store, documents: Sequence[DocumentRow], wanted: int, seed: int, *, whole: bool = False
) -> list[EvalQuestion]:
    """Questions from links to sections, at most so many; or from links to whole documents.

    Links to sections that only repeat their headings are left out, unless there are few others: no search
    misses those.
    """
    draw = random.Random(seed)  # noqa: S311  not for secrets
    shuffled, titles = draw.sample(documents, len(documents)), dict[str, str]()
    found = list[EvalQuestion]()
    for at in range(0, len(shuffled), _AT_ONCE):
        some = _of_documents(store, shuffled[at : at + _AT_ONCE], whole, titles)
        found = merged_by_text([*found, *some])
        if len(found) >= _SPARE * wanted:
            break
    kept = _few_of_each(found)
    hard = [one for one in kept if not _names(one, titles[one.addresses[0]])]
    kept = kept if whole else hard + [one for one in kept if one not in hard][: max(0, FEW - len(hard))]
    return draw.sample(kept, wanted) if len(kept) > wanted else kept


def _names(question: EvalQuestion, title: str) -> bool:
    """Whether a question begins with a heading: its link says nothing else."""
    said = question.text.partition(". ")[0] if ". " in question.text else question.text
    return _plain_terms(said) == _plain_terms(title)


def _plain_terms(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _few_of_each(questions: Sequence[EvalQuestion]) -> list[EvalQuestion]:
    """Questions without those about a place that others ask about, too."""
    about, kept = Counter[tuple[str, ...]](), list[EvalQuestion]()
    for question in questions:
        about[question.addresses] += 1
        kept += [question] if about[question.addresses] <= _EACH else []
    return kept


def _of_documents(
    store: Store, documents: Sequence[DocumentRow], whole: bool, titles: dict[str, str]
) -> Iterator[EvalQuestion]:
    """The questions that the links of documents ask; the titles of what answers are noted."""
    links = {row.seq: store.links(row.seq) for row in documents}
    finder = Finder(store, {link.key for own in links.values() for link in own})
    for row in documents:
        placed = [(link, place) for link in links[row.seq] if (place := _elsewhere(finder, link, row, whole))]
        finder.load_documents({place.document for _, place in placed})
        titles |= {_answer(finder, place)[1]: finder.section(place).title for _, place in placed}
        try:
            yield from _of_document(store, finder, row, placed) if placed else ()
        except Damaged:  # `quire doctor` says so
            continue


def _elsewhere(finder: Finder, link: LinkRow, row: DocumentRow, whole: bool) -> Destination | None:
    """Where a link leads, if that is a section of another document, or another document as a whole."""
    if not _said(link) or not link.target or bool(link.fragment) == whole:
        return None
    place = finder.place(link, row)
    is_meant = place and place.document != row.seq and (place.section == _ROOT) == whole
    return place if is_meant else None


def _said(link: LinkRow) -> str:
    """What a link says: its text, or the name that a wikilink gives. "" if that is only an address."""
    if link.text or link.form != "wikilink":
        return link.text if link.form != "embed" else ""
    return link.fragment.rpartition("#")[2] or link.target.rpartition("/")[2]


def _of_document(
    store: Store, finder: Finder, row: DocumentRow, placed: Sequence[tuple[LinkRow, Destination]]
) -> Iterator[EvalQuestion]:
    text, sections = text_of(store.source(row.seq)), store.sections(row.seq)
    for link, place in placed:
        start, end = _paragraph(text, sections[link.section], link.start)
        asked = _asked(_said(link), _sentence(text, start, end, link.start))
        if not asked:
            continue
        answer, address = _answer(finder, place)
        section = sections[link.section]
        around = TextSpan(row.address, section.start, section.own_end)
        yield EvalQuestion(asked, (answer,), (address,), (around,), (TextSpan(row.address, start, end),))


def _answer(finder: Finder, place: Destination) -> tuple[TextSpan, str]:
    """A section without its subsections, or a whole document; and its address."""
    document, section = finder.documents[place.document], finder.section(place)
    end = section.end if place.section == _ROOT else section.own_end
    address = of_section(document.address, section.slug)
    name = of_opening(address, is_root=False) if end < section.end else address
    return TextSpan(document.address, section.start, end), name


def _paragraph(text: str, section: SectionRow, at: int) -> tuple[int, int]:
    """The paragraph, list item or row of a table that a link stands in."""
    start = text.rfind("\n", section.start, at) + 1 or section.start
    while start > section.start and not _STARTS.match(text, start):
        before = text.rfind("\n", section.start, start - 1) + 1 or section.start
        if not _SAYS.search(text, before, start) or text.startswith("#", before):
            break
        start = before
    end = _line_end(text, at, section.own_end)
    while end < section.own_end:
        after = _line_end(text, end, section.own_end)
        if not _SAYS.search(text, end, after) or _STARTS.match(text, end):
            break
        end = after
    return start, end


def _line_end(text: str, at: int, most: int) -> int:
    """Where the line ends that a place is in, with its line feed."""
    return text.find("\n", at, most) + 1 or most


def _sentence(text: str, start: int, end: int, at: int) -> str:
    """The sentence around a place of a paragraph, without markup."""
    parts = _CODE.split(f"{_LABEL.sub('', text[start:at])}{_MARK}{text[at:end]}")
    plain = "".join(part if part.startswith("`") else _TAGS.sub(" ", part) for part in parts)
    for pattern, instead in _MARKUP:
        plain = pattern.sub(instead, plain)
    before, _, after = plain.strip().partition(_MARK)
    whole, first = before + after, 0
    for last in sentences.ends(whole, 0, len(whole)):
        if last > len(before):
            return whole[first:last].strip()
        first = last
    return whole[first:].strip()


def _asked(said: str, sentence: str) -> str:
    """The question: what a link says, then its sentence; "" if that tells too little to be found by."""
    said, sentence = " ".join(said.replace("`", "").split()), sentence.strip(_STOPS)
    has_more = sentence and _plain_terms(sentence) != _plain_terms(said)
    question = (f"{said}. {sentence}" if _telling(said) else sentence) if has_more else said.strip(_STOPS)
    return question if len(_telling(question)) >= _LEAST_TERMS and len(question) <= _MOST else ""


def _telling(text: str) -> set[str]:
    """The terms of a text that say what it is about."""
    return set(analyze.terms(text)) - analyze.STOP - _POINTERS
