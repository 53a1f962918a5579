"""The page of `quire serve`, used as a person uses it: a real browser, a real server, a real library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import page as pages
from tests import screenshots
from tests.commands import run
from tests.page import Visit, serving, visiting

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
if not pages.chromium():
    pytest.skip("no Chromium on this machine", allow_module_level=True)

from playwright.sync_api import Browser, Page, expect, sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Route

STATIC = files("quire.surfaces").joinpath("page")
FULL = {"code": "internal", "message": "The disk is full.", "details": {}}
HOST = re.compile(rb"[\"'(](?:https?:)?//([\w-]+(?:\.[\w-]+)+)")
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
LIMIT = 120_000  # bytes of all static files
VIEWS = (
    "/?q=seal of the pump",
    "/read?address=docs:pump.md%23change-the-seal&q=seal",
    "/cuts?address=docs:pump.md",
    "/library",
    "/library?part=documents",
    "/library?part=memories",
    "/library?part=health",
    "/map",
)
PUMP = """# The pump

The pump moves 40 litres a minute. See [the valve](valve.md) and [nothing](gone.md).

## Start it

Open the valve first. Then turn the key, and wait until the light is green.

{filler}

## Change the seal

A worn seal drips. Drain the housing, take the old seal out, and press the new one in.

- Use grease.
- Never use a hammer.

## Store it

Keep it dry.
"""
FILLER = "\n\n".join(
    f"In month {month}, oil the bearing and write down the pressure." for month in range(1, 25)
)
VALVE = """# The valve

The valve opens to the left. It belongs to [the pump](pump.md#start-it). Brass valves last for twenty years.
Steel valves rust, and the inspector wants to see them every spring. A valve that is stuck needs warm oil.
"""
TWIN = VALVE.replace("# The valve", "# The valve again")
EMOJI = "# Weather\n\n🌧️🌧️🌧️ The barometer 🌤️ says whether a storm is near.\n"
HOSTILE = """# A hostile note

<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2"> <svg onload="window.hacked = 3"></svg>
<a href="javascript:window.hacked=4" onclick="window.hacked=5">raw</a>
<iframe src="http://evil.example/"></iframe><style>body{display:none}</style>
<form action="http://evil.example/"><button>send</button></form>

[a script](javascript:window.hacked=6) and [data](data:text/html,<script>alert(1)</script>)

![a remote picture](http://evil.example/pixel.png)
"""


def quire(place: Path, *args: str) -> None:
    run(place, *args, "-L", "library.db", QUIRE_EMBED_MODEL="static")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small library of notes, and a folder that is not in it yet."""
    place = tmp_path_factory.mktemp("page")
    notes = {"pump.md": PUMP.format(filler=FILLER), "valve.md": VALVE, "twin.md": TWIN, "weather.md": EMOJI}
    for name, text in {**notes, "hostile.md": HOSTILE}.items():
        (place / "docs").mkdir(exist_ok=True)
        (place / "docs" / name).write_text(text, "utf-8")
    (place / "more").mkdir()
    (place / "more" / "garden.md").write_text("# The garden\n\nRoses want sun.\n", "utf-8")
    (place / "more" / "picture.xyz").write_bytes(b"\0\1\2")
    quire(place, "add", "docs")
    run(
        place,
        "remember",
        "The spare key hangs behind the door.",
        "-L",
        "library.db",
        QUIRE_EMBED_MODEL="static",
    )
    return place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[str]:
    with serving(place, place) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=pages.chromium(), args=pages.ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, server: str) -> Iterator[Visit]:
    """A page at which nothing may go wrong."""
    with visiting(browser, server, permissions=["clipboard-read", "clipboard-write"]) as visit:
        yield visit
        assert visit.wrong == []


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


# ----------------------------------------------------------------------------- search


def test_a_search_answers_while_one_types_and_says_why(visit: Visit) -> None:
    """Page: results as one types, with marks, strength, size and reasons; the URL can be shared."""
    page = visit.go("/")
    expect(page.locator("#q")).to_be_focused()
    expect(page.get_by_role("link", name="The pump")).to_be_visible()
    page.keyboard.type("worn seal drips")
    first = page.locator("li.result").first
    expect(first.get_by_role("link", name="Change the seal")).to_be_visible()
    expect(first.locator("mark").first).to_have_text("worn")
    expect(first).to_contain_text(re.compile(r"(strong|weak) match 0\.\d\d"))
    expect(first).to_contain_text(re.compile(r"tokens in The pump"))
    expect(first).to_contain_text(re.compile(r"lines \d+–\d+"))
    expect(page.locator(".count")).to_have_text(re.compile(r"\d results?"))
    assert asked(page) == {"q": ["worn seal drips"]}
    assert page.title() == "worn seal drips · Quire"
    first.get_by_role("button", name="Why this result").click()
    expect(first.locator(".why dt")).to_have_count(6)
    expect(first.locator(".why")).to_contain_text("Word stems:")
    page.reload()
    expect(page.locator("li.result").first).to_contain_text("Change the seal")


def test_filters_narrow_a_search_and_memories_are_recalled(visit: Visit) -> None:
    """Page: collection, kind, tag and path; memories by /api/recall; "no good match" comes first."""
    page = visit.go("/?q=valve")
    page.get_by_label("Path").fill("pump*")
    expect(page.locator("a.name").first).to_have_text(re.compile("Start it|The pump"))
    expect(page.get_by_text("The valve again", exact=True)).to_have_count(0)
    assert asked(page)["path"] == ["pump*"]
    page.get_by_label("Kind").select_option("memory")
    page.locator("#q").fill("where is the spare key")
    expect(page.locator("li.result").first).to_contain_text("behind the door")
    expect(page.get_by_label("Path")).to_be_disabled()
    visit.go("/?q=quantum+chromodynamics+lattice")
    expect(page.locator(".count")).to_have_text(re.compile("^(No good match|Nothing found)"))


def test_marks_stand_where_code_points_say(visit: Visit) -> None:
    """Page: highlights are offsets in code points, also after emoji."""
    page = visit.go("/?q=barometer")
    expect(page.locator("li.result mark").first).to_have_text("barometer")


def test_the_keyboard_alone_goes_from_a_search_to_the_reader_and_back(visit: Visit) -> None:
    """Page: "/", arrows, Enter, Escape and "?"; focus returns to the opened result."""
    page = visit.go("/library")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("the valve opens")
    expect(page.locator("a.name").nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("a.name").nth(1)).to_be_focused()
    opened = page.locator("a.name").nth(1).inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("article.prose")).to_be_visible()
    assert urlsplit(page.url).path == "/read"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("move between results")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("a.name").nth(1)).to_be_focused()
    expect(page.locator("a.name").nth(1)).to_have_text(opened)


