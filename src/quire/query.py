"""A string to a Query: what to search for, what to exclude, and where.

    words  "a phrase"  -not  this OR that  prefix*  title:word  heading:"a phrase"  path:docs/  tag:draft
    alias:name  status:draft  (any front-matter field that the library has)

Any string is parsed, in linear time; one without anything to search for raises a SettingError. Always: a
term's text is stripped, is not only punctuation and has at most MAX_CHARS characters; a term is not both a
phrase and a prefix; white space around a query changes nothing. Texts are as typed: index terms, case
folding and stemming come later. A text with many words is prose: its quotes and minus signs are
punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice, pairwise
from unicodedata import category

from quire import later
from quire.errors import SettingError

MAX_CHARS = 200  # of a term; a longer one is pasted text, and would match nothing

# A minus counts only where a word begins, and `--flag` is a word. `Path::new` is no field, nor is `title: x`.
_ITEM = r"""
    (?P<minus>(?<!\S)-(?![-\s]))?
    (?:(?P<field>(?i:FIELDS)):(?![:\s]|$))?
    (?:["“”„](?P<phrase>[^"“”„]*)["“”„]?
    |(?:«(?=[^«»]+»)|»(?=[^«»]+«))(?P<guillemets>[^«»]*)[«»]
    |[「『](?P<corners>[^「」『』]+)[」』]
    |(?P<word>[^\s"“”„]+))
    """
# What may be the name of a front-matter field: `std::vector`, `http://x` and `error: x` have none.
_NAME = later.pattern(r"(?:(?<!\S)|(?<=\s-)|(?<=\A-))([^\W\d][\w.-]{0,99}):(?![:\s]|//|$)")
# A pasted sentence has quotes and dashes too: `runs mysql -h localhost -e "SELECT 1" to make sure that …`.
_MARKS = later.pattern(r'["“”„«»「」『』]|(?<!\S)-(?![-\s])')
# A minus excludes a word: `-f`, `-xzf` and `-9` are options of pasted commands.
_EXCLUDABLE = later.pattern(r"(?=.*[^\W\d_]{3})(?!(?ai:[b-df-hj-np-tv-xz]{3,5})$)", re.DOTALL)
_MOST_FIELDS = 64  # names in a query that may be fields
_MOST_WORDS = 10  # with more words, quotes and minus signs are punctuation
_UNSTORABLE = later.pattern(r"[\x00\ud800-\udfff]")  # no database takes NUL or half a surrogate pair
_PLAIN = later.pattern(r"[\w./=-]+")  # what a shell takes as it is
_ALPHANUMERIC = later.pattern(r"[^\W_]")
_SIGNS = {"Sm", "Sc", "So", "Cn", "Co"}  # emoji among them; Cn is an emoji newer than this Python


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to match: a word, the start of a word, or a phrase."""

    text: str
    phrase: bool = False
    prefix: bool = False
    negated: bool = False
    field: str = ""  # title, heading, path, tag, alias, or a front-matter field; "" is any text


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: one term of every group is wanted, none of the negated, where the filters allow."""

    text: str
    groups: tuple[tuple[Term, ...], ...]
    negated: tuple[Term, ...]
    filters: tuple[Term, ...]
    notes: tuple[str, ...]  # sentences about what was ignored

    @property
    def words(self) -> str:
        """The words to search for, as a sentence."""
        return " ".join(term.text for group in self.groups for term in group)

    @property
    def demanded(self) -> tuple[tuple[Term, ...], ...]:
        """The groups of which one term must match: phrases and fields. Words and prefixes only rank."""
        return tuple(group for group in self.groups if all(term.phrase or term.field for term in group))

    def relaxed(self) -> Query:
        """The same query with nothing required: phrases become words that rank."""
        groups = (tuple(replace(term, phrase=False) for term in group) for group in self.groups)
        return replace(self, groups=tuple(groups))

    def without(self, terms: Iterable[Term]) -> Query:
        """The same query without some of its exclusions."""
        dropped = set(terms)
        return replace(self, negated=tuple(term for term in self.negated if term not in dropped))

    @property
    def left_out(self) -> tuple[Term, ...]:
        """The terms that must not match. Excluded paths, tags and fields are filtered before the search."""
        return tuple(term for term in self.negated if term.field in _TEXT_FIELDS)


_OR, _AND = Term("OR"), Term("AND")
_TEXT_FIELDS = ("", "title", "heading")  # of chunks; a term of another field says where to look
_FIELDS = ("title", "heading", "path", "tag", "alias")  # that every library has
_ONLY_NEGATED = "has only words to leave out: add one to look for"
_ONLY_FILTERS = (
    "has only filters, which say where to look: add a word to look for, or list what is there with: "
)
_EMPTY = 'is empty: type some words, or a "phrase"'
_LONG = f"Terms are cut to {MAX_CHARS} characters."
_PROSE = "This is read as prose: its quotes and minus signs demand and leave out nothing."
_ODD_OR = "OR is ignored beside a -word, or a filter such as path: or tag:."


def possible_fields(text: str) -> frozenset[str]:
    """The names in a text that are front-matter fields if the library has such fields."""
    found = _NAME.findall(text) if ":" in text else ()
    return frozenset(name.casefold() for name in islice(found, _MOST_FIELDS)) - {*_FIELDS}


@lru_cache(maxsize=64)
def _pattern(fields: frozenset[str]) -> re.Pattern[str]:
    names = sorted((*_FIELDS, *fields), key=lambda name: (-len(name), name))
    return re.compile(_ITEM.replace("FIELDS", "|".join(map(re.escape, names))), re.VERBOSE)


def parse(text: str, max_terms: int = 64, *, may_be_empty: bool = False, fields: Iterable[str] = ()) -> Query:
    """The query in a text. Raises SettingError if there is nothing to search for, unless that may be.

    `fields` are front-matter fields that filter; other words with a colon are words.
    """
    text, items_of = _UNSTORABLE.sub("", text).strip(), partial(_items_of, frozenset(fields))
    # Operators are between terms, so twice the number of terms is enough.
    most = 2 * max_terms + 1
    items = list(islice(items_of(text), most))
    plain = _MARKS.sub(" ", text) if _is_prose(items) else text
    found = _join(items if plain == text else list(islice(items_of(plain), most)))
    used = [(_cut(term), either) for term, either in found[:max_terms]]
    terms = [term for term, _ in used]
    groups, negated = _groups(used), tuple(term for term in terms if term.negated)
    if not groups and not may_be_empty:
        only_filters = any(map(_is_filter, terms))
        listed = _listing(terms) if only_filters else _EMPTY
        raise SettingError("query", _ONLY_NEGATED if negated else listed)
    notes = {
        f"Only the first {max_terms} terms are used.": len(found) > max_terms,
        _LONG: any(len(term.text) > MAX_CHARS for term, _ in found[:max_terms]),
        _ODD_OR: _has_odd_or(used),
        _PROSE: plain != text,
    }
    filters = tuple(term for term in terms if _is_filter(term))
    return Query(text, groups, negated, filters, tuple(note for note, applies in notes.items() if applies))


def _listing(terms: Iterable[Term]) -> str:
    """What to do with a query that has only filters."""
    options = [_option(term) for term in terms if _is_filter(term)]
    return f"{_ONLY_FILTERS}quire list {' '.join(options)}"


def _option(term: Term) -> str:
    """A filter of a query as an option of the command line."""
    if term.field in ("path", "tag"):
        return f"--{term.field} {_in_shell(term.text.lstrip('#') if term.field == 'tag' else term.text)}"
    return f"--where {_in_shell(f'{term.field}={term.text}')}"


def _in_shell(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def _is_prose(items: list[Term]) -> bool:
    """Whether there are more plain words than people search with."""
    return sum(item == Term(item.text) and not _is_operator(item) for item in items) > _MOST_WORDS


def _items_of(fields: frozenset[str], text: str) -> Iterator[Term]:
    """The terms of a text in order, OR and AND among them as words."""
    for item in _pattern(fields).finditer(text):
        field, phrase = (item["field"] or "").casefold(), _quoted(item)
        said = item["word"] if phrase is None else " ".join(phrase.split())
        if _says_something(said):
            term = _word(said, field) if phrase is None else Term(said, phrase=True)
            says_so = bool(field) or phrase is not None or _EXCLUDABLE.match(said) is not None
            excludes = bool(item["minus"]) and says_so
            yield replace(term, negated=excludes, field=field)


def _quoted(item: re.Match[str]) -> str | None:
    return next((item[name] for name in ("phrase", "guillemets", "corners") if item[name] is not None), None)


def _word(word: str, field: str) -> Term:
    """A word or a prefix; for `a:b` its parts, none required. What filters is kept unchanged."""
    if field not in _TEXT_FIELDS:
        return Term(word)
    if ":" in word:
        word = " ".join(part for part in word.split(":") if _says_something(part))
    bare = word.rstrip("*")
    return Term(bare, prefix=bare != word)


def _says_something(text: str) -> bool:
    """Whether the used part of a text is more than punctuation."""
    text = text[:MAX_CHARS]
    if _ALPHANUMERIC.search(text):
        return True
    return not text.isascii() and any(c > "~" and category(c) in _SIGNS for c in text)


def _join(items: list[Term]) -> list[tuple[Term, bool]]:
    """The terms without operators, each with whether OR joins it to the one before."""
    found, either = list[tuple[Term, bool]](), False
    for at, item in enumerate(items):
        if not _is_operator(item):
            found.append((item, either))
        elif not _is_between_terms(items, at):
            found.append((Term(item.text.lower()), False))
        either = item == _OR and _is_between_terms(items, at)
    return found


def _is_operator(item: Term) -> bool:
    return item in (_OR, _AND)


def _is_between_terms(items: list[Term], at: int) -> bool:
    around = items[at - 1 : at] + items[at + 1 : at + 2]
    return len(around) == 2 and not any(map(_is_operator, around))


def _cut(term: Term) -> Term:
    """A term of at most MAX_CHARS. A phrase ends with a whole word, because half a word matches nothing."""
    if len(term.text) <= MAX_CHARS:
        return term
    text = term.text[:MAX_CHARS]
    if term.phrase and not term.text[MAX_CHARS].isspace():
        whole = text.rpartition(" ")[0]
        text = whole if _says_something(whole) else text
    return replace(term, text=text.rstrip())


def _groups(terms: list[tuple[Term, bool]]) -> tuple[tuple[Term, ...], ...]:
    """The terms to search for; those joined by OR are in one group."""
    groups, before = list[list[Term]](), False
    for term, either in terms:
        wanted = _is_wanted(term)
        if wanted and before and either:
            groups[-1].append(term)
        elif wanted:
            groups.append([term])
        before = wanted
    return tuple(map(tuple, groups))


def _has_odd_or(terms: list[tuple[Term, bool]]) -> bool:
    """Whether an OR joins terms that are not alternatives; paths are, with or without it."""
    pairs = [(a, b) for (a, _), (b, either) in pairwise(terms) if either]
    paths = [all(_is_filter(term) and term.field == "path" for term in pair) for pair in pairs]
    return any(not all(map(_is_wanted, p)) and not alike for p, alike in zip(pairs, paths, strict=True))


def _is_wanted(term: Term) -> bool:
    return not term.negated and term.field in _TEXT_FIELDS


def _is_filter(term: Term) -> bool:
    return not term.negated and term.field not in _TEXT_FIELDS


# -------------------------------------------------------------------------------- conditions

_CONDITION = later.pattern(r"([^=!<>]+)(!=|>=|<=|==?|>|<)(.*)", re.DOTALL)
_OPERATOR_SIGNS = ("=", "<", ">", "!")
_OPERATORS = "= != > >= < <="
_LIKE_THIS = "Write it as in status=draft or date>=2026-01-01"


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A condition on a front-matter field. `!=` holds if no value of the field is equal."""

    name: str
    operator: str  # = != > >= < <=
    value: str


def parse_condition(text: str) -> FieldTest:
    """A condition such as `date>=2026-01-01`. Raises SettingError, saying what is wrong with it."""
    found = _CONDITION.fullmatch(_UNSTORABLE.sub("", text))
    if found is None or not found[1].strip():
        raise SettingError("where", f"{text[:MAX_CHARS]!r} has no field or no operator. {_LIKE_THIS}")
    name, operator, value = "-".join(found[1].casefold().split()), found[2], found[3].strip()
    if value[:1] in _OPERATOR_SIGNS:
        raise SettingError(
            "where", f"{text[:MAX_CHARS]!r} has another operator than {_OPERATORS}. {_LIKE_THIS}"
        )
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    if not value:
        raise SettingError("where", f"{text[:MAX_CHARS]!r} has no value. {_LIKE_THIS}")
    return FieldTest(name, "=" if operator == "==" else operator, value)
