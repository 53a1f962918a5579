"""The model that comes with Quire: its word pieces, its vectors, what it costs, and models in folders."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import unicodedata
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from quire.config import DEFAULT, EmbedSettings, override
from quire.embed import open_embedder, wordpiece
from quire.embed.bert import Bert, weights_digest
from quire.embed.http import Ollama, OpenAI
from quire.embed.static import Static
from quire.embed.weights import SHA256
from quire.embed.wordpiece import WordPiece, is_cased
from quire.errors import EmbeddingError, SettingError
from quire.library import Library

MODEL = Path(str(files("quire.embed").joinpath("model")))
REACT = "React is a JavaScript library for building user interfaces."
UNRELATED = "The soup wants two carrots, an onion and an hour on a low flame."


@cache
def deep() -> Bert:
    """The model, loaded once in each process."""
    return Bert(EmbedSettings())


@cache
def vocabulary() -> tuple[str, ...]:
    return tuple((MODEL / "vocab.txt").read_text("utf-8").removesuffix("\n").split("\n"))


@cache
def words() -> WordPiece:
    return WordPiece(vocabulary())


@cache
def cased_words() -> WordPiece:
    return WordPiece(vocabulary(), cased=True)


# --------------------------------------------------------------------------------------------- word pieces

KNOWN = {
    "Hello, World!": ("hello , world !", [7592, 1010, 2088, 999]),
    "it's unaffable": ("it ' s una ##ffa ##ble", [2009, 1005, 1055, 14477, 20961, 3468]),
    "Café crème, naïve": ("cafe cr ##eme , naive", [7668, 13675, 21382, 1010, 15743]),
    "cafe\u0301": ("cafe", [7668]),
    "Ångström": ("ang ##strom", [17076, 15687]),
    "İstanbul": ("istanbul", [9960]),
    "Straße": ("st ##raße", [2358, 27807]),
    "北京is大": ("北 京 is 大", [1781, 1755, 2003, 1810]),
    "テキスト": ("テ ##キ ##ス ##ト", [1713, 30227, 30233, 30240]),
    "한국": ("ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ", [1469, 30006, 30021, 29991, 30014, 30020]),
    "C++ $5 ^_^": ("c + + $ 5 ^ _ ^", [1039, 1009, 1009, 1002, 1019, 1034, 1035, 1034]),
    "don’t — stop…": ("don ’ t — stop …", [2123, 1521, 1056, 1517, 2644, 1529]),
    "[CLS] a": ("[ cl ##s ] a", [1031, 18856, 2015, 1033, 1037]),
    "🙂 ok": ("[UNK] ok", [100, 7929]),
    "a🙂b": ("[UNK]", [100]),
    "x" * 100: ("xx" + " ##xx" * 49, [22038] + [20348] * 49),
    "x" * 101: ("[UNK]", [100]),
    "a\0b\x07c\ufffdd\u200be": ("abc ##de", [5925, 3207]),
    "one\ttwo\r\nthree\u00a0four\u2028five": (
        "one two three four five",
        [2028, 2048, 2093, 2176, 2274],
    ),
    "": ("", []),
    " \u0301\0 ": ("", []),
}
CHARACTER = st.characters(exclude_categories=("Cc", "Cn", "Co", "Cs"))
TEXT = st.text(st.one_of(st.sampled_from("aeE1 éﬁß中한豈.,’_+\u0301\u200b\u2028🙂"), CHARACTER))


@pytest.mark.parametrize(("text", "known"), KNOWN.items(), ids=lambda value: repr(value)[:20])
def test_known_texts_have_the_pieces_of_the_vocabulary(text: str, known: tuple[str, list[int]]) -> None:
    """DESIGN §7: WordPiece as BERT's own tokenizer does it: accents, CJK, signs, controls, long words."""
    pieces, ids = known
    assert words().pieces(text) == ids
    assert [vocabulary()[number] for number in ids] == pieces.split()


def reference(text: str, *, cased: bool = False) -> list[int]:
    """The steps of BERT's published tokenizer, each by itself and in its order."""
    spaced = ""
    for char in text:
        category, code = unicodedata.category(char), ord(char)
        is_cjk = any(low <= code <= high for low, high in wordpiece._CJK)
        if category in ("Cc", "Cf") and char not in "\t\n\r":
            continue
        spaced += " " if category == "Zs" else f" {char} " if is_cjk else char
    found: list[int] = []
    for word in spaced.replace("\ufffd", "").split():
        plain = word if cased else unicodedata.normalize("NFD", word.lower())
        kept = (char for char in plain if cased or unicodedata.category(char) != "Mn")
        apart = "".join(f" {char} " if is_sign(char) else char for char in kept)
        found += [number for part in apart.split() for number in greedy(part)]
    return found