def test_an_empty_library_says_what_to_do(browser: Browser, place: Path) -> None:
    """Page: an empty library names the next step."""
    with serving(place, place, "empty.db") as address, visiting(browser, address) as visit:
        page = visit.go("/")
        expect(page.get_by_text("quire add ./docs")).to_be_visible()
        page.get_by_role("button", name="Add documents").click()
        expect(page.get_by_role("heading", name="Add documents")).to_be_visible()
        visit.go("/map")
        expect(page.get_by_text("nothing to draw")).to_be_visible()
        visit.go("/library")
        page.get_by_label("Path or URL").fill(str(place / "more"))
        page.get_by_role("button", name="Check", exact=True).click()
        expect(page.locator(".plan")).to_contain_text("to add")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.locator(".report")).to_contain_text("1 added")
        assert [one for one in visit.wrong if "404" not in one] == []  # there was no library to list


# ----------------------------------------------------------------------------- reader


def test_the_reader_shows_the_passage_and_its_place(visit: Visit) -> None:
    """Page: the hit is marked and scrolled to; contents, links, citation, context, source and promotion."""
    page = visit.go("/read?address=docs:pump.md%23change-the-seal&q=worn+seal")
    expect(page.locator(".hit")).to_contain_text("A worn seal drips")
    expect(page.locator(".hit")).not_to_contain_text("Keep it dry")
    expect(page.locator(".hit")).to_be_in_viewport()
    expect(page.locator(".contents [aria-current]")).to_have_text("Change the seal")
    expect(page.locator(".links")).to_contain_text("The valve", ignore_case=True)
    page.get_by_role("button", name="Copy address").click()
    expect(page.locator(".bar").last).to_have_text("Address copied.")
    assert copied(page) == "docs:pump.md#change-the-seal"
    page.get_by_role("button", name="Copy citation").click()
    expect(page.locator(".bar").last).to_have_text("Citation copied.")
    assert re.match(
        r"The pump › Change the seal, lines \d+–\d+, `docs:pump.md#change-the-seal`$", copied(page)
    )
    page.get_by_role("button", name="Copy as context").click()
    expect(page.locator(".bar").last).to_have_text(re.compile("^Copied, .* tokens"))
    assert "```\n## Change the seal\n" in copied(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the text").click()
    assert download.value.suggested_filename == "pump.md"
    assert Path(download.value.path()).read_text("utf-8") == PUMP.format(filler=FILLER)
    page.get_by_label("Promotion").select_option("important")
    expect(page.locator(".bar").last).to_have_text("Now important.")
    page.locator(".contents").get_by_role("link", name="Start it").click()
    expect(page.get_by_role("heading", name="Start it")).to_be_in_viewport()
    assert asked(page)["address"] == ["docs:pump.md#start-it"]
    page.locator("article").get_by_role("link", name="the valve").click()
    expect(page.get_by_role("heading", name="The valve", exact=True)).to_be_visible()
    assert page.title() == "The valve · Quire"


def test_hostile_markdown_stays_inert(visit: Visit) -> None:
    """BAD_INPUTS: scripts, remote images and javascript: links do nothing on the page."""
    page = visit.go("/read?address=docs:hostile.md")
    expect(page.get_by_role("heading", name="A hostile note")).to_be_visible()
    for link in page.locator("article a").all():
        assert not (link.get_attribute("href") or "").lower().startswith(("javascript:", "data:"))
    assert page.locator("article :is(script, img, iframe, style, form, svg, object, embed)").count() == 0
    names = "[...document.querySelectorAll('article *')].flatMap(node => node.getAttributeNames())"
    assert [name for name in page.evaluate(names) if name.startswith("on") or name == "style"] == []
    assert page.evaluate("window.hacked") is None
    visit.go("/?q=hostile+note")
    expect(page.locator("li.result").first).to_be_visible()
    assert page.evaluate("window.hacked") is None


# ----------------------------------------------------------------------------- cuts


def test_cuts_stand_side_by_side_and_a_file_is_cut_without_being_added(visit: Visit) -> None:
    """Page: strategies beside each other, sizes, details of a chunk; a chosen file is not stored."""
    page = visit.go("/cuts?address=docs:pump.md")
    expect(page.locator(".column")).to_have_count(2)
    expect(page.locator(".column svg.histogram")).to_have_count(2)
    expect(page.locator(".column").first).to_contain_text(re.compile(r"\d+ chunks?"))
    shown = page.locator(".column").first.locator("pre.text > span").all_text_contents()
    assert "".join(shown) == PUMP.format(filler=FILLER)
    page.get_by_label("nodes").check()
    expect(page.locator(".column")).to_have_count(3)
    third = page.locator(".column").nth(2)
    third.locator("button.label").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".inspect")).to_contain_text(re.compile(r"Chunk 2.*tokens"))
    assert asked(page)["strategy"] == ["auto", "windows", "nodes"]
    page.locator("#cut-file").set_input_files(
        {"name": "fresh.md", "mimeType": "text/markdown", "buffer": b"# Fresh\n\nNever stored.\n"}
    )
    expect(page.get_by_role("heading", name="Fresh", exact=True)).to_be_visible()
    expect(page.locator(".cuthead")).to_contain_text("not in the library")
    assert page.evaluate("fetch('/api/documents?path=fresh.md').then(r => r.json()).then(d => d.total)") == 0


