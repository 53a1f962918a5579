"""All defaults, in one place: a frozen dataclass for each stage. Values are checked where they enter.

Stages receive their settings and never look for them: settings.py loads them. A project file that is not
trusted may only narrow: what it may not set is marked here, beside the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from quire import policy
from quire.errors import SettingError, nearest
from quire.policy import at_least, at_most, guarded, secret, within_folder
from quire.version import VERSION

S = TypeVar("S")


_LEAST_MEMORY = 30_000_000  # bytes: with less, no worker starts
# The worst that hostile texts of sixty kinds did: time grows with the square of the size, memory with it.
_QUICK = 23_000  # bytes that are prepared in half a second
_WIDEST = 1_000  # bytes of memory for a byte of text, where 140 were seen


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingError(name, f"{value:,} is outside {low:,} to {high:,}")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingError(name, f"there is no {value!r}. {nearest(value, known)}")


@dataclass(frozen=True, slots=True)
class DocumentSettings:
    """How a source is read."""

    max_bytes: int = at_most(64_000_000)  # bytes; a larger file is refused
    max_front_matter: int = at_most(65_536)  # characters; longer front matter counts as text

    def __post_init__(self) -> None:
        _within("max_bytes", self.max_bytes, 1, 2**40)
        _within("max_front_matter", self.max_front_matter, 0, 2**24)

    def over_cap(self, size: int | None = None) -> str:
        """What to say of a source that is too large, or of an archive whose whole size is not known."""
        what = "its unpacked content" if size is None else f"{size:,} bytes"
        return (
            f"{what} is over max_bytes = {self.max_bytes:,}. "
            "Raise [document] max_bytes in quire.toml, or split it."
        )


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Which files of a folder are read. Patterns are those of .gitignore, from the folder of quire.toml."""

    include: tuple[str, ...] = ()  # patterns as in .gitignore; only files that match are read
    exclude: tuple[str, ...] = ()  # patterns as in .gitignore; files that match are left out


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """What preparing one document may cost."""

    max_seconds: float = at_most(120.0)  # seconds to prepare one document
    max_memory: int = at_most(2_000_000_000)  # bytes of memory to prepare one document

    def __post_init__(self) -> None:
        _within("max_seconds", self.max_seconds, 0.001, 86_400)
        _within("max_memory", self.max_memory, _LEAST_MEMORY, 2**50)

    def are_far(self, size: int) -> bool:
        """Whether no document of so many bytes comes near these limits, whatever it holds."""
        return size * size <= self.max_seconds * _QUICK * _QUICK and size * _WIDEST <= self.max_memory


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How headings are named."""

    slug_style: str = "ascii"  # of headings in addresses; "github" keeps letters of every script

    def __post_init__(self) -> None:
        _one_of("slug_style", self.slug_style, ("ascii", "github"))


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """How tokens are counted."""

    counter: str = "chars"  # "chars" estimates, "words" counts words, "bpe" is exact for OpenAI's models

    def __post_init__(self) -> None:
        _one_of("counter", self.counter, ("chars", "words", "bpe"))


@dataclass(frozen=True, slots=True)
class NodesSettings:
    """One chunk for each section's own text, never split: there is nothing to set."""


@dataclass(frozen=True, slots=True)
class AutoSettings:
    """Sections, cut where they are long. The size is chosen by search: see bench/README.md."""

    max_tokens: int = 800  # the largest chunk; short blocks are joined up to half of it

    def __post_init__(self) -> None:
        _within("max_tokens", self.max_tokens, 8, 1_000_000)


@dataclass(frozen=True, slots=True)
class SectionsSettings:
    """Whole subtrees up to a size."""

    max_tokens: int = 8000  # a larger section is cut at its topmost headings

    def __post_init__(self) -> None:
        _within("max_tokens", self.max_tokens, 1, 100_000_000)


@dataclass(frozen=True, slots=True)
class WindowsSettings:
    """Overlapping runs of sentences."""

    max_tokens: int = 768  # the largest chunk, with its overlap
    overlap: float = 0.10  # the share of max_tokens that neighbouring chunks have in common
    min_chars: int = 100  # a last chunk that is shorter joins the one before it
    oversize: str = "split"  # "split" cuts a sentence over max_tokens, "keep" leaves it whole

    def __post_init__(self) -> None:
        _within("max_tokens", self.max_tokens, 1, 100_000_000)
        _within("overlap", self.overlap, 0, 0.9)
        _within("min_chars", self.min_chars, 0, 1_000_000)
        _one_of("oversize", self.oversize, ("split", "keep"))