def is_sign(char: str) -> bool:
    return char in r"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~" or unicodedata.category(char).startswith("P")


def greedy(word: str) -> list[int]:
    found, rest = list[int](), word
    while rest and len(word) <= 100:
        mark = "" if rest == word else "##"
        end = next((end for end in range(len(rest), 0, -1) if mark + rest[:end] in words().ids), 0)
        if not end:
            return [100]
        found.append(words().ids[mark + rest[:end]])
        rest = rest[end:]
    return found or [100]


@given(TEXT)
def test_any_text_has_the_pieces_of_the_published_algorithm(text: str) -> None:
    """DESIGN §7: the pieces are those of the reference tokenizer."""
    assert words().pieces(text) == reference(text)
    assert cased_words().pieces(text) == reference(text, cased=True)


@given(st.text())
def test_every_piece_is_in_the_vocabulary_and_none_is_a_mark(text: str) -> None:
    """Any text at all: numbers that the model knows; no text can write the marks around it."""
    found = words().pieces(text)
    assert all(0 <= number < len(vocabulary()) for number in found)
    assert not {words().first, words().last} & set(found)


@given(TEXT, TEXT)
def test_texts_beside_each_other_do_not_touch(one: str, other: str) -> None:
    """A space parts words, so nothing before it changes what comes after."""
    assert words().pieces(f"{one} {other}") == words().pieces(one) + words().pieces(other)


@given(st.text(st.characters(max_codepoint=127)))
def test_case_does_not_matter(text: str) -> None:
    """The vocabulary is uncased."""
    assert words().pieces(text.upper()) == words().pieces(text.lower())


def test_forgetting_words_changes_no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded memory: the words that are remembered are few, whatever is read."""
    monkeypatch.setattr(wordpiece, "_MAX_KNOWN", 3)
    small, text = WordPiece(vocabulary()), "one fish two fish red fish blue fish"
    assert small.pieces(text) == small.pieces(text) == words().pieces(text)
    assert len(small._known) <= 4


@pytest.mark.parametrize("unit", ["word ", "x", "é", "中", "\u0301", "ab🙂 ", "q" * 99 + " "])
def test_time_grows_with_the_text(unit: str) -> None:
    """BAD_INPUTS: twice the text takes at most two and a half times as long."""

    def seconds(size: int) -> float:
        started = time.process_time()
        words().pieces(unit * (size // len(unit)))
        return time.process_time() - started

    size, ratios = 200_000, list[float]()
    while min(ratios, default=9.0) > 2.5 and len(ratios) < 5:
        ratios.append(max(seconds(2 * size), 0.001) / max(seconds(size), 0.001))
    assert min(ratios) <= 2.5


# ------------------------------------------------------------------------------------------------- vectors


def test_the_files_are_the_ones_that_were_measured() -> None:
    """DESIGN §7: the weights are inside the package and checked by their SHA-256."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in MODEL.iterdir()}
    del found["LICENSE"]
    assert found == SHA256
    assert len(vocabulary()) == len(set(vocabulary())) == 30_522


def test_a_vector_has_384_numbers_and_length_1() -> None:
    """The model says how many numbers; any text has a vector, an empty one too."""
    vectors = deep().embed_documents([REACT, "", "\0", "🙂", "检索"])
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (deep().name, deep().dimension, deep().max_tokens) == ("deep", 384, 256)
    assert deep().embed_query(REACT).shape == (384,)
    assert deep().embed_documents([]).shape == (0, 384)


def test_a_known_text_has_its_known_vector() -> None:
    """DESIGN §7: int8 may differ a little between processors, not more."""
    known = [-0.1482, -0.0663, 0.0480, 0.0191, 0.0098, 0.0189, -0.0157, 0.0811]
    np.testing.assert_allclose(deep().embed_query(REACT)[:8], known, atol=0.02)


def test_near_meanings_are_near() -> None:
    """The query "JavaScript UI framework" is nearer to React than to soup, by far; so are paraphrases."""
    for question, answer in (
        ("JavaScript UI framework", REACT),
        ("How do I undo a release?", "Rolling back a deployment to its former revision."),
        ("the program is slow to start", "Reducing launch time of an application."),
    ):
        asked = deep().embed_query(question)
        near, far = deep().embed_documents([answer, UNRELATED]) @ asked
        assert near > far + 0.2, question


