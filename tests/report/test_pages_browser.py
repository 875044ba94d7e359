"""Pages in a real browser: clicks, keys, clips, the dark, a phone, and a hostile model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from omnidata import viewer
from omnidata.tasks import get_task
from omnidata.viewer.book import open_data
from omnidata.viewer.outputs import write_file
from tests.conftest import Once
from tests.full import FULL, in_gate
from tests.report.planted_run import (
    BESIDE,
    CAUSE,
    HOSTILE,
    SPOKEN,
    STEPS,
    SWIPED,
    browser,
    chromium,
    planted,
    until,
)
from tests.report.test_task_graph import data as task_graph
from tests.report.test_view import served

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
Open = Callable[..., Any]
_STAY = "pages-of-a-run"
_HEAD = "Number(document.querySelector('.playhead').getAttribute('x1'))"
_COLOURS = ["color-contrast", "link-in-text-block"]


@pytest.fixture(scope="module")
def reports(once: Once, sample: Path) -> Path:
    chromium()

    def write(folder: Path) -> None:
        # Links are relative: pages are written where they stay, not where `once` begins.
        stay = folder.parents[1] / _STAY
        run = planted(once, sample)
        viewer.write(run, stay / "report.html")
        viewer.write(run, stay / "site")
        folder.mkdir(parents=True)

    return once("pages", write).with_name(_STAY)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture
def visit(chrome: Any) -> Iterator[Open]:
    """Opens addresses; in the end nothing was loaded from outside, and the console is silent."""
    contexts: list[Any] = []
    complaints: list[str] = []
    requests: list[str] = []

    def go(address: str, **options: Any) -> Any:
        context = chrome.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []
    assert requests
    assert {url.split(":")[0] for url in requests} <= {"file", "data"}


def test_a_run_is_looked_at_by_its_folder(once: Once, sample: Path, chrome: Any) -> None:
    """Through a server of `omnidata view`."""
    with served(planted(once, sample).path) as server:
        assert server.said["steps"] == STEPS
        page = chrome.new_page()
        said: list[str] = []
        page.on("console", lambda line: said.append(line.text))
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(server.said["address"])
        page.click("a:has-text('no answer')")
        page.click(".card")
        page.wait_for_selector("#why")
        assert "no answer" in page.inner_text("#why")
        length = page.evaluate(
            """async () => {
              const clip = document.querySelector("video");
              if (clip.readyState < 1) await new Promise(done => clip.onloadedmetadata = done);
              await new Promise(done => { clip.onseeked = done; clip.currentTime = 0.7; });
              return clip.currentTime;
            }"""
        )
        assert length == pytest.approx(0.7, abs=0.01)
        assert said == []
        assert {urlsplit(url).netloc for url in requests} == {f"127.0.0.1:{server.port}"}
        page.close()


FORMS = ("report.html", "site/index.html")


def address(reports: Path, form: str, hash: str = "") -> str:
    return (reports / form).as_uri() + hash


@pytest.mark.parametrize(
    "form", in_gate(FORMS[::-1], 1, "a browser for each; others click through the one file")
)
def test_two_clicks_lead_from_the_index_to_a_planted_failure_and_its_cause(
    reports: Path, visit: Open, form: str
) -> None:
    page = visit(address(reports, form))
    page.click("a:has-text('type only')")
    page.click(f".card:has-text('{BESIDE}')")
    page.wait_for_selector("#why")
    assert CAUSE.lower() in page.inner_text("#why").lower()
    assert "type only" in page.inner_text("#why")
    assert page.inner_text(".strip [aria-current]") == "2"
    assert "mistake is at step 2" in page.inner_text(".episode")
    assert page.locator(".shot.main svg rect.target").count() == 1
    assert page.locator(".shot.main svg g.answer").count() == 1


@pytest.mark.parametrize("form", in_gate(FORMS, 1, "a browser for each"))
def test_a_number_of_the_matrix_leads_to_its_steps(reports: Path, visit: Open, form: str) -> None:
    page = visit(address(reports, form))
    page.click('.matrix a[href="#target=TASK_COMPLETE&answer=SWIPE_UP"]')
    assert page.locator(".card strong").all_inner_texts() == [SWIPED]
    page.click(".card")
    page.wait_for_selector("#why")
    assert "answer is SWIPE_UP, the expert's action is TASK_COMPLETE" in page.inner_text("#why")
    said = page.locator(".rulings li").all_inner_texts()
    assert len(said) == 2
    assert "omnigui-paper" in said[0]
    assert "omnigui-release" in said[1]


def test_filters_choose_together_and_are_kept_in_the_address(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]))
    assert f"{STEPS} of {STEPS} steps" in page.inner_text("#count")
    page.select_option("[name=app]", "Chirp")
    page.select_option("[name=target]", "TAP")
    chosen = page.inner_text("#count")
    page.select_option("[name=verdict]", "near")
    assert page.inner_text("#count").startswith(f"1 of {STEPS} steps")
    assert "app=Chirp" in page.url
    again = visit(page.url)
    assert again.locator(".card strong").all_inner_texts() == [BESIDE]
    again.select_option("[name=verdict]", "")
    assert again.inner_text("#count") == chosen
    again.fill("[name=q]", "c003 call")
    assert all("Chirp/C003" in text for text in again.locator(".card strong").all_inner_texts())
    again.click("#clear")
    assert f"{STEPS} of {STEPS} steps" in again.inner_text("#count")


def test_strips_show_where_the_run_of_correct_steps_broke(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]))
    page.click("#as-episodes")
    row = page.locator(".row", has_text="Chirp/C001")
    assert row.locator(".cell").count() == 3
    assert row.locator(".cell.broke").inner_text() == "2"
    assert page.locator(".row", has_text="Chirp/C005").locator(".cell.broke").count() == 0


@pytest.mark.parametrize("form", in_gate(FORMS, 1, "a browser for each"))
def test_keys_lead_through_the_chosen_steps_and_back(reports: Path, visit: Open, form: str) -> None:
    page = visit(address(reports, form))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.select_option("[name=target]", "TAP")
    names = page.locator(".card strong").all_inner_texts()
    page.locator(".card").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#why")
    assert names[0] in page.inner_text("#page .kicker")
    page.keyboard.press("ArrowRight")
    page.locator("#page .kicker", has_text=names[1]).wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator("#page .kicker", has_text=names[0]).wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("#count")
    assert page.locator(".card strong").all_inner_texts() == names


@pytest.mark.parametrize("form", FORMS)
def test_clips_and_sounds_play_and_are_sought_in(reports: Path, visit: Open, form: str) -> None:
    hash = "#step=1" if form == FORMS[0] else ""
    page = visit(address(reports, form if hash else "site/steps/1.html", hash))
    for kind in ("video", "audio"):
        played = page.evaluate(
            """async kind => {
              const player = document.querySelector(kind);
              if (player.readyState < 2) await new Promise(done => player.oncanplay = done);
              player.muted = true;
              await player.play();
              await new Promise(
                done => player.ontimeupdate = () => player.currentTime > 0 && done());
              player.pause();
              const sought = player.duration / 2;
              await new Promise(done => { player.onseeked = done; player.currentTime = sought; });
              return [player.currentTime, sought, player.videoWidth ?? 0, player.error];
            }""",
            kind,
        )
        assert played[0] == pytest.approx(played[1], abs=0.01)
        assert played[3] is None
        assert (played[2] > 0) == (kind == "video")
    head = page.locator(".playhead")
    until(page, f"{_HEAD} > 0")
    before = float(head.get_attribute("x1"))
    box = page.locator(".wave").bounding_box()
    page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 5)
    until(page, f"{_HEAD} > 100")
    assert before < 100


def test_what_a_hostile_model_says_stays_text(reports: Path, visit: Open) -> None:
    shown = HOSTILE.replace("\ud800", "\\ud800")
    for form in FORMS if FULL else FORMS[:1]:
        page = visit(address(reports, form))
        page.click("a:has-text('unparsed')")
        page.click(f".card:has-text('{SPOKEN}')")
        page.wait_for_selector("#why")
        assert page.inner_text(".raw") == shown
        assert page.locator("img[src=x], pre svg, pre script").count() == 0
        assert "owned" not in page.title()
        assert "no JSON" in page.inner_text("#why") or "read" in page.inner_text("#why")


def test_the_prompt_is_the_whole_one(reports: Path, visit: Open) -> None:
    for form in FORMS if FULL else FORMS[1:]:
        hash = "#step=2" if form == FORMS[0] else ""
        page = visit(address(reports, form if hash else "site/steps/2.html", hash))
        page.click("summary:has-text('Prompt')")
        said = page.inner_text(".texts details[open]")
        assert "You are an Android GUI Agent." in said
        assert "Action History:\nStep 0: NONE\nStep 1: TAP at" in said
        assert "screenshot: C001/3.png" in said
        assert "history_screenshot: C001/1.png" in said


def test_the_dark_is_dark(reports: Path, visit: Open) -> None:
    def light(page: Any) -> int:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(","))

    page = visit(address(reports, FORMS[0]), color_scheme="light")
    assert light(page) > 600
    page.emulate_media(color_scheme="dark")
    assert light(page) < 150


@pytest.mark.parametrize(
    "form",
    in_gate(["report.html", "site/steps/1.html", "report.html#step=1"], 2, "a browser for each"),
)
def test_a_phone_scrolls_downwards_alone(reports: Path, visit: Open, form: str) -> None:
    name, _, hash = form.partition("#")
    page = visit(address(reports, name, hash and f"#{hash}"), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("innerWidth") == 390
    if not hash and name == "report.html":
        page.tap("#as-episodes")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_axe_finds_nothing(reports: Path, visit: Open, tmp_path: Path) -> None:
    """Pages of a run, of data whose media are missing, and of a task graph."""
    from axe_playwright_python.sync_playwright import Axe

    graph = task_graph(tmp_path / "graph", {"A": ["E"]})
    write_file(open_data(get_task("omnibench"), graph), tmp_path / "graph.html")
    run = address(reports, FORMS[0])
    data = (tmp_path / "graph.html").as_uri()
    pages = [
        (run, "#count"),
        (f"{run}#step=1", "#why"),
        (f"{run}#view=episodes", ".row .cell"),
        (f"{run}#q=no+such+step", "#nothing"),
        (data, "#count"),
        (f"{data}#step=1", ".graph"),
    ]
    # The page's policy keeps foreign scripts out, axe too; other tests look at the policy.
    page = visit(run, bypass_csp=True)
    for url, shows in pages:
        page.goto(url)
        page.wait_for_selector(shows)
        # Only colours depend on the scheme.
        for scheme, rules in (
            ("light", {}),
            ("dark", {"runOnly": {"type": "rule", "values": _COLOURS}}),
        ):
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page, options=rules).response["violations"]
            faults = [(each["id"], [node["target"] for node in each["nodes"]]) for each in found]
            assert faults == [], (url, scheme)


def test_thumbnails_show_the_whole_screen(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]), viewport={"width": 1280, "height": 4000})
    until(page, "[...document.querySelectorAll('.card img')].every(each => each.naturalWidth)")
    shapes = page.evaluate(
        """() => [...document.querySelectorAll(".card img")].map(each => {
          const box = each.getBoundingClientRect(), style = getComputedStyle(each);
          return [box.width / box.height, each.naturalWidth / each.naturalHeight, style.objectFit];
        })"""
    )
    assert len(shapes) == STEPS
    for shown, own, fit in shapes:
        assert fit == "contain"  # the picture is never cut
        assert shown == pytest.approx(own, rel=0.1)  # and has next to no empty margin


def test_the_list_does_not_jump_when_thumbnails_load(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[1]), viewport={"width": 1280, "height": 300})
    boxes = "[...document.querySelectorAll('.card')].map(each => each.offsetTop)"
    before = page.evaluate(boxes)
    assert page.evaluate("[...document.querySelectorAll('.card img')].some(e => !e.complete)")
    page.locator(".card").last.scroll_into_view_if_needed()
    until(page, "[...document.querySelectorAll('.card img')].at(-1).complete")
    assert page.evaluate(boxes) == before


def test_a_phone_shows_the_first_step_without_scrolling(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]), **PHONE)
    badge = page.locator(".card .badge").first.bounding_box()
    assert badge["y"] + badge["height"] <= page.viewport_size["height"]
    # The tables above are folded, not gone.
    assert not page.locator(".matrix").is_visible()
    page.tap("summary:has-text('target against answer')")
    assert page.locator(".matrix").is_visible()


_CUT = """() => [...document.querySelectorAll(".plain tbody bdi, .tile dt")].flatMap(each =>
  [...each.childNodes].filter(node => node.data).flatMap(node =>
    [...node.data.matchAll(/[A-Za-z0-9]+/g)].filter(word => {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      return range.getClientRects().length > 1;
    }).map(word => word[0])))"""


def test_tables_and_tiles_break_no_word(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]))
    for width in (1400, 1100, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.querySelectorAll('.plain tbody bdi').length") > 5
        assert page.evaluate(_CUT) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_wide_screen_is_used(reports: Path, visit: Open) -> None:
    page = visit(address(reports, FORMS[0]), viewport={"width": 1800, "height": 1000})
    for hash, shows in (("", "#list"), ("#step=1", ".texts")):
        page.goto(address(reports, FORMS[0], hash))
        box = page.locator(shows).bounding_box()
        assert box["x"] + box["width"] > 1650
    cards = page.goto(address(reports, FORMS[0])) and page.locator(".card").all()
    first = cards[0].bounding_box()["y"]
    assert sum(card.bounding_box()["y"] == first for card in cards) >= 5


@pytest.mark.parametrize("form", in_gate(FORMS, 1, "a browser for each"))
def test_a_slash_searches_and_arrows_move_through_the_list(
    reports: Path, visit: Open, form: str
) -> None:
    page = visit(address(reports, form))
    page.keyboard.press("/")
    page.keyboard.type("c003/")
    assert page.input_value("[name=q]") == "c003/"
    names = page.locator(".card strong").all_inner_texts()
    assert names and all("C003" in name for name in names)
    focused = "document.activeElement.querySelector('strong')?.innerText"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == names[1]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == names[0]
    page.keyboard.press("Enter")
    page.wait_for_selector("#why")
    page.keyboard.press("/")
    page.wait_for_selector("#count")
    until(page, "document.activeElement.name === 'q'")
    assert page.input_value("[name=q]") == "c003/"
    assert "search" not in page.url