@dataclass(frozen=True, slots=True)
class HeadersSettings:
    """H2 and H3 sections of long documents."""

    threshold_lines: int = 500  # a document with at most this many lines is one chunk
    max_lines: int = 1000  # a longer section is cut between paragraphs

    def __post_init__(self) -> None:
        _within("threshold_lines", self.threshold_lines, 0, 100_000_000)
        _within("max_lines", self.max_lines, 1, 100_000_000)


STRATEGIES = ("auto", "nodes", "sections", "windows", "memory", "headers")


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """The strategy used unless another is named, and the settings of each."""

    strategy: str = "auto"  # nodes, sections, windows, memory or headers
    auto: AutoSettings = field(default_factory=AutoSettings)
    nodes: NodesSettings = field(default_factory=NodesSettings)
    sections: SectionsSettings = field(default_factory=SectionsSettings)
    windows: WindowsSettings = field(default_factory=WindowsSettings)
    memory: WindowsSettings = field(default_factory=lambda: WindowsSettings(800, 0.15, 0))
    headers: HeadersSettings = field(default_factory=HeadersSettings)

    def __post_init__(self) -> None:
        self.named(self.strategy)

    def named(self, strategy: str) -> Any:
        """The settings of one strategy."""
        _one_of("strategy", strategy, STRATEGIES)
        return getattr(self, strategy)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How pages are fetched and sites are read."""

    max_bytes: int = at_most(64_000_000)  # of a page, decompressed; a larger one is refused
    deadline: float = at_most(60.0)  # seconds for one page, with redirects and retries, without pauses
    redirects: int = at_most(5)  # the most redirects that are followed to one page
    retries: int = at_most(3)  # the most retries, after 1, 2 and 4 s, or when the server says
    per_host: int = at_most(4)  # the most parallel requests to one host
    user_agent: str = guarded(f"quire/{VERSION}")  # the name that Quire tells web servers
    allow_hosts: tuple[str, ...] = guarded(())  # hosts with private addresses; "host:port" allows one port
    proxy: str = guarded("")  # the URL of a proxy; those of the environment are not used
    max_pages: int = at_most(1000)  # the most pages of one site
    max_depth: int = at_most(1)  # 1 reads the pages that llms.txt names, 2 also those that they link to
    site_depth: int = at_most(10)  # the most links between a page and the first pages, for --site
    concurrency: int = at_most(8)  # the most pages that are read in parallel

    def __post_init__(self) -> None:
        _within("max_bytes", self.max_bytes, 1, 2**40)
        _within("deadline", self.deadline, 0.001, 86_400)
        _within("redirects", self.redirects, 0, 100)
        _within("retries", self.retries, 0, 10)
        _within("per_host", self.per_host, 1, 1000)
        _within("max_pages", self.max_pages, 1, 1_000_000)
        _within("max_depth", self.max_depth, 1, 20)
        _within("site_depth", self.site_depth, 0, 100)
        _within("concurrency", self.concurrency, 1, 1000)


@dataclass(frozen=True, slots=True)
class GitSettings:
    """What reading one repository may cost. Hosts and the proxy are those of [web]."""

    max_bytes: int = at_most(1_000_000_000)  # of a clone, packed; also of the documents that are read from it
    deadline: float = at_most(600.0)  # seconds to fetch a repository and to read its documents
    max_files: int = at_most(500_000)  # the most files of a repository, or of the folder that is named

    def __post_init__(self) -> None:
        _within("max_bytes", self.max_bytes, 1, 2**40)
        _within("deadline", self.deadline, 0.001, 86_400)
        _within("max_files", self.max_files, 1, 100_000_000)


_LOCAL = ("", "static", "deep", "minilm", "none")  # models that send no text anywhere; minilm is now deep
MOST_TEXTS, MOST_TOKENS = 2048, 300_000  # of one request for vectors: what OpenAI takes
MOST_PARALLEL = 64  # requests


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """The model that turns text into vectors, and how one that is asked over HTTP is asked."""

    model: str = guarded(
        "", free=_LOCAL
    )  # deep, static, none, ollama/NAME, openai/NAME, a folder; "": the library's
    url: str = guarded("")  # of the server of the model; empty: the usual one
    key: str = secret("")  # the key for that server; better in QUIRE_EMBED_KEY than in a file
    query_prefix: str = guarded("")  # some models need this before a question
    document_prefix: str = guarded("")  # some models need this before a text
    max_tokens: int = at_most(512)  # of one text for a model on a server; longer texts are cut into windows
    batch: int = at_most(32)  # texts in one request
    parallel: int = at_most(4)  # parallel requests; for Ollama, OLLAMA_NUM_PARALLEL if this is not set
    timeout: float = at_most(60.0)  # seconds for one request
    ollama_parallel: int = field(default=0, metadata=policy.INTERNAL)  # OLLAMA_NUM_PARALLEL, if it counts

    def __post_init__(self) -> None:
        _within("max_tokens", self.max_tokens, 64, MOST_TOKENS)
        _within("batch", self.batch, 1, MOST_TEXTS)
        _within("parallel", self.parallel, 1, MOST_PARALLEL)
        _within("ollama_parallel", self.ollama_parallel, 0, MOST_PARALLEL)
        _within("timeout", self.timeout, 0.01, 3600)
        _within("characters of query_prefix", len(self.query_prefix), 0, self.max_tokens // 4)
        _within("characters of document_prefix", len(self.document_prefix), 0, self.max_tokens // 4)


MODES = ("hybrid", "keyword", "semantic")


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How hits become results."""

    mode: str = "hybrid"  # by words and meaning; "keyword": words only; "semantic": meaning only
    limit: int = 10  # how many results
    fresh: bool | None = guarded(None, free=(False,))  # read changed files first; unset: only over MCP
    log: bool = guarded(False, free=(False,))  # log your searches and what you read, for quire eval
    rerank: bool = False  # reorder the ten best with a second model; takes 0.3 s on two cores
    candidates: int = at_most(100)  # how many chunks are ranked
    meaning: float | None = None  # weight of the cosine, if the best match by words is 1; unset: the model's
    meaning_unknown: float = 0.0  # the same in a language that the model does not know; 0: words only
    min_cosine: float = 0.2  # chunks below this cosine similarity are dropped
    neighbours: float = 0.05  # weight of the neighbouring parts of a section that was cut
    document_evidence: float = 0.0  # weight of the rest of the document for each of its chunks
    fusion: str = "sum"  # "sum" adds scores, "rrf" ranks; "meaning" ranks by meaning first, as recall does
    max_result_tokens: int = 800  # of four characters; a larger section is returned in parts
    merging: str = "bounded"  # "bounded" limits merged sections; "ra" adds scores without limits
    merge_from: float = 0.8  # share of the best score in the document that a section needs to merge
    sharpness: float = 8.0  # scores are raised to this power before siblings are added up
    aggregation_threshold: float = 0.5  # siblings merge if more than this share of them matches
    min_aggregation_matches: int = 2  # siblings that match, for them to merge
    score_cap_multiplier: float = 2.0  # the most that a merged section scores, in scores of its best child

    def __post_init__(self) -> None:
        _one_of("mode", self.mode, MODES)
        _within("limit", self.limit, 1, 1000)
        _within("candidates", self.candidates, 1, 10_000)
        _within("meaning", self.meaning or 0.0, 0, 100)
        _within("meaning_unknown", self.meaning_unknown, 0, 100)
        _within("min_cosine", self.min_cosine, -1, 1)
        _within("neighbours", self.neighbours, 0, 1)
        _within("document_evidence", self.document_evidence, 0, 10)
        _one_of("fusion", self.fusion, ("sum", "rrf", "meaning"))
        _one_of("merging", self.merging, ("bounded", "ra"))
        _within("max_result_tokens", self.max_result_tokens, 16, 10_000_000)
        _within("merge_from", self.merge_from, 0, 2)
        _within("sharpness", self.sharpness, 1, 100)
        _within("aggregation_threshold", self.aggregation_threshold, 0, 1)
        _within("min_aggregation_matches", self.min_aggregation_matches, 1, 1_000_000)
        _within("score_cap_multiplier", self.score_cap_multiplier, 1, 1000)


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What goes into a context pack."""

    max_tokens: int = 4000  # of a pack, with its citations
    threshold: float = 0.3  # share of the best score that a match needs to be in a pack

    def __post_init__(self) -> None:
        _within("max_tokens", self.max_tokens, 1, 10_000_000)
        _within("threshold", self.threshold, 0, 1)


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """How `quire eval` chooses questions."""

    limit: int = 200  # questions that are asked, of those that there are
    seed: int = 20  # another number chooses other questions

    def __post_init__(self) -> None:
        _within("limit", self.limit, 1, 100_000)
        _within("seed", self.seed, 0, 2**31)


# Cosines of entries that say nearly the same, by model: chosen by bench/memory.py
SIMILAR = {"static": 0.7, "deep": 0.7}


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What is told of memories and knowledge."""

    similar: float | None = None  # cosine from which entries count as nearly the same; unset: the model's

    def __post_init__(self) -> None:
        _within("similar", self.similar or 0.0, 0, 1)

    def least_cosine(self, model: str) -> float | None:
        """The least cosine of entries that say nearly the same; None if it is not known for a model."""
        return SIMILAR.get(model) if self.similar is None else self.similar


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """When `quire watch` compares sources with the library."""

    debounce: float = at_least(0.5)  # seconds without a change before changed files are read
    reconcile: float = at_least(600.0)  # seconds between two comparisons of all files and folders
    poll: float = at_least(30.0)  # the same where the system does not report changes
    pages: float = at_least(86_400.0)  # seconds until pages, sites and repositories are read again

    def __post_init__(self) -> None:
        _within("debounce", self.debounce, 0.01, 60)
        _within("reconcile", self.reconcile, 1, 1_000_000)
        _within("poll", self.poll, 0.1, 1_000_000)
        _within("pages", self.pages, 60, 100_000_000)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Who may reach `quire serve` and `quire mcp --http`, and what a request may cost."""

    allowed_hosts: tuple[str, ...] = guarded(())  # other names of the server, such as docs.example.com
    allowed_origins: tuple[str, ...] = guarded(())  # sites whose pages may call it: https://a.example.com
    trusted_proxies: tuple[str, ...] = guarded(())  # addresses or networks whose X-Forwarded-For is believed
    rate: float = at_most(50.0)  # requests a second for each key; bursts of twice as many
    max_bytes: int = at_most(64_000_000)  # of the body of a request
    timeout: float = at_most(30.0)  # seconds until a request that reads is stopped
    log_queries: bool = guarded(False, free=(False,))  # write queries to the access log

    def __post_init__(self) -> None:
        _within("rate", self.rate, 0.01, 1_000_000)
        _within("max_bytes", self.max_bytes, 1, 2**40)
        _within("timeout", self.timeout, 0.001, 86_400)


@dataclass(frozen=True, slots=True)
class Project:
    """The folder whose quire.toml is in force, and whether its user trusts that file."""

    folder: str  # absolute, links followed
    trusted: bool


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of one library or one command."""

    library: str = within_folder("")  # the library, unless -L or QUIRE_LIBRARY names one
    collection: str = ""  # for sources in the project's folder, unless -c names one
    document: DocumentSettings = field(default_factory=DocumentSettings)
    files: FileSettings = field(default_factory=FileSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    tree: TreeSettings = field(default_factory=TreeSettings)
    tokens: TokenSettings = field(default_factory=TokenSettings)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    embed: EmbedSettings = field(default_factory=EmbedSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    eval: EvalSettings = field(default_factory=EvalSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    web: WebSettings = field(default_factory=WebSettings)
    git: GitSettings = field(default_factory=GitSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    project: Project | None = field(default=None, metadata=policy.INTERNAL)


DEFAULT = Config()


def override(settings: S, changes: Mapping[str, Any], where: str = "") -> S:
    """Settings with some values changed; a nested mapping changes a nested dataclass."""
    known = {name: getattr(settings, name) for name in policy.names(settings)}
    optional = {one.name for one in fields(settings) if one.type == "float | None"}  # type: ignore[arg-type]
    new: dict[str, Any] = {}
    for key, value in changes.items():
        name = f"{where}{key}"
        if key not in known:
            raise SettingError(name, f"there is no such setting. {nearest(key, known)}")
        new[key] = _fit(name, 0.0 if key in optional else known[key], value)
    return replace(settings, **new)  # type: ignore[type-var]


def with_setting(config: Config, setting: str) -> Config:
    """Settings with one of them changed, as in `search.limit=5`."""
    name, equals, value = setting.partition("=")
    if not equals:
        raise SettingError(setting, "has no value. Give one, as in search.mode=keyword")
    change: Any = value
    for key in reversed(name.split(".")):
        change = {key: change}
    return override(config, change)


def _fit(name: str, default: Any, value: Any) -> Any:
    """A value of the default's type."""
    if hasattr(default, "__dataclass_fields__"):
        if not isinstance(value, Mapping):
            raise SettingError(name, f"is a table, not {value!r}")
        return override(default, value, f"{name}.")
    wanted = type(default)
    if default is None or wanted is bool:
        return _switch(name, value)
    if wanted is tuple:
        return _words(name, value)
    if isinstance(value, int) and value.bit_length() > 64:
        raise SettingError(name, "is too large a number")
    try:
        if isinstance(value, bool | list | dict) or (wanted is int and isinstance(value, float)):
            raise ValueError
        return wanted(value)
    except (TypeError, ValueError):
        shown = "something else" if name in policy.secrets(DEFAULT) else repr(value)
        raise SettingError(name, f"must be {_A[wanted]}, not {shown}") from None


def _switch(name: str, value: Any) -> bool:
    """Whether something is on; from a variable, as a word."""
    found = {"true": True, "false": False}.get(str(value).lower())
    if found is None:
        raise SettingError(name, f"must be true or false, not {value!r}")
    return found


def _words(name: str, value: Any) -> tuple[str, ...]:
    """A list of words; from a variable, separated by commas."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, (list, tuple)) or not all(isinstance(word, str) for word in found):
        raise SettingError(name, f"must be a list of strings, not {value!r}")
    return tuple(word.strip() for word in found if word.strip())


_A = {int: "a whole number", float: "a number", str: "a string"}
