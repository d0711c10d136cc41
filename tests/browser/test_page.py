"""What a person does with the page: look, ask, follow the path, walk on; and what it says when
something is missing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

    from tests.browser.conftest import Site

PATIENCE_S = 60
EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
EVIL_NAME = '"><img src=x onerror=alert(1)>.md'
FILES = {
    "docs/voyage.md": (
        "# The voyage\n\nThe ship left Lisbon in spring. Its captain is described in"
        " [the captain](captain.md).\n\n## Cargo\n\nBarrels of salt, kept dry in the"
        " [Lower hold](hold.md).\n"
    ),
    "docs/captain.md": (
        "# The captain\n\nMaria Oliveira learned to sail on the Tagus; she keeps the ship's log.\n"
    ),
    "docs/hold.md": "# Lower hold\n\nIt has room for forty casks and smells of tar.\n",
    "docs/weather.md": (
        "# Weather\n\nStorms come from the west. The barometer hangs in the cabin.\n"
    ),
    "docs/storm.md": "# Storms\n\nA storm from the west: reef the sails, watch the barometer.\n",
    "src/stowage.py": (
        'CAPACITY = 40\n\n\ndef stow_barrel(hold, barrel):\n    """Put a barrel below deck."""\n'
        "    hold.append(barrel)\n    return hold\n"
    ),
    "src/loading.py": (
        "from stowage import stow_barrel\n\n\ndef load_ship(barrels):\n"
        '    """Load every barrel, the heaviest first."""\n    hold = []\n'
        "    for barrel in sorted(barrels):\n        stow_barrel(hold, barrel)\n    return hold\n"
    ),
    EVIL_NAME: f"# Zebra\n\nA zebra is striped. {EVIL}\n",
}


@pytest.fixture(scope="session")
def site(serve: Callable[..., Site]) -> Site:
    return serve(FILES, provider="builtin")


def until(page: Page, script: str, argument: Any = None) -> None:
    """Wait until a script says yes. Playwright's own way is `eval`, which the page forbids."""
    deadline = time.monotonic() + PATIENCE_S
    while not page.evaluate(script, argument):
        assert time.monotonic() < deadline, script
        page.wait_for_timeout(50)


def part(page: Page, name: str) -> Locator:
    return page.locator(f'[data-test="{name}"]')


def opened(page: Page, site: Site, view: str = "") -> Page:
    page.goto(site.url + view)
    until(page, "window.ragx?.map?.stats?.().frames > 0")
    return page


def ask(page: Page, text: str) -> Locator:
    part(page, "query").fill(text)
    part(page, "query").press("Enter")
    part(page, "result").first.wait_for()
    return part(page, "result")


def graph(page: Page, site: Site) -> dict[str, Any]:
    found: dict[str, Any] = page.request.get(f"{site.url}api/graph").json()
    return found


def chunk_of(page: Page, site: Site, file: str) -> int:
    return next(one["id"] for one in graph(page, site)["nodes"] if one["file"] == file)


def lit(page: Page) -> list[int]:
    """Ids along the way that the map shows."""
    return list(page.evaluate("window.ragx.state.lit?.path ?? []"))


def test_the_map_comes_first(page: Page, site: Site) -> None:
    opened(page, site)
    known = graph(page, site)
    stats = page.evaluate("window.ragx.map.stats()")
    assert stats["nodes"] == known["meta"]["nodes"]
    assert part(page, "topic").count() >= 1
    for kind, n in known["meta"]["edge_counts"].items():
        text = part(page, "legend").inner_text()
        assert re.search(rf"{kind}\D*{n}", text), text
    # Something is drawn: not all pixels of the map are alike.
    shot = page.locator("canvas").first.bounding_box()
    assert shot is not None
    assert shot["width"] > 300
    assert page.title()


def test_ask_look_and_follow_the_path(page: Page, site: Site) -> None:
    opened(page, site)
    page.keyboard.press("/")
    page.keyboard.type("who commands the ship that left Lisbon")
    page.keyboard.press("Enter")
    results = part(page, "result")
    results.first.wait_for()
    answer = page.request.post(
        f"{site.url}api/query",
        data={"text": "who commands the ship that left Lisbon", "explain": True},
    ).json()
    assert results.count() == len(answer["results"])
    for shown, expected in zip(results.all(), answer["results"], strict=True):
        assert expected["file"] in shown.inner_text()
    led = [
        (rank, part_["explain"])
        for rank, entry in enumerate(answer["results"])
        for part_ in entry["chunks"][:1]
        if part_["explain"]["hop"]
    ]
    assert led, "no result was reached through the graph"
    rank, explain = led[0]
    results.nth(rank).click()
    part(page, "path-step").first.wait_for()
    until(
        page,
        "(ids) => JSON.stringify(window.ragx.state.lit?.path) === JSON.stringify(ids)",
        explain["path"],
    )
    told = part(page, "path").inner_text()
    for step in explain["steps"]:
        assert step["file"] in told
        if step["evidence"]:
            assert step["evidence"]["text"].split("\n")[0][:30] in told
    terms = part(page, "terms").inner_text()
    for name in explain["terms"]:
        assert name.replace("_", " ") in terms or name in terms


