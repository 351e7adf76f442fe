"""The picture of a report in the documentation, taken in a browser.

Run with ``make images``; the file goes beside this script. It needs playwright and Chromium, and
leaves the picture as it is where they are absent.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_wine

from mercer import PCA
from mercer.report import write_report

HERE = Path(__file__).parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1180, "height": 1324}
FURTHEST = 158
# Where the point of a row lies on the screen.
PLACE = """(row) => {
  const plot = document.getElementById("scatter"), { xaxis, yaxis } = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  const { x, y, rows } = plot.data.find((trace) => trace.rows.includes(row));
  const i = rows.indexOf(row);
  return [box.left + xaxis._offset + xaxis.l2p(x[i]), box.top + yaxis._offset + yaxis.l2p(y[i])];
}"""


def main() -> None:
    """Write a report of scikit-learn's wines, open it and take its picture."""
    path = HERE / "report.png"
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        print(f"{path}: left as it is, there is no playwright or no Chromium")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        report = Path(folder) / "wine.html"
        write(report)
        page = p.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport=SIZE, device_scale_factor=2, color_scheme="light"
        )
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.mouse.move(*page.evaluate(PLACE, FURTHEST))
        page.wait_for_selector("#tip:not([hidden])")
        picture = page.screenshot()
    colours = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def write(path: Path) -> None:
    """Write a report of 178 wines of three cultivars, by 13 measurements."""
    wine = load_wine(as_frame=True)
    cultivars = [f"cultivar {i + 1}" for i in wine.target]
    title = "178 wines from three cultivars, by 13 measurements"
    pca = PCA(0.8, scale=True, random_state=0).fit(wine.data)
    write_report(path, pca, wine.data, labels=cultivars, title=title)


if __name__ == "__main__":
    main()
