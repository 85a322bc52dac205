"""The report in a real browser: it renders, its controls work, nothing is complained of, and no request leaves it.

Run by ``make browser-check``; it needs Debian's chromium, or another one that CHROMIUM names.
"""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Page, chromium, opened_browser
from command_line import Tfm, tfm_process
from report_rig import EVIL, SECTIONS, hostile

from transformer_cli.report.page import page as page_of

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = chromium()
    if program is None:
        pytest.fail("no chromium was found: apt-get install chromium, or name one with CHROMIUM=/path/to/it")
    with opened_browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def base_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of base.yaml's model and data after a few steps; of what follows from more, the page shows as much."""
    folder = tmp_path_factory.mktemp("base")
    steps = ["train.max_steps=120", "train.max_minutes=null", "train.validate_every=60", "train.log_every=10"]
    steps += ["train.warmup_steps=50", "data.dev_size=60"]
    for command in (
        ["train", "--config", "base.yaml", "--run", "run", *(word for step in steps for word in ("-s", step)), "-q"],
        ["eval", "--run", "run", "--split", "handwritten", "--beam-size", 1, "-q"],
        ["report", "run", "-o", "report.html"],
    ):
        done = tfm_process(*command, cwd=folder)
        assert done.code == 0, done.err
    return folder / "report.html"


@pytest.fixture
def report(browser: Page, base_report: Path) -> Page:
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.open(base_report)
    return browser


def test_the_harness_sees_requests_and_complaints(browser: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<img src='http://127.0.0.1:9/x.png'><script>console.error('no'); missing()</script>", encoding="utf-8"
    )
    browser.open(bad)
    assert browser.requests == [bad.as_uri(), "http://127.0.0.1:9/x.png"]
    assert "missing is not defined" in str(browser.complaints)
    assert "'no'" in str(browser.complaints)


def test_the_base_report_is_filled_small_and_alone(report: Page, base_report: Path) -> None:
    assert base_report.stat().st_size < 3_000_000
    assert report.requests == [base_report.as_uri()]
    assert report.complaints == []
    assert report.run("[...document.querySelectorAll('section')].map((node) => node.id)") == SECTIONS
    assert report.run("document.querySelectorAll('.absent:not(noscript *)').length") == 0
    assert report.run("document.querySelectorAll('.chart').length") == 5
    assert report.run("[...document.querySelectorAll('path.line')].every((node) => node.getTotalLength() > 100)")
    for part in SECTIONS:
        assert report.run(f"document.getElementById('{part}').getBoundingClientRect().height") > 100, part


def test_the_maps_follow_their_controls(report: Page) -> None:
    shown = "document.querySelector('#map svg').getAttribute('aria-label')"
    cells = "document.querySelectorAll('#map .ghost').length"
    labels = "document.querySelectorAll('#map .{0}').length"
    assert report.run(shown) == "cross attention, layer 2, mean of 4"
    for place in ("encoder", "decoder", "cross"):
        change(report, "place", place)
        rows, columns = report.run(labels.format("row")), report.run(labels.format("column"))
        assert report.run(cells) == rows * columns > 0
        assert report.run(shown).startswith(f"{place} attention")
        assert report.run(f"({row_sums}).every((sum) => Math.abs(sum - 1) < 0.03)"), place
    change(report, "layer", "3")
    report.run("document.querySelectorAll('#map-thumbs button')[2].click()")
    assert report.run(shown) == "cross attention, layer 3, head 2"
    assert report.run("document.getElementById('map-head').value") == "2"
    before = report.run("document.getElementById('map').innerHTML")
    change(report, "sentence", "1")
    assert report.run("document.getElementById('map').innerHTML") != before
    assert report.run(shown) == "cross attention, layer 3, head 2"  # what was chosen stays
    assert report.complaints == []


#: The drawn weights of each row, added up.
row_sums = """[...document.querySelectorAll('#map .cell')].reduce((sums, cell) => {
  const row = cell.getAttribute('y') / cell.getAttribute('height');
  sums[row] = (sums[row] || 0) + Number(cell.getAttribute('fill-opacity'));
  return sums; }, [])"""


def change(page: Page, name: str, value: str) -> None:
    page.run(
        f"(() => {{ const node = document.getElementById('map-{name}'); node.value = '{value}'; node.dispatchEvent(new Event('change')); }})()"
    )


