"""The pictures of the page in docs/, taken anew: python -m tests.screenshots"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests import page as pages
from tests.commands import run
from tests.page import Visit, serving, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Route

ROOT = Path(__file__).parents[1]
HOME = "/home/ada"  # whose library the pictures show
LARGEST = 150_000  # bytes of a picture
MEMORY = "The team reads the handbook before each release, and writes down what was unclear."
VIEWS = {
    "search": "/?q=which+model+gives+meaning+to+a+search",
    "reader": "/read?address=docs:library.md%23where-it-is&q=where+is+the+library",
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


def taken(visit: Visit, name: str, path: str) -> None:
    """Save the picture of a view. Raises AssertionError if it is too large."""
    page = visit.go(path)
    page.wait_for_load_state("networkidle")
    out = ROOT / "docs" / f"page-{name}.png"
    page.screenshot(path=out)
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
