"""A report in a browser: from disk, without a network, with a pointer and on a phone."""

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
    pytest.mark.xdist_group("browser"),  # one browser, and one page that tests share
]

AXIS_TITLE = "document.querySelector('#scatter .g-xtitle').textContent"
# Where the page's own point number i of trace t lies on the screen.
PLACE = """([t, i]) => {
  const plot = document.getElementById("scatter"), { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect(), { x, y } = plot.data[t];
  return [box.left + xaxis._offset + xaxis.l2p(x[i]), box.top + yaxis._offset + yaxis.l2p(y[i])];
}"""


@pytest.fixture(scope="session")
def browser():
    with playwright.sync_playwright() as p:
        # SwiftShader draws WebGL where there is no graphics card.
        flags = ["--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"]
        found = p.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield found
        found.close()


WRONG = []


@pytest.fixture(autouse=True)
def _nothing_wrong():
    """Nothing may go wrong on any page while a test runs."""
    WRONG.clear()
    yield
    assert WRONG == []


@pytest.fixture(scope="session")
def opened(browser):
    """Open a page, and listen to what goes wrong on it."""

    def open_page(path, **settings):
        page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **settings})
        page.on("console", lambda m: WRONG.append(m.text) if "GL Driver" not in m.text else None)
        page.on("pageerror", lambda e: WRONG.append(str(e)))
        page.on("dialog", lambda d: (WRONG.append(f"dialog {d.message}"), d.dismiss()))
        page.on("popup", lambda p: WRONG.append(f"popup {p.url}"))
        page.on("request", lambda r: WRONG.append(r.url) if _outside(r.url, path) else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    return open_page


def _outside(url, path):
    return url != path.as_uri() and not url.startswith(("data:", "blob:"))


@pytest.fixture(scope="session")
def wine(tmp_path_factory):
    path = tmp_path_factory.mktemp("wine") / "wine report.html"
    data = load_wine(as_frame=True)
    pca = PCA(5, scale=True).fit(data.data)
    names = data.target_names[data.target]
    ids = [f"bottle {i}" for i in range(178)]
    write_report(pca, data.data, path, labels=names, ids=ids, columns={"year": np.arange(178)})
    return path


@pytest.fixture(scope="session")
def shared(opened, wine):
    """A page that several tests share: to open one takes a second or two."""
    return opened(wine)


@pytest.fixture
def page(shared):
    for name, choice in (("across", "0"), ("up", "1"), ("colour", "0")):
        shared.select_option(f"#{name}", choice)
    shared.mouse.move(5, 5)
    return shared


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


def test_hover_tells_row_and_label(page):
    told = hover(page, trace=1, point=5)
    row = page.evaluate("document.getElementById('scatter').data[1].rows[5]")
    assert f"Row bottle {row}" in told
    assert page.evaluate("scatter.data[1].name") in told
    x = page.evaluate("document.getElementById('scatter').data[1].x[5]")
    assert f"{x:.4f}".replace("-", "−")[:-2] in told
    page.mouse.move(5, 5)
    page.wait_for_selector("#tip", state="hidden")


def test_axes_and_colours_are_chosen(page):
    data = load_wine().data
    scores = PCA(5, scale=True).fit_transform(data)
    page.select_option("#across", "2")
    page.select_option("#up", "3")
    assert page.evaluate(AXIS_TITLE).startswith("Component 3")
    at, x, y = page.evaluate("(({rows, x, y}) => [rows, [...x], [...y]])(scatter.data[0])")
    np.testing.assert_allclose(np.stack([x, y], 1), scores[at][:, 2:4], atol=1e-4)
    assert page.locator("#scatter .legend .traces").count() == 3
    page.select_option("#colour", label="year")
    assert page.evaluate("[...scatter.data[0].marker.color]") == list(range(178))
    assert page.locator("#scatter .colorbar").count() == 1
    assert "year" in hover(page)
    page.select_option("#colour", label="distance from the components")
    errors = PCA(5, scale=True).fit(data).reconstruction_error(data)
    found = page.evaluate("[...scatter.data[0].marker.color]")
    np.testing.assert_allclose(found, np.sqrt(errors), rtol=1e-4)
    page.select_option("#colour", label="nothing")
    assert page.evaluate("scatter.data.length") == 1


def test_small_classes_are_drawn_over_large_ones(opened, tmp_path):
    rows = np.random.default_rng(0).normal(size=(100, 3))
    names = np.array(["rare"] * 4 + ["usual"] * 90 + ["some"] * 6)
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html", labels=names)
    page = opened(tmp_path / "r.html")
    assert page.evaluate("scatter.data.map(t => t.name)") == ["usual", "some", "rare"]
    legend = "[...document.querySelectorAll('#scatter .legendtext')].map(t => t.textContent)"
    assert page.evaluate(legend) == ["rare", "some", "usual"]
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("labelled", [True, False])
def test_the_table_of_outliers_is_not_clipped(opened, tmp_path, width, labelled):
    rows = np.random.default_rng(0).standard_t(2, size=(100, 5))
    names = np.array(["malignant", "benign"])[np.arange(100) % 2] if labelled else None
    ids = [f"sample-{i:05d}-of-the-study" for i in range(100)]
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html", labels=names, ids=ids)
    page = opened(tmp_path / "r.html", viewport={"width": width, "height": 900})
    inside = "document.getElementById('furthest').parentElement"
    assert page.evaluate(f"{inside}.scrollWidth") <= page.evaluate(f"{inside}.clientWidth")
    page.close()


def test_long_numbers_that_name_rows_stay_on_one_line(opened, tmp_path):
    rows = np.random.default_rng(0).standard_t(2, size=(100, 5))
    ids = [10**17 + i for i in range(100)]
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html", ids=ids)
    page = opened(tmp_path / "r.html", viewport={"width": 390, "height": 844})
    lines = "[...document.querySelectorAll('#furthest th bdi')].map(e => e.getClientRects().length)"
    assert set(page.evaluate(lines)) == {1}
    page.close()


@pytest.mark.parametrize("k", [1, 3])
def test_letters_of_the_rules_are_not_under_the_buttons(opened, tmp_path, k):
    rows = np.random.default_rng(0).normal(size=(100, 5)) * [100, 1, 1, 1, 1]
    write_report(PCA(k).fit(rows), rows, tmp_path / "r.html")
    page = opened(tmp_path / "r.html")
    edges = page.evaluate(
        """[...document.querySelectorAll('#scree .annotation-text')].map(
            e => e.getBoundingClientRect().top)"""
    )
    below = "document.querySelector('#scree .modebar-group').getBoundingClientRect().bottom"
    assert edges
    assert min(edges) >= page.evaluate(below)
    page.close()


def test_headings_of_the_certificate_leave_no_blank_band_on_a_phone(opened, wine):
    page = opened(wine, viewport={"width": 390, "height": 844})
    head = "document.querySelector('#axes thead').getBoundingClientRect().height"
    row = "document.querySelector('#axes tbody tr').getBoundingClientRect().height"
    assert page.evaluate(head) <= 2.2 * page.evaluate(row)
    tiles = "[...document.querySelectorAll('.key div')].map(e => e.getBoundingClientRect().left)"
    left = page.evaluate(tiles)
    assert left.count(min(left)) == left.count(max(left)) == len(left) / 2
    page.close()


def test_dates_and_classes_of_none(opened, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]")
    days[7] = "NaT"
    names = np.array([["a", "b", None][i % 3] for i in range(60)], object)
    numbers = 123_456 + np.arange(60)
    path = tmp_path / "dates.html"
    columns = {"day": days, "number": numbers, "": numbers}
    write_report(PCA(2).fit(rows), rows, path, labels=names, columns=columns)
    page = opened(path)
    # Rows of no class are drawn first, below all others, and stand last in the legend.
    assert page.evaluate("scatter.data.map(t => t.name)") == ["missing", "a", "b"]
    legend = "[...document.querySelectorAll('#scatter .legendtext')].map(t => t.textContent)"
    assert page.evaluate(legend) == ["a", "b", "missing"]
    page.select_option("#colour", label="day")
    assert page.evaluate("scatter.data.map(t => t.x.length)") == [59, 1]
    ticks = page.evaluate("scatter.data[0].marker.colorbar.ticktext")
    assert [ticks[0], ticks[-1]] == ["2020-01-01", "2020-02-29"]
    assert "2020-01-01" in hover(page)
    page.select_option("#colour", label="number")
    assert "123456" in hover(page)
    assert "(empty)" in page.inner_text("#colour")
    page.close()


def test_many_axes_are_seen(opened, page, tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 60))
    write_report(PCA(50).fit(rows), rows, tmp_path / "many.html")
    many = opened(tmp_path / "many.html")
    assert many.evaluate("scree._fullLayout.yaxis.range[1]") < 0.06
    assert many.evaluate("scree._fullLayout.yaxis2.range[1]") > 0.9
    assert page.evaluate("scree._fullLayout.yaxis2") is None
    many.close()