def test_a_result_of_the_searches_says_by_which(page: Page, site: Site) -> None:
    opened(page, site)
    results = ask(page, "barometer in the cabin")
    results.first.click()
    part(page, "chunk-text").wait_for()
    assert "barometer" in part(page, "chunk-text").inner_text()
    assert part(page, "terms").is_visible()
    assert lit(page) in ([], [chunk_of(page, site, "docs/weather.md")])


def test_walk_to_a_neighbour_and_back(page: Page, site: Site) -> None:
    opened(page, site, f"#chunk={chunk_of(page, site, 'docs/voyage.md')}")
    part(page, "chunk-text").wait_for()
    first = part(page, "panel").inner_text()
    address = page.url.split("#")[1]
    part(page, "neighbour").first.click()
    until(page, "(before) => !location.hash.includes(before)", address)
    until(page, "(text) => document.querySelector('[data-test=panel]').innerText !== text", first)
    page.go_back()
    until(
        page, "() => document.querySelector('[data-test=chunk-text]')?.innerText.includes('Lisbon')"
    )


def test_click_on_the_map_selects_what_is_there(page: Page, site: Site) -> None:
    opened(page, site)
    chunk_id = chunk_of(page, site, "docs/weather.md")
    node = next(one for one in graph(page, site)["nodes"] if one["id"] == chunk_id)
    page.evaluate("(id) => window.ragx.map.flyTo({type: 'chunk', id})", chunk_id)
    until(page, "window.ragx.map.view().scale > 3")
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    view = page.evaluate("window.ragx.map.view()")
    x = box["x"] + box["width"] / 2 + (node["x"] - view["x"]) * view["scale"]
    y = box["y"] + box["height"] / 2 + (node["y"] - view["y"]) * view["scale"]
    page.mouse.click(x, y)
    part(page, "chunk-text").wait_for()
    assert "barometer" in part(page, "chunk-text").inner_text()


def test_the_way_between_two_chunks(page: Page, site: Site) -> None:
    opened(page, site, f"#chunk={chunk_of(page, site, 'src/loading.py')}")
    part(page, "path-from-here").click()
    other = chunk_of(page, site, "src/stowage.py")
    page.evaluate(
        "(id) => { location.hash = location.hash.replace(/chunk=\\d+/, `chunk=${id}`); }", other
    )
    part(page, "path-step").first.wait_for()
    assert lit(page)[-1] == other


def test_a_topic_lists_its_files_and_they_their_chunks(page: Page, site: Site) -> None:
    opened(page, site)
    part(page, "topic").first.click()
    panel = part(page, "panel")
    panel.wait_for()
    files = {one["file"] for one in graph(page, site)["nodes"] if one["community"] == 0}
    until(
        page,
        "(file) => document.querySelector('[data-test=panel]').innerText.includes(file)",
        sorted(files)[0],
    )


def test_an_address_brings_the_view_back(page: Page, context: BrowserContext, site: Site) -> None:
    opened(page, site)
    ask(page, "storm from the west").first.click()
    part(page, "chunk-text").wait_for()
    text, address = part(page, "chunk-text").inner_text(), page.url
    again = opened(context.new_page(), site, "#" + address.split("#")[1])
    part(again, "chunk-text").wait_for()
    assert part(again, "query").input_value() == "storm from the west"
    assert part(again, "chunk-text").inner_text() == text
    until(again, "document.querySelectorAll('[data-test=result]').length > 0")


def test_everything_is_reached_from_the_keyboard(page: Page, site: Site) -> None:
    opened(page, site)
    page.keyboard.press("?")
    part(page, "help").wait_for()
    page.keyboard.press("Escape")
    part(page, "help").wait_for(state="hidden")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.dataset.test") == "query"
    # Typing is typing.
    page.keyboard.type("barrels j k / ? 0 +")
    assert part(page, "query").input_value() == "barrels j k / ? 0 +"
    part(page, "query").fill("barrels of salt")
    page.keyboard.press("Enter")
    part(page, "result").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    part(page, "chunk-text").wait_for()
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "document.activeElement?.closest('[data-test]')?.dataset.test ?? 'nothing'"
            )
        )
    assert {"neighbour", "editor-link"} & seen
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert part(page, "chunk-text").count() == 0 or not part(page, "chunk-text").is_visible()


def test_zoom_fit_and_theme(page: Page, site: Site) -> None:
    opened(page, site)
    scale = page.evaluate("window.ragx.map.view().scale")
    part(page, "zoom-in").click()
    until(page, "(before) => window.ragx.map.view().scale > before", scale)
    part(page, "fit").click()
    until(page, "(before) => Math.abs(window.ragx.map.view().scale / before - 1) < .01", scale)
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    part(page, "theme").click()
    until(page, "(before) => getComputedStyle(document.body).backgroundColor !== before", before)
    page.reload()
    until(page, "(before) => getComputedStyle(document.body).backgroundColor !== before", before)