@effort(max_examples=10)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_a_text_has_one_vector_whatever_it_is_embedded_with(texts: list[str]) -> None:
    """Issue: the cache is by text, so the rest of a batch must not show in a vector: bit for bit."""
    together = deep().embed_documents([*texts, REACT])
    for text, vector in zip([*texts, REACT], together, strict=True):
        assert np.array_equal(deep().embed_documents([text])[0], vector)
        assert np.array_equal(deep().embed_query(text), vector)


def test_a_long_text_is_the_mean_of_its_windows() -> None:
    """Issue: windows of the model's length; each counts by its pieces."""
    kinds = ["penguin", "ocean", "carrot", "bridge", "violin"]
    text = [kinds[at // 7 % 5 if at < 300 else at % 2] for at in range(600)]
    assert len(words().pieces(" ".join(text))) == 600
    windows = [text[:254], text[254:508], text[508:]]
    parts = deep().embed_documents([" ".join(window) for window in windows])
    mean = np.average(parts, axis=0, weights=[len(window) for window in windows])
    assert mean @ deep().embed_query(" ".join(text)) / np.linalg.norm(mean) > 0.99
    assert max(parts @ deep().embed_query(" ".join(text))) < 0.99


def test_the_tail_of_a_long_text_is_not_dropped() -> None:
    """Issue: never silently drop a tail, be it one word after a thousand."""
    body = "The soup wants carrots and an onion. " * 120
    plain, with_word, with_tail = deep().embed_documents([body, f"{body} zebra", body + REACT * 20])
    assert not np.array_equal(plain, with_word)
    asked = deep().embed_query("JavaScript UI framework")
    assert with_tail @ asked > plain @ asked + 0.05


def test_prefixes_stand_before_questions_and_documents() -> None:
    """DESIGN §7: some models want to know which of the two a text is."""
    model = Bert(EmbedSettings(query_prefix="ask: ", document_prefix="say: "))
    assert np.array_equal(model.embed_query("fish"), deep().embed_query("ask: fish"))
    assert np.array_equal(model.embed_documents(["fish"])[0], deep().embed_query("say: fish"))


# --------------------------------------------------------------------------------------- models in folders


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model in a folder of its own."""
    folder = tmp_path_factory.mktemp("models") / "mine"
    folder.mkdir()
    shutil.copy(MODEL / "deep.onnx", folder / "model.onnx")
    shutil.copy(MODEL / "vocab.txt", folder)
    return folder


def linked(folder: Path, to: Path, *names: str) -> Path:
    """A folder with only some of the files."""
    to.mkdir()
    for name in names:
        (to / name).symlink_to(folder / name)
    return to


def opened(folder: Path) -> Bert:
    model = open_embedder(f"folder/{folder}", EmbedSettings())
    assert isinstance(model, Bert)
    return model


def test_a_folder_with_a_model_gives_its_vectors(copied: Path) -> None:
    """Issue: a local folder is a model, by its path with or without `folder/`."""
    plain, named = open_embedder(str(copied), EmbedSettings()), opened(copied)
    assert plain
    assert plain.name == named.name
    assert plain.name.rpartition("@")[0] == f"folder/{copied}"
    assert (plain.dimension, plain.max_tokens) == (384, 256)
    assert np.array_equal(plain.embed_documents([REACT, "fish"]), deep().embed_documents([REACT, "fish"]))


def test_the_bundled_model_is_the_one_that_its_name_stands_for() -> None:
    """Issue: everything derived names what made it. Other weights need another name than deep."""
    assert weights_digest(MODEL / "deep.onnx", MODEL / "vocab.txt") == "12752f9a"


def test_other_weights_in_the_same_folder_are_another_model(copied: Path, tmp_path: Path) -> None:
    """Issue: a changed model is refused, with the command that re-embeds."""
    folder = Path(shutil.copytree(copied, tmp_path / "mine"))
    config = override(DEFAULT, {"embed": {"model": f"folder/{folder}"}})
    with Library.open(tmp_path / "l.db", create=True, config=config) as library:
        library.add(content="fish swim", path="fish.md")
    with (folder / "model.onnx").open("ab") as weights:
        weights.write(b"other")
    for changed in (config, DEFAULT):
        with Library.open(tmp_path / "l.db", config=changed) as library:
            found = library.search("fish")
            assert f"quire embed --model folder/{folder}" in found.notes[0]
            assert (found.mode, found.model) == ("hybrid", "static")


def test_the_name_that_a_folder_has_opens_it_again(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: a library remembers its model by name, whatever folder a command runs in."""
    monkeypatch.chdir(copied.parent)
    name = opened(Path("mine")).name
    monkeypatch.chdir("/")
    again = open_embedder(name, EmbedSettings())
    assert again
    assert again.name == name


def test_a_model_may_lie_in_a_folder_named_onnx(copied: Path, tmp_path: Path) -> None:
    """Published models have model.onnx in onnx/, and say how much they read."""
    folder = linked(copied, tmp_path / "hub", "vocab.txt")
    linked(copied, folder / "onnx", "model.onnx")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 66}))
    model = opened(folder)
    assert model.max_tokens == 66
    text = " ".join(["penguin"] * 64 + ["carrot"] * 64)
    parts = model.embed_documents([text[: len("penguin ") * 64], text[len("penguin ") * 64 :]])
    assert model.embed_query(text) @ parts.sum(axis=0) / np.linalg.norm(parts.sum(axis=0)) > 0.999


