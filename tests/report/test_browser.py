"""A report in a browser: from disk, without a network, with a pointer and on a phone.

To open a page takes seconds: each test opens one, and checks much on it.
"""

import shutil
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from mercer import PCA, KernelPCA, as_source
from mercer.kernels import Substring
from mercer.report import write_report
from tests.report.pages import NASTY

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.xdist_group("browser"),
]

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
AXIS_TITLE = "document.querySelector('#scatter .g-xtitle').textContent"
LEGEND = "[...document.querySelectorAll('#scatter .legendtext')].map(t => t.textContent)"
POLICY = "document.querySelector('meta[http-equiv]').content.includes('unsafe-eval')"
LOOK = "[getComputedStyle(document.body).backgroundColor, scatter._fullLayout.font.color]"
# Where point i of trace t lies on the screen.
PLACE = """([t, i]) => {
  const plot = document.getElementById("scatter"), { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect(), { x, y } = plot.data[t];
  return [box.left + xaxis._offset + xaxis.l2p(x[i]), box.top + yaxis._offset + yaxis.l2p(y[i])];
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        # SwiftShader draws WebGL where there is no graphics card.
        flags = ["--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"]
        chromium = p.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(name="open_page")
def opener(browser):
    """Open a page; nothing may go wrong on it while the test runs."""
    wrong, pages = [], []

    def open_page(path, before=None, **settings):
        page = browser.new_page(**{**DESKTOP, **settings})
        page.on("console", lambda m: wrong.append(m.text) if "GL Driver" not in m.text else None)
        page.on("pageerror", lambda e: wrong.append(str(e)))
        page.on("dialog", lambda d: (wrong.append(f"dialog {d.message}"), d.dismiss()))
        page.on("popup", lambda p: wrong.append(f"popup {p.url}"))
        page.on("request", lambda r: wrong.append(r.url) if outside(r.url, path) else None)
        if before is not None:
            page.add_init_script(before)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert wrong == []


def outside(url, path):
    return url != path.as_uri() and not url.startswith(("data:", "blob:"))


def hover(page, trace=0, point=0):
    page.locator("#scatter").scroll_into_view_if_needed()
    x, y = page.evaluate(PLACE, [trace, point])
    page.mouse.move(2, 2)
    page.wait_for_selector("#tip", state="hidden")
    page.mouse.move(x, y)
    page.wait_for_selector("#tip:not([hidden])")
    tip = page.locator("#tip").bounding_box()
    assert tip["x"] - 30 <= x <= tip["x"] + tip["width"] + 30
    assert tip["y"] <= y <= tip["y"] + tip["height"]
    return page.inner_text("#tip")


def edge(page, selector, side):
    """Return the places of elements on the screen."""
    return page.evaluate(
        "([s, side]) => [...document.querySelectorAll(s)]"
        ".map(e => e.getBoundingClientRect()[side])",
        [selector, side],
    )


def assert_outliers_are_not_clipped(page):
    table = "document.getElementById('furthest').parentElement"
    assert page.evaluate(f"{table}.scrollWidth") <= page.evaluate(f"{table}.clientWidth")


def assert_rules_are_below_the_buttons(page):
    letters = edge(page, "#scree .annotation-text", "top")
    assert letters
    assert min(letters) >= max(edge(page, "#scree .modebar-group", "bottom"))


def least_contrast(page):
    """Return the least contrast of any text with the page behind it."""
    return page.evaluate("""() => {
      const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const parts = text => text.match(/[\\d.]+/g).map(Number);
      const behind = element => {
        for (let e = element; e; e = e.parentElement) {
          const color = parts(getComputedStyle(e).backgroundColor);
          if (color.length < 4 || color[3] === 1) return color;
        }
      };
      const ratios = [];
      const kinds = "h1,h2,h3,p,dt,dd,a,td,th,small,button,label,code";
      for (const e of document.querySelectorAll(`:is(header, main, footer) :is(${kinds})`)) {
        if (!e.textContent.trim() || e.classList.contains("tint")) continue;
        const [a, b] = [parts(getComputedStyle(e).color), behind(e)].map(light);
        ratios.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
      }
      return Math.min(...ratios);
    }""")


def test_pointing_choosing_zooming_sorting_and_themes(open_page, tmp_path):
    wine = load_wine(as_frame=True)
    pca = PCA(5, scale=True).fit(wine.data)
    ids = [f"bottle {i}" for i in range(178)]
    columns = {"year": np.arange(178)}
    names = wine.target_names[wine.target]
    path = tmp_path / "wine report.html"
    write_report(pca, wine.data, path, labels=names, ids=ids, columns=columns)
    page = open_page(path)
    check_hover(page)
    check_choices(page, pca.transform(wine.data), pca.reconstruction_error(wine.data))
    check_zoom(page)
    check_sorting(page)
    check_themes(page)
    label = "b => b.ariaLabel ?? b.dataset.title"  # plotly 6.0 has no labels yet
    titles = page.evaluate(f"[...document.querySelectorAll('.modebar-btn')].map({label})")
    assert {t.split()[0] for t in titles} == {"Download", "Zoom", "Pan", "Reset"}  # none uploads
    assert not page.evaluate(POLICY)
    assert page.evaluate("scree._fullLayout.yaxis2") is None
    assert_rules_are_below_the_buttons(page)


def check_hover(page):
    text = hover(page, trace=1, point=5)
    row = page.evaluate("scatter.data[1].rows[5]")
    assert f"Row bottle {row}" in text
    assert page.evaluate("scatter.data[1].name") in text
    x = page.evaluate("scatter.data[1].x[5]")
    assert f"{x:.4f}".replace("-", "−")[:-2] in text
    page.mouse.move(5, 5)
    page.wait_for_selector("#tip", state="hidden")


def check_choices(page, scores, errors):
    page.select_option("#across", "2")
    page.select_option("#up", "3")
    assert page.evaluate(AXIS_TITLE).startswith("Component 3")
    at, x, y = page.evaluate("(({rows, x, y}) => [rows, [...x], [...y]])(scatter.data[0])")
    np.testing.assert_allclose(np.stack([x, y], 1), scores[at][:, 2:4], atol=1e-4)
    assert page.locator("#scatter .legend .traces").count() == 3
    page.select_option("#color", label="year")
    assert page.evaluate("[...scatter.data[0].marker.color]") == list(range(178))
    assert page.locator("#scatter .colorbar").count() == 1
    assert "year" in hover(page)
    page.select_option("#color", label="distance from the components")
    colors = page.evaluate("[...scatter.data[0].marker.color]")
    np.testing.assert_allclose(colors, np.sqrt(errors), rtol=1e-4)
    page.select_option("#color", label="nothing")
    assert page.evaluate("scatter.data.length") == 1


def check_zoom(page):
    page.locator("#scatter").scroll_into_view_if_needed()
    before = page.evaluate("scatter._fullLayout.xaxis.range.slice()")
    box = page.locator("#scatter .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 250, steps=4)
    page.mouse.up()
    page.wait_for_function("r => scatter._fullLayout.xaxis.range[0] > r", arg=before[0])
    after = page.evaluate("scatter._fullLayout.xaxis.range.slice()")
    assert after[1] - after[0] < 0.5 * (before[1] - before[0])
    page.select_option("#color", label="year")  # another color keeps the place
    assert page.evaluate("scatter._fullLayout.xaxis.range.slice()") == pytest.approx(after)


def check_sorting(page):
    column = "[...document.querySelectorAll('#loadings tbody tr')].map(r => r.cells[%d].%s)"

    def values():
        return [float(x) for x in page.evaluate(column % (2, "dataset.value"))]

    button = page.locator("#loadings thead button")
    button.nth(2).click()
    assert values() == sorted(values(), reverse=True)
    button.nth(2).focus()
    page.keyboard.press("Enter")
    assert values() == sorted(values())
    assert page.locator("#loadings [aria-sort=ascending]").count() == 1
    button.nth(0).click()
    names = page.evaluate(column % (0, "textContent"))
    assert names == sorted(names)
    assert "alcohol" in names[1]


def check_themes(page):
    day = page.evaluate(LOOK)
    assert least_contrast(page) >= 4.5
    page.click("#theme")
    night = page.evaluate(LOOK)
    assert day[0] != night[0]
    assert day[1] != night[1]
    assert least_contrast(page) >= 4.5
    page.click("#theme")
    assert page.evaluate(LOOK) == day
    page.emulate_media(color_scheme="dark")  # the machine changes its mind
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate(LOOK) == night


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """A report with classes of all sizes, missing ones, dates, and long names of rows."""
    rng = np.random.default_rng(0)
    rows = rng.standard_t(2, size=(200, 5))
    sizes = [4, 90, *[6] * 16]
    labels = np.repeat(np.array([f"class with a name {i:02}" for i in range(18)], object), sizes)
    labels = np.concatenate([labels, [None] * (200 - len(labels))])
    days = np.arange("2020-01-01", "2020-07-19", dtype="datetime64[D]")
    days[7] = "NaT"
    numbers = 123_456 + np.arange(200)
    path = tmp_path_factory.mktemp("groups") / "groups.html"
    write_report(
        PCA(3).fit(rows),
        rows,
        path,
        labels=labels,
        ids=[f"sample-{i:05d}-of-the-study" for i in range(200)],
        columns={"day": days, "number": numbers, "": numbers},
    )
    return path


@pytest.mark.slow
def test_classes_dates_and_missing_values(open_page, groups):
    page = open_page(groups)
    # Rows without a class are drawn first, below all others, then large classes before small
    # ones; the legend is in the order of the classes.
    names = page.evaluate("scatter.data.map(t => t.name)")
    assert names[:2] == ["missing", "class with a name 01"]
    assert names[-1] == "class with a name 00"
    assert page.evaluate(LEGEND) == [f"class with a name {i:02}" for i in range(18)] + ["missing"]
    page.select_option("#color", label="day")
    assert page.evaluate("scatter.data.map(t => t.x.length)") == [199, 1]
    ticks = page.evaluate("scatter.data[0].marker.colorbar.ticktext")
    assert [ticks[0], ticks[-1]] == ["2020-01-01", "2020-07-18"]
    assert "2020-0" in hover(page)
    page.select_option("#color", label="number")
    assert str(123_456 + page.evaluate("scatter.data[0].rows[0]")) in hover(page)
    assert "(empty)" in page.inner_text("#color")
    assert_outliers_are_not_clipped(page)


@pytest.mark.slow
def test_a_phone_at_night(open_page, groups):
    page = open_page(groups, **PHONE, color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert max(edge(page, "#scatter .g-xtitle", "bottom")) <= min(
        edge(page, "#scatter .legend", "top")
    )
    assert_rules_are_below_the_buttons(page)
    assert_outliers_are_not_clipped(page)
    # Headings of the certificate are no higher than their texts; figures are in two columns.
    head, row = (edge(page, f"#components {part}", "height")[0] for part in ("thead", "tbody tr"))
    assert head <= 2.2 * row
    left = edge(page, ".key div", "left")
    assert left.count(min(left)) == left.count(max(left)) == len(left) / 2
    for width in (360, 320, 768):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_function("w => document.documentElement.scrollWidth <= w", arg=width)
        right = page.evaluate("""Math.max(...[...document.querySelectorAll("main *")]
          .filter(e => !e.closest(".scroll, svg, pre, .plotly"))
          .map(e => e.getBoundingClientRect().right))""")
        assert right <= width + 1
    page.tap("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.slow
def test_many_components_and_long_numbers_as_names(open_page, tmp_path):
    rows = np.random.default_rng(0).standard_normal(size=(150, 60))
    ids = [10**17 + i for i in range(150)]
    write_report(PCA(50).fit(rows), rows, tmp_path / "r.html", ids=ids)
    page = open_page(tmp_path / "r.html")
    assert page.evaluate("scree._fullLayout.yaxis.range[1]") < 0.08
    assert page.evaluate("scree._fullLayout.yaxis2.range[1]") > 0.9
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert_outliers_are_not_clipped(page)
        lines = "document.querySelectorAll('#furthest th bdi')"
        heights = page.evaluate(f"[...{lines}].map(e => e.getClientRects().length)")
        assert set(heights) == {1}


@pytest.mark.slow
def test_nasty_texts_stay_text(open_page, tmp_path):
    rng = np.random.default_rng(0)
    n, d = 5 * len(NASTY), len(NASTY)
    rows = as_source(rng.normal(size=(n, d)))
    rows.names = NASTY
    turned = [[NASTY[(i + s) % d] for i in range(n)] for s in range(3)]
    path = tmp_path / "nasty.html"
    facts = dict(zip(NASTY, NASTY, strict=True))
    write_report(
        PCA(3).fit(rows),
        rows,
        path,
        labels=turned[0],
        ids=turned[1],
        columns=dict.fromkeys(NASTY, turned[2]),
        title="".join(NASTY),
        origin={"command": NASTY[1] + NASTY[9], "file": NASTY[0], **facts},
    )
    page = open_page(path, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1200, "height": 900})
    for i in range(0, page.locator("#color option").count(), 5):
        page.select_option("#color", str(i))
    page.select_option("#color", "0")
    for trace in range(0, page.evaluate("scatter.data.length"), 4):
        assert len(hover(page, trace)) < 1000, page.evaluate(f"scatter.data[{trace}].rows[0]")
    assert page.evaluate("window.hacked") is None
    tags = "main b, main a[href*='javascript'], svg a, main img, #tip img"
    assert page.locator(tags).count() == 0
    assert page.evaluate("document.scripts.length") == 4
    assert NASTY[0] in page.locator("#loadings").text_content()
    assert "<b>bold</b>" in page.locator("#scatter .legend").text_content()
    assert page.title().startswith(NASTY[0])


@pytest.mark.slow
def test_strings_along_one_component(open_page, tmp_path):
    words = ["abba", "abab", "baba", "bbbb", "aaaa", "abc", "<i>cab</i>"]
    write_report(KernelPCA(1, kernel=Substring(2)).fit(words), words, tmp_path / "w.html")
    page = open_page(tmp_path / "w.html")
    assert "<i>cab</i>" in hover(page, point=6)
    assert "Distance" in page.evaluate("scatter.layout.yaxis.title.text")


@pytest.mark.slow
def test_images_in_the_tooltip(open_page, tmp_path):
    digits = load_digits()
    pca = PCA(4).fit(digits.data)
    write_report(pca, digits.data[:50], tmp_path / "d.html", image_shape=(8, 8))
    page = open_page(tmp_path / "d.html")
    hover(page, point=7)
    pixels = page.evaluate(
        "[...document.querySelector('#tip canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    row = page.evaluate("scatter.data[0].rows[7]")
    np.testing.assert_array_equal(pixels[::4], np.round(digits.data[row] / 16 * 255))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A report of 100 000 rows, and how long it took to write."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 5, 100_000)
    rows = rng.normal(size=(100_000, 20)) + 3 * rng.normal(size=(5, 20))[kind]
    pca = PCA(10).fit(rows)
    path = tmp_path_factory.mktemp("many") / "many.html"
    start = time.perf_counter()
    write_report(pca, rows, path, labels=kind)
    return path, time.perf_counter() - start


@pytest.mark.slow
def test_many_rows(open_page, many, record_property):
    path, written = many
    start = time.perf_counter()
    page = open_page(path)
    opened = time.perf_counter() - start
    assert "20 000 of 100 000 rows are drawn" in page.inner_text("#scores").replace("\u202f", " ")
    assert page.evaluate("scatter.data.reduce((n, t) => n + t.x.length, 0)") == 20_000
    assert page.evaluate("scatter.data[0].type") == "scattergl"
    assert page.evaluate(POLICY)  # only WebGL may compile
    assert page.evaluate("Function('return 1')()") == 1
    switched = page.evaluate("""() => {
      const start = performance.now();
      document.getElementById("across").value = 4;
      document.getElementById("across").dispatchEvent(new Event("change"));
      return performance.now() - start;
    }""")
    assert page.evaluate(AXIS_TITLE).startswith("Component 5")
    assert path.stat().st_size < 8e6
    figures = {"bytes": path.stat().st_size, "write_s": written, "open_s": opened}
    for name, value in {**figures, "switch_s": switched / 1000}.items():
        record_property(name, round(value, 3))
        print(name, round(value, 3))


@pytest.mark.slow
def test_without_webgl_and_without_other_scripts(browser, many):
    page = browser.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(many[0].as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("scatter.data[0].type") == "scatter"
    assert page.evaluate("scatter.data.reduce((n, t) => n + t.x.length, 0)") == 5000
    assert "no WebGL" in page.inner_text("#fallback")
    # No script runs that was not there when the page was written.
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.head.append(script);
      document.body.insertAdjacentHTML("beforeend", "<p id=late onclick='window.hacked = 2'>.</p>");
      document.getElementById("late").click();
    }""")
    assert page.evaluate("window.hacked") is None
    page.close()