def test_links_open_an_editor_at_the_line(page: Page, site: Site) -> None:
    opened(page, site, f"#chunk={chunk_of(page, site, 'docs/voyage.md')}")
    link = part(page, "editor-link").first
    href = link.get_attribute("href")
    assert href is not None
    assert re.match(r"(vscode|cursor|zed|idea):", href)
    assert "docs/voyage.md" in href.replace("%2F", "/")
    chunk_id = chunk_of(page, site, EVIL_NAME)
    page.goto(f"{site.url}#chunk={chunk_id}")
    until(page, "document.querySelector('[data-test=chunk-text]')?.innerText.includes('zebra')")
    href = part(page, "editor-link").first.get_attribute("href")
    assert href is not None
    assert not re.search(r"[\"<> ]", href)


def test_html_in_names_and_texts_does_nothing(page: Page, site: Site) -> None:
    """A dialog, or anything on the console, fails the fixture."""
    opened(page, site)
    results = ask(page, "striped zebra")
    assert EVIL_NAME in results.first.inner_text()
    results.first.click()
    part(page, "chunk-text").wait_for()
    assert EVIL in part(page, "chunk-text").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == page.evaluate(
        "document.querySelectorAll('head script, body > script').length"
    )
    evil = json.dumps(EVIL)[1:-1]
    opened(page, site, f"#q={evil}&chunk={evil}&topic={evil}&mode={evil}")
    page.wait_for_timeout(300)
    assert page.locator("img").count() == 0


def test_nothing_found_says_so(page: Page, site: Site) -> None:
    opened(page, site)
    part(page, "query").fill("xyzzy -the")
    page.evaluate("location.hash = 'q=xyzzyplugh&mode=lexical'")
    part(page, "empty").wait_for()
    assert "xyzzyplugh" in part(page, "query").input_value()


def test_an_id_that_is_gone_says_so(page: Page, site: Site) -> None:
    opened(page, site, "#chunk=123456789")
    until(page, "document.body.innerText.match(/no chunk 123456789|changed/i)")


def test_what_the_server_refuses_is_told_in_its_words(page: Page, site: Site) -> None:
    opened(page, site)
    page.evaluate("location.hash = 'q=barrels&since=someday'")
    until(page, "document.body.innerText.includes('someday')")


def test_a_server_that_goes_and_comes_back(page: Page, serve: Callable[..., Site]) -> None:
    site = serve({"a.md": "# Alpha\n\nAbout [beta](b.md).\n", "b.md": "# Beta\n\nText.\n"})
    opened(page, site)
    port = int(site.url.split(":")[2].strip("/"))
    site.stop()
    part(page, "query").fill("alpha")
    part(page, "query").press("Enter")
    part(page, "banner").wait_for()
    serve({}, port=port, root=site.root)
    part(page, "banner").wait_for(state="hidden")
    ask(page, "alpha")


def test_the_page_follows_the_index(page: Page, serve: Callable[..., Site]) -> None:
    site = serve({"a.md": "# Alpha\n\nAbout [beta](b.md).\n", "b.md": "# Beta\n\nText.\n"})
    opened(page, site)
    before = page.evaluate("window.ragx.map.stats().nodes")
    (site.root / "c.md").write_text("# Gamma\n\nAbout [alpha](a.md).\n")
    site.run("index", "--quiet", cwd=site.root)
    until(page, "(n) => window.ragx.map.stats().nodes > n", before)
    assert "3" in part(page, "status").inner_text()
    assert ask(page, "gamma").first.inner_text()


def test_an_empty_index_says_why(page: Page, serve: Callable[..., Site]) -> None:
    site = serve({"empty.md": ""})
    page.goto(site.url)
    until(page, "document.body.innerText.includes('ragx index -v')")


def test_groups_by_directory_are_called_so(page: Page, serve: Callable[..., Site]) -> None:
    site = serve({"a/x.md": "Okapi.\n", "a/y.md": "Zebra.\n", "z.md": "Lion.\n"})
    opened(page, site)
    until(page, "document.body.innerText.includes('grouped by directory')")
    part(page, "topic").first.click()
    until(page, "document.querySelector('[data-test=panel]').innerText.includes('a/x.md')")


def test_without_webgl_lists_and_panels_remain(
    context: BrowserContext, page: Page, site: Site
) -> None:
    page.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {"
        " return kind.startsWith('webgl') ? null : get.call(this, kind, ...rest); };"
    )
    page.goto(site.url)
    until(page, "document.body.innerText.includes('WebGL')")
    ask(page, "barometer").first.click()
    part(page, "chunk-text").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["", "#q=storm from the west", "help"])
def test_accessibility_rules(
    page: Page, context: BrowserContext, site: Site, scheme: Any, view: str
) -> None:
    """axe-core's rules, contrast among them, in each state of the page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    opened(page, site, view if view.startswith("#") else "")
    if view.startswith("#"):
        part(page, "result").first.click()
        part(page, "chunk-text").wait_for()
    elif view:
        page.keyboard.press("?")
        part(page, "help").wait_for()
    found = axe.Axe().run(page).response["violations"]
    told = [
        (one["id"], one["help"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found
    ]
    assert told == []
