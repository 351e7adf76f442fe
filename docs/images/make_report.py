"""The picture of a report in the documentation, taken in a browser.

Run with ``make images``; the file goes beside this script. It needs playwright and Chromium, and
leaves the picture as it is where they are absent.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_wine

HERE = Path(__file__).parent
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1180, "height": 1324}
POINTED_AT = 158
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
        report = write(Path(folder))
        page = p.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport=SIZE, device_scale_factor=2, color_scheme="light"
        )
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.mouse.move(*page.evaluate(PLACE, POINTED_AT))
        page.wait_for_selector("#tip:not([hidden])")
        picture = page.screenshot()
    colours = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def write(folder: Path) -> Path:
    """Run the command that the README begins with, on scikit-learn's wines."""
    wine = load_wine(as_frame=True)
    rows = wine.data.assign(cultivar=[f"cultivar {i + 1}" for i in wine.target])
    rows.to_csv(folder / "wine.csv", index=False)
    command = "fit wine.csv --label cultivar --scale zscore -o wine.mercer --report wine.html"
    subprocess.run([sys.executable, "-m", "mercer", *command.split()], cwd=folder, check=True)
    return folder / "wine.html"


if __name__ == "__main__":
    main()
