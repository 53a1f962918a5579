"""The pictures of the page in docs/, taken anew: python -m tests.screenshots"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from base64 import b64encode
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING

from tests import page as pages
from tests.commands import run
from tests.page import Visit, serving, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

ROOT = Path(__file__).parents[1]
HOME = "/home/ada"  # whose library the pictures show
LARGEST = 150_000  # bytes of a picture
MEMORY = "The team reads the handbook before each release, and writes down what was unclear."
VIEWS = {
    "search": "/?q=where+are+my+memories",
    "reader": "/read?address=docs:data.md%23which-library-a-command-uses&q=where+is+the+library",
    "cuts": "/cuts?address=docs:chunking.md&strategy=auto&strategy=windows",
    "library": "/library",
    "map": "/map",
}


def filled(place: Path) -> None:
    """Index the documentation of Quire, and manuals in other formats."""
    shutil.copytree(ROOT / "docs", place / "docs", ignore=shutil.ignore_patterns("*.png", "*.json"))
    (place / "manuals").mkdir()
    for name in ("handbook.pdf", "handbook.epub", "plant.pdf"):
        shutil.copy(ROOT / "tests" / "fixtures" / "documents" / name, place / "manuals")
    (place / "project").mkdir()
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, place / "project")
    for name in ("docs", "manuals", "project"):
        run(place, "add", name, "-L", "library.db", QUIRE_EMBED_MODEL="deep")
    run(place, "remember", MEMORY, "-L", "library.db", QUIRE_EMBED_MODEL="deep")


def at_home(place: Path, route: Route) -> None:
    """Answer with the folder of a person instead of a temporary one."""
    answer = route.fetch()
    route.fulfill(response=answer, body=answer.text().replace(str(place), HOME))


# The 256 most frequent colours of a picture, and for each point the number of the nearest of them.
ROUNDED = """async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, image.width, image.height);
  const name = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
  const names = Array.from({ length: data.length / 4 }, (_, at) => name(4 * at));
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  const parts = (name) => [name >> 16, (name >> 8) & 255, name & 255];
  const colours = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([name]) => parts(name));
  const nearest = new Map();
  for (const name of counts.keys()) {
    const far = colours.map((colour) => Math.hypot(...parts(name).map((value, at) => value - colour[at])));
    nearest.set(name, far.indexOf(Math.min(...far)));
  }
  return [image.width, colours, names.map((name) => nearest.get(name))];
}"""


def rounded(page: Page, picture: bytes) -> bytes:
    """A picture in at most 256 colours: nobody sees it, and the file is much smaller."""
    page.goto("about:blank")
    source = f"data:image/png;base64,{b64encode(picture).decode()}"
    width, colours, points = page.evaluate(ROUNDED, source)
    rows = [b"\0" + bytes(points[at : at + width]) for at in range(0, len(points), width)]
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    parts = (b"IHDR", head), (b"PLTE", bytes(chain(*colours))), (b"IDAT", zlib.compress(b"".join(rows), 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join(starmap(part, (*parts, (b"IEND", b""))))


def part(name: bytes, content: bytes) -> bytes:
    """A part of a PNG file."""
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def taken(visit: Visit, name: str, path: str, folder: Path = ROOT / "docs") -> None:
    """Save the picture of a view. Raises AssertionError if it is too large."""
    page = visit.go(path)
    page.wait_for_load_state("networkidle")
    out = folder / f"page-{name}.png"
    out.write_bytes(rounded(page, page.screenshot()))
    assert out.stat().st_size < LARGEST, (name, out.stat().st_size)


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder).resolve()
        filled(place)
        browser = playwright.chromium.launch(executable_path=pages.chromium(), args=pages.ARGUMENTS)
        with serving(place, place, model="deep") as address, visiting(browser, address) as visit:
            for name in ("status", "sources"):
                visit.page.route(f"**/api/{name}*", lambda route: at_home(place, route))
            for name, path in VIEWS.items():
                taken(visit, name, path)
        browser.close()


if __name__ == "__main__":
    main()