# ----------------------------------------------------------------------------- library


def test_documents_are_added_after_a_plan_and_removed_with_undo(visit: Visit, place: Path) -> None:
    """Page: the plan comes first; removing waits, can be undone, and is sent when the page is left."""
    page = visit.go("/library")
    page.get_by_label("Path or URL").fill(str(place / "more"))
    page.get_by_label("Collection").fill("garden")
    page.get_by_role("button", name="Check", exact=True).first.click()
    expect(page.locator(".plan")).to_contain_text("1 to add")
    expect(page.locator(".plan")).to_contain_text("garden.md")
    expect(page.locator(".plan")).to_contain_text("1 skipped")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".report")).to_contain_text("1 added")
    expect(page.locator(".sources")).to_contain_text(str(place / "more"))
    (place / "more" / "garden.md").write_text("# The garden\n\nRoses want sun and water.\n", "utf-8")
    page.get_by_role("button", name=f"Check {place / 'more'}").click()
    expect(page.locator(".plan")).to_contain_text("1 to update")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Check all").click()
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator(".report")).to_contain_text("1 updated")
    page.get_by_role("link", name="Documents").click()
    page.get_by_label("Filter").fill("garden")
    page.get_by_role("button", name="Remove garden:garden.md").click()
    expect(page.locator(".bar")).to_contain_text("Removing garden:garden.md in 10 s.")
    expect(page.get_by_role("link", name="The garden")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="The garden")).to_be_visible()
    page.get_by_role("button", name="Remove garden:garden.md").click()
    page.goto("about:blank")
    page = visit.go("/library?part=documents&filter=garden")
    expect(page.get_by_text("No documents here.")).to_be_visible()