@pytest.mark.parametrize("present", ["model.onnx", "vocab.txt", ""])
def test_a_folder_that_lacks_a_file_is_refused_by_name(copied: Path, tmp_path: Path, present: str) -> None:
    """Issue: what is missing is said when the model is named, before anything is embedded."""
    folder = linked(copied, tmp_path / "half", *filter(None, [present]))
    with pytest.raises(EmbeddingError, match=r"half: the folder must hold model\.onnx .* and vocab\.txt"):
        open_embedder(str(folder), EmbedSettings())


def test_a_broken_model_is_an_error_that_names_the_file(copied: Path, tmp_path: Path) -> None:
    """Issue: EmbeddingError, so that searching by words goes on."""
    folder = linked(copied, tmp_path / "broken", "vocab.txt")
    (folder / "model.onnx").write_bytes((copied / "model.onnx").read_bytes()[:100_000])
    model = opened(folder)
    with pytest.raises(EmbeddingError, match=r"broken.model\.onnx cannot be run"):
        model.embed_query("a")
    with pytest.raises(EmbeddingError, match="cannot be run"):
        model.embed_documents(["a"])


@pytest.mark.parametrize("content", [b"", b"a\nb\n", b"\xff\xfe\x00[UNK]\n"], ids=["empty", "other", "bytes"])
def test_a_vocabulary_of_another_kind_is_an_error_that_says_so(
    copied: Path, tmp_path: Path, content: bytes
) -> None:
    """Issue: EmbeddingError, so that searching by words goes on."""
    folder = linked(copied, tmp_path / "odd", "model.onnx")
    (folder / "vocab.txt").write_bytes(content)
    with pytest.raises(EmbeddingError, match=r"vocab\.txt"):
        opened(folder).embed_query("a")


def test_a_vocabulary_that_is_not_the_models_is_an_error(copied: Path, tmp_path: Path) -> None:
    """Issue: a number that the model has no row for is an EmbeddingError, not one of its runtime's own."""
    folder = linked(copied, tmp_path / "shifted", "model.onnx")
    (folder / "vocab.txt").write_text("\n".join([*vocabulary(), "zzzz"]), "utf-8")
    with pytest.raises(EmbeddingError, match="shifted"):
        opened(folder).embed_query("zzzz")


CASED = {"penguin": "Berlin", "carrot": "café", "violin": "berlin"}  # instead of a piece, another