def test_only_webgl_may_compile(opened, page, tmp_path):
    tried = "(() => { try { return Function('return 1')(); } catch { return 0; } })()"
    policy = "document.querySelector('meta[http-equiv]').content.includes('unsafe-eval')"
    assert not page.evaluate(policy)
    rows = np.random.default_rng(0).normal(size=(2001, 3))
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html")
    many = opened(tmp_path / "r.html")
    assert many.evaluate(policy)
    assert many.evaluate(tried) == 1
    assert many.evaluate("scatter.data[0].type") == "scattergl"
    many.close()


def test_a_phone_sees_legend_and_title_apart(opened, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    labels = [f"a class with a name {i % 18}" for i in range(200)]
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html", labels=labels)
    phone = opened(tmp_path / "r.html", viewport={"width": 360, "height": 740}, has_touch=True)
    box = "document.querySelector('#scatter %s').getBoundingClientRect().%s"
    assert phone.evaluate(box % (".g-xtitle", "bottom")) <= phone.evaluate(box % (".legend", "top"))
    box = "document.querySelector('#scree %s').getBoundingClientRect().%s"
    assert phone.evaluate(box % (".modebar", "bottom")) <= phone.evaluate(
        box % (".annotation", "top")
    )
    phone.close()


def test_zoom(page):
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
    page.select_option("#colour", label="year")  # another colour keeps the place
    assert page.evaluate("scatter._fullLayout.xaxis.range.slice()") == pytest.approx(after)


def test_no_button_sends_anything(page):
    label = "b => b.ariaLabel ?? b.dataset.title"  # plotly 6.0 has no labels yet
    titles = page.evaluate(f"[...document.querySelectorAll('.modebar-btn')].map({label})")
    assert {t.split()[0] for t in titles} == {"Download", "Zoom", "Pan", "Reset"}


def test_tables_sort(page):
    column = "[...document.querySelectorAll('#loadings tbody tr')].map(r => r.cells[%d].%s)"
    values = lambda j: [float(x) for x in page.evaluate(column % (j, "dataset.value"))]  # noqa: E731
    button = page.locator("#loadings thead button")
    button.nth(2).click()
    assert values(2) == sorted(values(2), reverse=True)
    button.nth(2).focus()
    page.keyboard.press("Enter")
    assert values(2) == sorted(values(2))
    assert page.locator("#loadings [aria-sort=ascending]").count() == 1
    button.nth(0).click()
    names = page.evaluate(column % (0, "textContent"))
    assert names == sorted(names)
    assert "alcohol" in names[1]


def test_light_and_dark(opened, wine, page):
    looks = "[getComputedStyle(document.body).backgroundColor, scatter._fullLayout.font.color]"
    light, dark = page, opened(wine, color_scheme="dark")
    by_day, by_night = light.evaluate(looks), dark.evaluate(looks)
    assert by_day[0] != by_night[0]
    assert by_day[1] != by_night[1]
    light.click("#theme")
    assert light.evaluate(looks) == by_night
    assert _contrasts(light) >= 4.5
    light.click("#theme")
    assert light.evaluate(looks) == by_day
    assert _contrasts(light) >= 4.5
    dark.close()


def _contrasts(page):
    """Return the least contrast of any text with the page behind it."""
    return page.evaluate("""() => {
      const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const parts = text => text.match(/[\\d.]+/g).map(Number);
      const behind = element => {
        for (let e = element; e; e = e.parentElement) {
          const colour = parts(getComputedStyle(e).backgroundColor);
          if (colour.length < 4 || colour[3] === 1) return colour;
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


def test_narrow(opened, wine):
    small = {"width": 360, "height": 740}
    page = opened(wine, viewport=small, has_touch=True, is_mobile=True)
    for width in (360, 320, 768):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_function("w => document.documentElement.scrollWidth <= w", arg=width)
        right = page.evaluate("""Math.max(...[...document.querySelectorAll("main *")]
          .filter(e => !e.closest(".scroll, svg, pre, .plotly"))
          .map(e => e.getBoundingClientRect().right))""")
        assert right <= width + 1
    page.tap("#theme")
    page.close()


def test_nasty_texts_stay_text(opened, tmp_path):
    rng = np.random.default_rng(0)
    n, d = 5 * len(NASTY), len(NASTY)
    rows = as_source(rng.normal(size=(n, d)))
    rows.names = NASTY
    pca = PCA(3).fit(rows)
    turned = [[NASTY[(i + s) % d] for i in range(n)] for s in range(3)]
    path = tmp_path / "nasty.html"
    write_report(
        pca,
        rows,
        path,
        labels=turned[0],
        ids=turned[1],
        columns=dict.fromkeys(NASTY, turned[2]),
        title="".join(NASTY),
        origin={"command": NASTY[1] + NASTY[9], "file": NASTY[0], **dict(zip(NASTY, NASTY))},  # noqa: B905
    )
    page = opened(path, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1200, "height": 900})
    colours = page.locator("#colour option").count()
    for i in range(0, colours, 3):
        page.select_option("#colour", str(i))
    page.select_option("#colour", "0")
    for trace in range(0, page.evaluate("scatter.data.length"), 4):
        row = page.evaluate(f"scatter.data[{trace}].rows[0]")
        assert len(hover(page, trace)) < 1000, row
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator("main b, main a[href*='javascript'], svg a, main img, #tip img").count() == 0
    )
    assert page.evaluate("document.scripts.length") == 4
    assert NASTY[0] in page.locator("#loadings").text_content()
    assert "<b>bold</b>" in page.locator("#scatter .legend").text_content()
    assert page.title().startswith(NASTY[0])


def test_strings_along_one_axis(opened, tmp_path):
    words = ["abba", "abab", "baba", "bbbb", "aaaa", "abc", "<i>cab</i>"]
    write_report(KernelPCA(1, kernel=Substring(2)).fit(words), words, tmp_path / "w.html")
    page = opened(tmp_path / "w.html")
    assert "<i>cab</i>" in hover(page, point=6)
    assert "Distance" in page.evaluate("scatter.layout.yaxis.title.text")


def test_pictures_in_the_hover(opened, tmp_path):
    digits = load_digits()
    pca = PCA(4).fit(digits.data)
    write_report(pca, digits.data[:50], tmp_path / "d.html", image_shape=(8, 8))
    page = opened(tmp_path / "d.html")
    hover(page, point=7)
    pixels = page.evaluate(
        "[...document.querySelector('#tip canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    row = page.evaluate("scatter.data[0].rows[7]")
    np.testing.assert_array_equal(pixels[::4], np.round(digits.data[row] / 16 * 255))


def test_many_rows(opened, tmp_path, record_property):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 5, 100_000)
    rows = rng.normal(size=(100_000, 20)) + 3 * rng.normal(size=(5, 20))[kind]
    pca = PCA(10).fit(rows)
    path = tmp_path / "many.html"
    start = time.perf_counter()
    write_report(pca, rows, path, labels=kind)
    written = time.perf_counter() - start
    start = time.perf_counter()
    page = opened(path)
    first = time.perf_counter() - start
    assert "20 000 of 100 000 rows are drawn" in page.inner_text("#scores").replace("\u202f", " ")
    assert page.evaluate("scatter.data.reduce((n, t) => n + t.x.length, 0)") == 20_000
    assert page.evaluate("scatter.data[0].type") == "scattergl"
    switched = page.evaluate("""() => {
      const start = performance.now();
      document.getElementById("across").value = 4;
      document.getElementById("across").dispatchEvent(new Event("change"));
      return performance.now() - start;
    }""")
    assert page.evaluate(AXIS_TITLE).startswith("Component 5")
    assert path.stat().st_size < 8e6
    figures = {"bytes": path.stat().st_size, "write_s": written, "open_s": first}
    for name, value in {**figures, "switch_s": switched / 1000}.items():
        record_property(name, round(value, 3))
        print(name, round(value, 3))


def test_without_webgl(browser, tmp_path):
    rows = np.random.default_rng(0).normal(size=(9000, 4))
    write_report(PCA(2).fit(rows), rows, tmp_path / "r.html")
    page = browser.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto((tmp_path / "r.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("scatter.data[0].type") == "scatter"
    assert page.evaluate("scatter.data[0].x.length") == 5000
    assert "no WebGL" in page.inner_text("#fallback")
    # Nor does any script run that was not there when the page was written.
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.head.append(script);
      document.body.insertAdjacentHTML("beforeend", "<p id=late onclick='window.hacked = 2'>.</p>");
      document.getElementById("late").click();
    }""")
    assert page.evaluate("window.hacked") is None
    page.close()