def test_files_are_uploaded_after_their_plan(visit: Visit) -> None:
    """Page: chosen files are listed before they are added."""
    page = visit.go("/library")
    page.locator("#add-files").set_input_files(
        {"name": "loose.md", "mimeType": "text/markdown", "buffer": b"# Loose sheet\n\nFound on the floor.\n"}
    )
    expect(page.locator(".plan")).to_contain_text("loose.md")
    page.get_by_role("button", name="Add 1 file").click()
    expect(page.locator(".report")).to_contain_text("1 added")
    visit.go("/?q=found+on+the+floor")
    expect(page.locator("a.name").first).to_have_text("Loose sheet")


def test_memories_are_kept_and_forgotten_and_the_doctor_is_asked(visit: Visit) -> None:
    """Page: remember, forget with undo, and the findings of the doctor."""
    page = visit.go("/library?part=memories")
    page.get_by_label("Text").fill("The blue lamp is broken.")
    page.get_by_role("button", name="Remember").click()
    expect(page.locator(".said")).to_contain_text("Saved")
    expect(page.locator(".sources")).to_contain_text("The blue lamp is broken")
    page.get_by_role("button", name=re.compile("^Forget .*blue-lamp")).click()
    expect(page.locator(".sources")).not_to_contain_text("The blue lamp")
    page.get_by_role("button", name="Now").click()
    expect(page.locator(".bar.undo")).to_have_count(0)
    page.get_by_role("link", name="Health").click()
    page.get_by_role("button", name="Run the doctor").click()
    expect(page.locator(".flow")).to_contain_text("All is well")


# ----------------------------------------------------------------------------- map


def test_the_map_lists_its_points_and_opens_them(visit: Visit) -> None:
    """Page: points, legend, twins, keys; the list beside it says the same."""
    page = visit.go("/map")
    expect(page.locator("canvas")).to_be_visible()
    expect(page.locator(".points li")).to_have_count(
        int(page.evaluate("fetch('/api/map').then(r => r.json()).then(m => m.points.length)"))
    )
    drawn = "document.querySelector('canvas').toDataURL()"
    before = page.evaluate(drawn)
    page.locator("canvas").focus()
    page.keyboard.press("+")
    assert page.evaluate(drawn) != before
    page.keyboard.press("0")
    assert page.evaluate(drawn) == before
    page.get_by_label("nearly the same").check()
    expect(page.locator(".points .group")).to_contain_text("The valve again")
    page.locator(".legend").get_by_label("docs").uncheck()
    expect(page.locator(".points .group")).to_have_count(0)
    page.locator(".legend").get_by_label("docs").check()
    page.locator(".points").get_by_role("link", name="The valve again").click()
    expect(page.get_by_role("heading", name="The valve again")).to_be_visible()


# ----------------------------------------------------------------------------- for everyone