@pytest.fixture(scope="module")
def cased(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model with a vocabulary that tells capitals and accents apart."""
    folder = linked(copied, tmp_path_factory.mktemp("models") / "cased", "model.onnx")
    (folder / "vocab.txt").write_text("\n".join(CASED.get(piece, piece) for piece in RENAMED), "utf-8")
    return folder


RENAMED = ["[unused1]" if piece == "berlin" else piece for piece in vocabulary()]


def test_a_cased_vocabulary_keeps_capitals_and_accents(cased: Path) -> None:
    """Issue: cased vocabularies in `folder/` models are respected."""
    model = opened(cased)
    for text, piece in (("Berlin", "penguin"), ("café", "carrot"), ("berlin", "violin")):
        assert np.array_equal(model.embed_query(text), deep().embed_query(piece))


@pytest.mark.parametrize("lowers", [True, False])
def test_a_folder_may_say_whether_it_is_cased(cased: Path, tmp_path: Path, lowers: bool) -> None:
    """What tokenizer_config.json says wins over what the vocabulary looks like."""
    folder = linked(cased, tmp_path / "says", "model.onnx", "vocab.txt")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowers}))
    alike = np.array_equal(opened(folder).embed_query("Berlin"), deep().embed_query("violin"))
    assert alike == lowers


def test_a_vocabulary_with_capitals_is_cased() -> None:
    """Names in brackets are no words."""
    assert not is_cased(vocabulary())
    assert not is_cased(["[CLS]", "[UNK]", "a"])
    assert is_cased([*vocabulary(), "Berlin"])


# -------------------------------------------------------------------------------------------------- names


def test_each_name_opens_its_model() -> None:
    """DESIGN §7: static, deep, ollama, openai, a folder, none. Making one loads nothing."""
    settings = EmbedSettings()
    assert open_embedder("none", settings) is None
    assert isinstance(open_embedder("static", settings), Static)
    assert isinstance(open_embedder("deep", settings), Bert)
    for name, kind, full in (
        ("ollama", Ollama, "ollama/mxbai-embed-large"),
        ("ollama/x:latest", Ollama, "ollama/x:latest"),
        ("openai", OpenAI, "openai/text-embedding-3-small"),
        ("openai/org/x", OpenAI, "openai/org/x"),
    ):
        model = open_embedder(name, settings)
        assert isinstance(model, kind)
        assert model.name == full


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("deeep", "Did you mean 'deep'"),
        ("non", "Did you mean 'none'"),
        ("openai-text-embedding-3-small", "Did you mean 'openai/text-embedding-3-small'"),
        ("xyzzy", "Known: static, deep, ollama/"),
        ("", "Known: static"),
        ("./no/such/folder", "there is no './no/such/folder'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, said: str) -> None:
    """BAD_INPUTS: unknown → error with the nearest name."""
    with pytest.raises(SettingError, match=said) as caught:
        open_embedder(name, EmbedSettings())
    assert caught.value.name == "embed.model"


# -------------------------------------------------------------------------------------------- what it costs


def python(code: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = "print(sorted({'numpy', 'onnxruntime', 'httpx2', 'sqlite3'} & set(sys.modules)), file=sys.stderr)"


@pytest.mark.parametrize(
    "code",
    [
        "import quire",
        "import quire; quire.chunk('# A')",
        "sys.argv = ['quire', '--help']; from quire.surfaces.cli import quire; quire(standalone_mode=False)",
        "from quire.config import EmbedSettings; from quire.embed import open_embedder\n"
        "open_embedder('deep', EmbedSettings()); import sqlite3; del sys.modules['sqlite3']",
    ],
    ids=["import", "chunk", "help", "naming a model"],
)
def test_what_needs_no_model_loads_none(code: str) -> None:
    """DESIGN §7: loaded lazily, never in a process that does not need it."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{LOADED}"], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"


EMBED_ONCE = """
import os
from quire.config import EmbedSettings
from quire.embed import open_embedder
before = dict(os.environ)
open_embedder("deep", EmbedSettings()).embed_query("a question")
assert dict(os.environ) == before
"""


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """Nothing is sent: onnxruntime's telemetry, which begins with files in the home folder, is off."""
    told = {"CI", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"}  # it is off in CI
    env = {name: value for name, value in os.environ.items() if name not in told and name[:4] != "XDG_"}
    subprocess.run([sys.executable, "-c", EMBED_ONCE], env=env | {"HOME": str(tmp_path)}, check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


EMBED_TOPICS = """
import re
from pathlib import Path
from pydoc_data.topics import topics
import quire
from quire.config import EmbedSettings
from quire.embed import open_embedder
text = "\\n\\n".join(topics.values())
chunks = quire.chunk(text, "windows", max_tokens=80, overlap=0)[:299]
texts = [*(chunk.text for chunk in chunks), text[:10_000]]
assert open_embedder("deep", EmbedSettings()).embed_documents(texts).shape == (300, 384)
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


# Not ru_maxrss: a process begins with what its parent had when it was forked.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says it")
def test_embedding_stays_within_400_megabytes() -> None:
    """Issue: bounded memory, whatever is embedded: 300 real chunks, one of them very long."""
    assert int(python(EMBED_TOPICS)) < 400