def move_to(page: Page, selector: str) -> None:
    """Move the mouse to the middle of an element."""
    page.run(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    x, y = page.run(
        f"(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


def test_the_pointer_reads_curves_and_cells(report: Page) -> None:
    legend = "document.querySelector('.chart .at').textContent"
    assert report.run(legend) == "at the last step"
    move_to(report, ".chart svg")
    assert report.run(legend).startswith("near step ")
    move_to(report, "#map .ghost")
    assert report.run("document.getElementById('map-reading').textContent").endswith(" %")
    assert report.run(legend) == "at the last step"  # the pointer has left it
    assert report.complaints == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568), (1200, 900)])
def test_the_page_never_scrolls_sideways(report: Page, base_report: Path, width: int, height: int) -> None:
    report.resize(width, height)
    report.open(base_report)
    report.run("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert report.run("document.documentElement.scrollWidth") <= width
    assert report.complaints == []


def test_a_wide_table_scrolls_by_itself_on_a_phone_and_keeps_its_columns(report: Page, base_report: Path) -> None:
    report.resize(390, 844)
    report.open(base_report)
    assert report.run(
        "(() => { const box = document.querySelector('#scores .scroll'); box.scrollLeft = 99;"
        "return box.scrollLeft === 99 && box.scrollWidth > 1.5 * box.clientWidth; })()"
    )
    assert report.run("document.querySelector('#scores td.long').getBoundingClientRect().width") > 310
    assert report.run("document.querySelector('#scores tbody tr').getBoundingClientRect().height") < 110


#: How much brighter the brighter one of an element's text and the paper is (WCAG 2.1, 1.4.3).
contrast = """(selector) => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255)
    .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const node = document.querySelector(selector);
  const both = [getComputedStyle(node).color, getComputedStyle(document.documentElement).backgroundColor].map(light);
  return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05); }"""


def test_dark_is_dark_and_both_can_be_read(report: Page) -> None:
    papers = {}
    for scheme in ("light", "dark"):
        report.prefer(scheme)
        papers[scheme] = report.run("getComputedStyle(document.documentElement).backgroundColor")
        for selector in ("h1", ".note", "nav a", ".tiles span", ".chart figcaption span"):
            assert report.run(f"({contrast})('{selector}')") > 4.5, (scheme, selector)
    assert papers == {"light": "rgb(252, 252, 250)", "dark": "rgb(20, 24, 28)"}
    assert report.complaints == []


def test_it_prints_with_everything_open(report: Page) -> None:
    report.prefer("dark")
    document = base64.b64decode(report.call("Page.printToPDF", printBackground=True)["data"])
    assert document.startswith(b"%PDF-")
    assert document.count(b"/Type /Page\n") > 2
    assert report.run("[...document.querySelectorAll('details')].every((node) => node.open)")
    report.call("Emulation.setEmulatedMedia", media="print")
    assert report.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    report.call("Emulation.setEmulatedMedia", media="")


def test_no_text_from_data_comes_alive(browser: Page, tmp_path: Path) -> None:
    place = tmp_path / "hostile.html"
    place.write_text(page_of(hostile()), encoding="utf-8")
    browser.open(place)
    assert browser.requests == [place.as_uri()]
    assert browser.complaints == []
    assert browser.run("window.stolen") is None
    assert browser.run("document.querySelector('h1').textContent") == EVIL
    assert EVIL in browser.run("document.getElementById('map').textContent")
    assert browser.run("document.querySelectorAll('img, body script').length") == 2  # the data and ours


def test_markup_that_did_come_in_would_be_dead(browser: Page, tmp_path: Path) -> None:
    place = tmp_path / "broken.html"
    bad = "<script>window.stolen = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.stolen = 2'>"
    place.write_text(page_of(hostile()).replace("</main>", bad + "</main>"), encoding="utf-8")
    browser.open(place)
    assert browser.requests == [place.as_uri()]
    assert browser.run("window.stolen") is None


def test_a_young_runs_report_opens_too(tfm: Tfm, browser: Page, run: Path, tmp_path: Path) -> None:
    assert tfm("report", run, "-o", tmp_path / "r.html", "--lines", 0, "-q").code == 0
    browser.open(tmp_path / "r.html")
    assert browser.complaints == []
    assert "--lines 0" in browser.run("document.querySelector('#attention .absent').textContent")
