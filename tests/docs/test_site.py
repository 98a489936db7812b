"""The built site in a browser: no page has console errors, dead links, pictures without text, or a wide phone view.

`make site` builds it and runs these tests: Playwright opens it in the Chromium of the system, on a desk and on a phone.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

SITE = Path(os.environ.get("EMBERHARMONY_SITE", Path(__file__).parents[2] / "docs" / "_build" / "html"))
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="the site is not built: make docs"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]

DESK, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
SCRIPT = """() => ({
  titles: document.querySelectorAll("h1").length,
  language: document.documentElement.lang,
  unnamed: [...document.images].filter(each => !each.hasAttribute("alt")).map(each => each.src),
  broken: [...document.images].filter(each => each.complete && !each.naturalWidth).map(each => each.src),
  links: [...document.querySelectorAll("a[href]")].map(each => each.href),
  empty: [...document.querySelectorAll("a[href], button")].filter(each =>
    !each.innerText.trim() && !each.ariaLabel && !each.title && !each.querySelector("img[alt], svg, span")
  ).map(each => each.outerHTML),
  ids: [...document.querySelectorAll("[id]")].map(each => each.id),
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield opened
        opened.close()


def test_every_page_opens_without_errors_and_every_link_leads_somewhere(browser: Any) -> None:
    page = browser.new_page(viewport=DESK)
    messages: list[str] = []
    page.on("console", lambda each: messages.append(each.text) if each.type == "error" else None)
    page.on("pageerror", lambda each: messages.append(str(each)))
    faults: list[str] = []
    ids: dict[str, set[str]] = {}
    links: list[tuple[str, str]] = []
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        seen = page.evaluate(SCRIPT)
        faults += [f"{name}: {each}" for each in messages]
        messages.clear()
        if seen["titles"] != 1 and name != "search.html":  # which gets its title with the results
            faults.append(f"{name}: {seen['titles']} titles")
        if not seen["language"]:
            faults.append(f"{name}: no language")
        for kind in ("unnamed", "broken", "empty"):
            faults += [f"{name}: {kind} {each}" for each in seen[kind]]
        ids[name] = set(seen["ids"])
        links += [(name, each) for each in seen["links"] if each.startswith(SITE.as_uri())]
        page.set_viewport_size(PHONE)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > PHONE["width"]:
            faults.append(f"{name}: a phone scrolls sideways, the page is {width} pixels wide")
        page.set_viewport_size(DESK)
    for name, link in links:
        url, fragment = urldefrag(link)
        target = unquote(url.removeprefix(SITE.as_uri() + "/"))
        target += "index.html" if not target or target.endswith("/") else ""
        if not (SITE / target).exists():
            faults.append(f"{name}: dead link {target}")
        elif fragment and target in ids and unquote(fragment) not in ids[target]:
            faults.append(f"{name}: dead anchor {target}#{fragment}")
    assert not faults, "\n".join(dict.fromkeys(faults))


def test_the_title_of_the_landing_page_takes_one_line_on_a_phone(browser: Any) -> None:
    page = browser.new_page(viewport=PHONE)
    page.goto((SITE / "index.html").as_uri())
    script = "title => [title.clientHeight, parseFloat(getComputedStyle(title).lineHeight)]"
    height, line = page.eval_on_selector("h1", script)
    assert height < 1.5 * line


FIRST = {
    "save model": "weights.html",
    "load model": "weights.html",
    "gpu": "accelerators.html",
    "parameter": "state.html",
    "labels": "training.html",
    "nan": "observing.html",
    "learning rate": "optimizers.html",
    "own op": "gradients.html",
    "mypy": "guide.html",
    "install": "install.html",
    "softmax": "api/activation/softmax.html",
}


@pytest.mark.parametrize("words", FIRST)
def test_the_search_shows_the_page_for_a_word_of_newcomers_first(browser: Any, words: str) -> None:
    page = browser.new_page()
    page.goto((SITE / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    page.wait_for_selector("ul.search li a", timeout=30_000)
    page.wait_for_function("document.querySelector('.search-summary')?.innerText.includes('found')", timeout=30_000)
    first = page.locator("ul.search li > a").first.get_attribute("href")
    assert first.partition("?")[0].partition("#")[0] == FIRST[words]


def test_the_sidebar_has_five_entries_and_the_index_of_ops_is_one_click_away(browser: Any) -> None:
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    entries = page.locator(".sidebar-tree > ul > li > a")
    assert entries.all_inner_texts() == ["Start", "Guide", "Examples", "API reference", "Project"]
    page.click(".sidebar-tree a:has-text('API reference')")
    page.wait_for_selector(".op-index a")
    names = set(page.locator(".op-index a").all_inner_texts())
    assert {name.rpartition(".")[2] for name in names} >= {"softmax", "acos", "lgamma", "fft", "normal"}
    page.click(".op-index a[href$='/softmax.html']")
    page.wait_for_url("**/softmax.html")
    assert page.inner_text("h1").startswith("softmax")
    assert max(len(text) for text in page.locator(".sidebar-tree a").all_inner_texts()) <= 32


def test_the_switch_of_versions_and_the_icon_are_there(browser: Any) -> None:
    page = browser.new_page()
    page.goto((SITE / "api" / "index.html").as_uri())
    assert page.locator("#version option").count() >= 1
    assert page.get_attribute("link[rel~=icon]", "href").endswith("favicon.svg")


@pytest.mark.parametrize("name", ["acos", "lgamma", "softmax", "AdamW"])
def test_the_search_finds_a_name(browser: Any, name: str) -> None:
    page = browser.new_page()
    page.goto((SITE / "search.html").as_uri() + f"?q={name}")
    page.wait_for_selector("ul.search li a", timeout=30_000)
    assert page.locator("ul.search li a").count() > 0