def test_no_view_has_serious_barriers(browser: Browser, server: str) -> None:
    """Page: axe reports nothing serious or critical in any view, light and dark."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    script = Path(axe.__file__).with_name("axe.min.js").read_text("utf-8")
    told = "violations.map(({impact, id, nodes}) => [impact, id, nodes[0].html])"
    check = f"axe.run({{resultTypes: ['violations']}}).then(({{violations}}) => {told})"
    with visiting(browser, server) as visit:
        for view in VIEWS:
            page = visit.go(view)
            page.evaluate(script)
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                found = [one for one in page.evaluate(check) if one[0] in ("serious", "critical")]
                assert (view, theme, found) == (view, theme, [])
        assert visit.wrong == []


def test_a_phone_scrolls_only_downwards(browser: Browser, server: str) -> None:
    """Page: at 360 px, no view is wider than the screen."""
    with visiting(browser, server, viewport=pages.PHONE) as visit:
        for view in ("/", *VIEWS):
            page = visit.go(view)
            assert (view, page.evaluate("document.documentElement.scrollWidth")) == (view, 360)
        assert visit.wrong == []


def test_the_theme_is_remembered(visit: Visit) -> None:
    """Page: light or dark by the system, or as chosen."""
    page = visit.go("/map")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark colours").click()
    dark = page.evaluate(paper)
    page.reload()
    assert light != dark == page.evaluate(paper)
    expect(page.get_by_role("button", name="Dark colours")).to_have_attribute("aria-pressed", "true")


def test_a_key_is_asked_for_and_sent_in_a_header(browser: Browser, server: str) -> None:
    """Page: 401 opens a dialog; the key goes in a header, never in a URL; other errors show their message."""
    seen: list[str] = []

    def guard(route: Route) -> None:
        key = route.request.headers.get("authorization")
        seen.append(route.request.url)
        told = {"code": "key_needed", "message": "Bring a key.", "details": {}}
        if key == "Bearer s3cret":
            route.continue_(headers={k: v for k, v in route.request.headers.items() if k != "authorization"})
        else:
            route.fulfill(status=401, json=told)

    with visiting(browser, server) as visit:
        visit.page.route("**/api/**", guard)
        page = visit.page
        page.goto(f"{server}/?q=valve")
        expect(page.get_by_role("dialog")).to_contain_text("Bring a key.")
        page.get_by_role("textbox", name="Key").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Bring a key.")
        page.get_by_role("textbox", name="Key").fill("s3cret")
        page.keyboard.press("Enter")
        expect(page.locator("li.result").first).to_be_visible()
        assert not any("s3cret" in url for url in seen)
        page.route("**/api/read?**", lambda route: route.fulfill(status=500, json=FULL))
        page.locator("a.name").first.click()
        page.get_by_role("button", name="Copy citation").click()
        expect(page.get_by_role("alert")).to_contain_text("The disk is full.")


def test_a_key_that_reads_shows_who_it_is_and_hides_what_it_may_not_do(
    browser: Browser, server: str, place: Path
) -> None:
    """Page: what a caller may not do is hidden; the key can be forgotten."""
    key, _ = run(place, "keys", "make", "reader", "-c", "docs", "-L", "library.db")
    with visiting(browser, server) as visit:
        page = visit.go("/")
        page.evaluate("key => sessionStorage.setItem('quire-key', key)", key.strip())
        visit.go("/library")
        expect(page.get_by_role("heading", name="Add documents")).to_have_count(0)
        page.get_by_role("button", name="reader (read): sign out").click()
        expect(page.get_by_role("heading", name="Add documents")).to_be_visible()


def test_back_leads_to_the_question_before(visit: Visit) -> None:
    """Page: a question that someone looked at has an entry of its own in the history."""
    page = visit.go("/?q=valve")
    page.wait_for_timeout(1700)
    page.locator("#q").fill("pump")
    page.wait_for_url("**/?q=pump")
    page.go_back()
    expect(page.locator("#q")).to_have_value("valve")


def test_the_pictures_of_the_readme_are_made_of_the_page(
    browser: Browser, server: str, tmp_path: Path
) -> None:
    """Issue: screenshots in the README made by a test; python -m tests.screenshots takes them all anew."""
    with visiting(browser, server) as visit:
        screenshots.taken(visit, "search", "/?q=valve", tmp_path)
    made = (tmp_path / "page-search.png").read_bytes()
    assert made.startswith(b"\x89PNG")
    readme = (screenshots.ROOT / "README.md").read_text("utf-8")
    shown = re.findall(r"\(docs/page-(\w+)\.png\)", readme)
    assert shown
    assert set(shown) <= screenshots.VIEWS.keys()
    for name in screenshots.VIEWS:
        kept = (screenshots.ROOT / "docs" / f"page-{name}.png").read_bytes()
        assert kept[16:24] == made[16:24]  # of the same width and height


def test_the_static_files_are_small_and_name_no_other_host() -> None:
    """Page: everything together is under 120 KB, and nothing is loaded from elsewhere."""
    texts = {one.name: one.read_bytes() for one in STATIC.iterdir()}
    assert sum(map(len, texts.values())) < LIMIT
    hosts = {name: set(HOST.findall(text)) for name, text in texts.items()}
    assert {name: found - {b"www.w3.org"} for name, found in hosts.items() if found - {b"www.w3.org"}} == {}
    assert not re.search(rb"<script>|<style|\sstyle=|\son\w+=", texts["index.html"])
    assert sum(text.count(b"innerHTML") for text in texts.values()) == 1
