"""What links, tags and front matter cost: a vault of notes, and the same notes without them, in one run.

    python bench/vaults.py [--notes 10000] [--rounds 2] [--model static|none]

Each note has front matter of five fields, eight links to other notes, two #tags, and about 1,500 characters
of text. The plain notes have the same text without the signs that make links, tags and fields. Both are
added to new libraries, refreshed when nothing has changed, and refreshed after every hundredth note has. The
rounds alternate, and the best time of each counts. Printed are seconds, processor seconds of Quire and its
workers, and the ratios; then what `links` takes for a note with few and with many backlinks.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quire.config import DEFAULT, Config, override
from quire.library import Library

WORDS = (
    "garden winter letter engine harbour river market window silver method answer travel signal copper"
    " memory number branch leader valley custom figure island record effort kitchen journal velvet anchor"
).split()
SIGNS = re.compile(r"\[\[[^\]|]*\|([^\]]*)\]\]|\[\[([^\]]*)\]\]|\[([^\]]*)\]\([^)]*\)|#(?=[a-z])")


def note(number: int, notes: int, seed: int = 0) -> str:
    """A note with links, tags and front matter."""
    draw = random.Random(f"{seed} {number}")
    said = [" ".join(draw.choices(WORDS, k=40)) for _ in range(6)]
    linked = [f"Note {draw.randrange(notes)}" for _ in range(6)]
    front = (
        f"title: About {number}\nstatus: {draw.choice(['draft', 'done'])}\ndate: 2026-{number % 12 + 1:02}-01"
    )
    links = [f"[[{linked[0]}]]", f"[[{linked[1]}|{draw.choice(WORDS)} {draw.choice(WORDS)}]]"]
    links += [f"[[{linked[2]}#Second]]", f"[there](<../{number % 50}/{linked[3]}.md>)", "[[Note 0|hub]]"]
    links += [f"![[{linked[4]}]]", f"[[{linked[5]}]]", "[[Nowhere]]"]
    tags = [f"#{draw.choice(WORDS)}/{draw.choice(WORDS)}", f"#{draw.choice(WORDS)}"]
    parts = (
        f"---\n{front}\n---\n# Note {number}\n\n{said[0]} {links[0]}. {links[1]} {said[1]} {tags[0]}\n",
        f"## First\n\n{said[2]} {links[2]} {links[3]}\n\n{said[3]} {links[4]}\n",
        f"## Second\n\n{said[4]} {links[5]} {links[6]} {links[7]}\n\n{said[5]} {tags[1]}\n",
    )
    return "\n".join(parts)


def plain(text: str) -> str:
    """The same note without the signs of links, tags and front matter."""
    text = SIGNS.sub(lambda sign: sign[1] or sign[2] or sign[3] or "", text).replace("!Note", "Note")
    return re.sub(r"\A---\n(.*?)\n---\n", lambda front: f"{front[1]}\n\n", text, flags=re.DOTALL)


def write(folder: Path, notes: int, form: Callable[[str], str], *, seed: int = 0, each: int = 1) -> None:
    for number in range(0, notes, each):
        path = folder / str(number % 50) / f"Note {number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(form(note(number, notes, seed)), encoding="utf-8")


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and processor seconds of this process and its children."""
    started, before = time.perf_counter(), _used()
    work()
    return time.perf_counter() - started, _used() - before


def _used() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measured(
    place: Path, notes: int, form: Callable[[str], str], config: Config
) -> dict[str, tuple[float, float]]:
    """The cost of each step, for notes in one form."""
    shutil.rmtree(place, ignore_errors=True)
    write(place / "vault", notes, form)
    with Library.open(place / "library.db", create=True, config=config) as library:
        costs = {"add": cost(lambda: library.add(place / "vault"))}
        costs["refresh, nothing changed"] = cost(library.refresh)
        time.sleep(0.2)
        write(place / "vault", notes, form, seed=1, each=100)
        costs["refresh, 1 in 100 changed"] = cost(library.refresh)
        costs["bytes of the library"] = (float((place / "library.db").stat().st_size),) * 2
    return costs


def asked(place: Path, config: Config) -> None:
    """What `links` takes, for a note with few backlinks and for the one that all notes link to."""
    with Library.open(place / "library.db", config=config) as library:
        for address in ("vault:7/Note 7.md", "vault:0/Note 0.md"):
            spent, _ = cost(lambda name=address: library.links(name))  # type: ignore[misc]
            found = library.links(address)
            print(f"links {address}: {len(found.out)} out, {len(found.back):,} back, {1000 * spent:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", choices=("static", "none"), default="static")
    args = parser.parse_args()
    config = override(DEFAULT, {"embed": {"model": args.model}})
    best: dict[str, dict[str, tuple[float, float]]] = {"vault": {}, "plain": {}}
    forms: dict[str, Callable[[str], str]] = {"plain": plain, "vault": str}
    with tempfile.TemporaryDirectory() as temporary:
        for _ in range(args.rounds):
            for name, form in forms.items():
                for step, spent in measured(Path(temporary) / name, args.notes, form, config).items():
                    known = best[name].get(step, spent)
                    best[name][step] = min(known[0], spent[0]), min(known[1], spent[1])
        print(f"{args.notes:,} notes, model {args.model}, best of {args.rounds}\n")
        columns = ("step", "plain s", "vault s", "ratio", "plain CPU s", "vault CPU s", "ratio")
        print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
        for step, (wall, used) in best["vault"].items():
            was, had = best["plain"][step]
            told = f"{was:,.2f} | {wall:,.2f} | {wall / was:.2f} | {had:,.2f} | {used:,.2f}"
            print(f"| {step} | {told} | {used / had:.2f} |")
        print()
        asked(Path(temporary) / "vault", config)


if __name__ == "__main__":
    main()
