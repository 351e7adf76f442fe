"""Results of the sources in their quick form: they run, and say something sensible."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from mercer import KernelPCA, SubspaceClassifier
from mercer.kernels import RBF
from mercer.linalg import DenseOperator
from mercer.linalg.solvers import power as power_iteration
from papers import (
    basis_size,
    mnist_times,
    openml,
    page,
    power,
    results,
    segmentation,
    spectra,
    usps,
)
from papers.__main__ import NAMES, main, summary
from papers.data import load
from papers.results import Line, Result
from papers.shapes import beans, clusters, one_cut, rings, waves
from tests.papers_quick import offline, quick  # noqa: F401 (a fixture)


def figures(name):
    """Return what a quick run found."""
    return {what: line.ours for what, line in quick(name).items()}


PLAIN = ("cassini", "clusters", "ellipse", "genotypes", "moons", "portraits", "power", "rings")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PLAIN, "relative_error"])
def test_figures_without_numbers_show_what_their_text_says(name):
    lines = quick(name).values()
    assert sum(line.met is not None for line in lines) >= 2
    assert not [line.cells() for line in lines if line.met is False]


def in_eigenvectors(values, starts, steps):
    """Return 1 − |y_kᵀv₁| of power iteration where AᵀA is diagonal, v₁ the last unit vector."""
    y, errors = starts, []
    for _ in range(steps):
        y = values[:, None] * y
        y /= np.linalg.norm(y, axis=0)
        errors.append((y[:-1] ** 2).sum(axis=0) / (1 + np.abs(y[-1])))
    return np.array(errors)


def test_products_with_the_matrix_are_those_of_its_eigenvalues():
    A = np.random.default_rng(3).normal(size=(60, 25))
    for matrix in (A, power.worst(0.7, 25)):
        runs = power.iterated(matrix, 40)
        values, vectors = np.linalg.eigh(matrix.T @ matrix)
        starts = vectors.T @ np.random.default_rng(0).standard_normal((25, 40))
        expected = in_eigenvectors(values, starts, len(runs.errors))
        np.testing.assert_allclose(runs.errors, expected, rtol=1e-6)
        np.testing.assert_allclose(runs.values, values[::-1], rtol=1e-12)
    np.testing.assert_allclose(runs.values, np.r_[1.0, np.full(24, 0.7)], rtol=1e-12)


def test_the_iterates_are_those_of_the_library():
    """Every product that the library's power iteration makes is with the next of our iterates."""

    class PastRows(DenseOperator):
        def matmat(self, V):
            seen.append(V)
            return super().matmat(V)

    seen = []
    A = power.worst(0.8, 30)
    found = power_iteration(PastRows(A.T @ A), 1, tol=1e-9, rng=np.random.default_rng(0))
    errors = power.iterated(A, 1).errors[:, 0]
    theirs = [power.away(y, found.vectors[:, 0])[0] for y in seen[1:]]
    np.testing.assert_allclose(theirs[:30], errors[:30], rtol=1e-6)


@pytest.mark.slow
def test_novelty():
    found = figures("novelty")
    linear = max(area for what, area in found.items() if what.startswith("linear PCA"))
    for what in ("kernel PCA, γ and k chosen", "kernel PCA, default"):
        assert found[what] >= max(0.98, linear)


@pytest.mark.slow
def test_eigenfaces():
    found = figures("eigenfaces")
    assert found["linear PCA, 40 axes"] > found["linear PCA, 10 axes"] > 80
    assert found["linear PCA, 40 axes"] > found["1-NN of the pixels"] - 5
    assert found["kernel PCA, k chosen"] > 85


@pytest.mark.slow
def test_lsa():
    found = quick("lsa")
    assert found["tf-idf of key words: variance, percent"].met
    assert found["shares of key words: variance, percent"].met
    # Of shares, so few documents and axes are no gain.
    assert found["tf-idf of key words, 20 axes, mercer.PCA: average precision"].met


def test_the_picture_of_documents_has_curves_of_both_weights():
    lsa = pytest.importorskip("papers.lsa")
    figure = Figure()
    _, ax = figure.subfigures(2, 1)[0].subplots(1, 2)
    for style in ("-", "-", "--"):
        ax.plot([1, 2, 3], [0.9, 0.8, 0.7], style)
    ways = ("shares", "2 axes, PCA", "2 axes, SVD")
    found = [SimpleNamespace(what=what, precision=np.full(3, 0.5)) for what in ways]
    lsa.add_curves(figure, found)
    curves = [line for line in ax.lines if len(line.get_xdata())]
    assert [line.get_linestyle() for line in curves] == ["-"] * 3 + ["--"] * 3
    assert all((line.get_ydata() == 0.5).all() for line in curves[3:])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words[:3] == ["key words", "2 axes, PCA", "2 axes, SVD"]
    assert words[3:] == ["tf-idf", "relative frequencies"]


@pytest.mark.slow
def test_segmentation():
    errors = figures("segmentation")
    assert errors["linear, all 14 axes"] < 0.08
    assert errors["Laplace, all 697 axes"] < errors["linear, all 14 axes"]
    assert errors["without copies: Laplace, all 617 axes"] < 0.05
    assert errors["RBF, 50 axes"] > 0.4


@pytest.mark.slow
def test_segmentation_of_all_rows():
    """Two lines of Table I that take no time, and rows that are tested with and not learned."""
    try:
        split = segmentation.rows()
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    found = {
        name: segmentation.extracted(split, segmentation.KERNELS[name][0])
        for name in ("linear", "polynomial")
    }
    assert found["linear"].error(found["linear"].axes) == pytest.approx(0.0380, abs=2e-4)
    assert found["polynomial"].error(50) == pytest.approx(0.0238, abs=1e-4)
    apart = split.without_copies()
    assert len(apart.X) == 1888
    both = np.concatenate([np.unique(apart.X, axis=0), np.unique(apart.X_test, axis=0)])
    assert len(np.unique(both, axis=0)) == len(both)


def test_plane():
    found = quick("plane")
    for name in ("parabola", "normal"):
        for rule in ("random", "k-means", "forward"):
            for what in ("E / full's", "D²/r"):
                ours = found[f"{name}, {rule}: SubKp, {what}"].ours
                others = ("RKp", "IKp", "Nyström")
                assert ours < min(found[f"{name}, {rule}: {way}, {what}"].ours for way in others)
            assert found[f"{name}, {rule}: SubKp, E / full's"].ours >= 1
        # 1 − 2r/n of what is there, whatever the basis.
        improved = found[f"{name}, random: IKp, E / full's"].ours
        assert improved == pytest.approx(found[f"{name}, forward: IKp, E / full's"].ours, rel=1e-3)


@pytest.mark.slow
def test_basis_size():
    found = figures("basis_size")
    for name in ("concrete", "housing"):
        for rule in ("random", "k-means", "forward"):
            for what in ("D²/r", "E / full's", "E_val"):
                ours, theirs = (
                    found[f"{name}, a tenth, {rule}: {way}, {what}"] for way in ("SubKp", "RKp")
                )
                assert 0 < ours < theirs
            least = found[f"{name}, a tenth, {rule}: the least, D²/r"]
            assert 0 < 2 * least <= found[f"{name}, a tenth, {rule}: SubKp, D²/r"] * (1 + 1e-9)
        assert (
            found[f"{name}, a tenth, k-means: SubKp, D²/r"]
            < found[f"{name}, a tenth, random: SubKp, D²/r"]
        )
        assert found[f"{name}, milliseconds: SubKp, 10 %"] > 0


def test_what_of_the_axes_lies_outside_the_span_of_a_basis():
    rows, r, kernel = np.random.default_rng(0).normal(size=(60, 3)), 4, RBF(0.3)
    K = kernel(rows, rows)
    values, vectors = scipy.linalg.eigh(K)
    axes = vectors[:, -r:] / np.sqrt(values[-r:])
    within = scipy.linalg.cholesky(K[:12, :12], lower=True)
    seen = scipy.linalg.solve_triangular(within, K[:12] @ axes, lower=True)
    exact = KernelPCA(r, kernel=kernel, center=False).fit(rows)
    repeated = np.concatenate([rows[:12], rows[:3]])
    for basis in (rows[:12], repeated):
        found = basis_size.outside(kernel, basis, exact)
        np.testing.assert_allclose(found[::-1], 1 - np.sum(seen**2, axis=0), rtol=1e-8)


def test_a_crossing_is_interpolated():
    timed = {"full, dsyevx": [(100, 3.0)], "SubKp, dsygvx": [(10, 1.0), (50, 2.0), (60, 4.0)]}
    assert basis_size.crossing("x", timed) == "on x SubKp is the quicker up to 55 %"
    assert "do not cross" in basis_size.crossing("x", timed | {"full, dsyevx": [(100, 9.0)]})


@pytest.mark.slow
def test_runtimes():
    found = figures("runtimes")
    for name in ("concrete", "housing"):
        assert found[f"{name}: ICD, 20 points: D²/r"] < found[f"{name}: ICD, 8 points: D²/r"]
        passes = [found[f"{name}: KHA-SMD, {n} passes: D²/r"] for n in (2, 32, 128)]
        assert passes == sorted(passes, reverse=True)
        assert passes[-1] < 1e-3


def test_labels_of_the_times_do_not_lie_on_each_other():
    found = {
        "SubKp, random": [mnist_times.Fit(m, s, 4.6e-5, 4.5e-5) for m, s in ((700, 1), (1000, 5))],
        "SubKp, k-means": [mnist_times.Fit(700, 4.5, 4.6e-5, 4.5e-5)],
        "ICD": [mnist_times.Fit(200, 9, 9.7e-5, 4.5e-5)],
    }
    drawn = mnist_times.figure(found)
    drawn.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.axes[0].texts]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.slow
def test_mnist_times():
    found = figures("mnist_times")
    for name in ("SubKp, random", "ICD", "SubKp, k-means"):
        few, more = (found[f"{name}, {m} points: E_emp · 10⁵"] for m in (150, 300))
        assert more < few
    ours, reduced = (found[f"{name}, random, 300 points: E_emp · 10⁵"] for name in ("SubKp", "RKp"))
    assert ours < reduced
    whole, pivots = (
        found[f"ICD over {words}, 200 pivots, the first 1200 images: E_emp · 10⁵"]
        for words in ("all rows", "its pivots")
    )
    assert whole < pivots


@pytest.mark.slow
def test_usps():
    errors = figures("usps")
    every = errors["Table 5, 6: test, kernel CLAFIC (c), all rows"]
    few = errors["Table 5: test, SubKp (c), 10%, random"]
    assert every < errors["Table 6: test, SubKp (c), 10%, k-means centres"] < few
    assert every < 15
    assert errors["Table 3, 4: validation, kernel CLAFIC (c), all rows"] < 15


def test_usps_tables_have_every_cell():
    told = {(*way.printed(test), test) for way in usps.WAYS for test in (False, True)}
    cells = [cell for row in usps.PRINTED.values() for cell in row.split(", ") if cell != "–"]
    there = [
        cell.split(" (")[0]
        for tables, printed, _ in told
        if tables
        for cell in printed.split(" / ")
    ]
    assert set(cells) <= set(there)
    random, centres = (
        next(way for way in usps.WAYS if way.name == f"RKp (c), 30%, {words}")
        for words in ("random", "k-means centres")
    )
    assert random.printed(test=False) == ("3", "3.16 ± 0.70")
    assert centres.printed(test=True) == ("6", "5.07 ± 0.17")
    linear = next(way for way in usps.WAYS if way.name == "CLAFIC (c), all rows")
    assert linear.printed(test=False) == ("3, 4", "3.06 ± 0.74 (Table 3)")


def test_usps_differences_from_printed():
    way = next(way for way in usps.WAYS if way.name == "RKp (c), 30%, random")  # 3.16 ± 0.70
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(25)
    spread = (noise - noise.mean()) / noise.std(ddof=1)  # a standard error of 0.2 of ours
    for apart, close in ((0.4, True), (0.45, False), (-0.45, False)):
        ((gap, near, name),) = usps.differences({way: 3.16 + apart + spread})
        assert (round(gap, 9), near, name) == (apart, close, way.name)


def test_usps_reports_more_splits_than_it_chooses_on(monkeypatch):
    """What is best on the first splits is chosen, and what it makes of all of them is told."""

    def curve(way, exponent, digits, split):
        errors = np.full(len(usps.AXES), 10.0)
        errors[3 if split < 3 else 5] = 2.0 + split - exponent
        return errors

    monkeypatch.setattr(usps, "held_out", curve)
    choice = usps.chosen(usps.ALL[0], None, quick=False)
    assert (choice.exponent, choice.axes) == (-1.0, 40)
    assert len(choice.errors) == 25
    np.testing.assert_allclose(choice.errors, [3.0, 4.0, 5.0] + [10.0] * 22)


def test_fewer_axes_from_one_fit():
    X, y = load_digits(return_X_y=True)

    def fitted(k):
        return SubspaceClassifier(KernelPCA(k, kernel=RBF(1e-3))).fit(X[:600], y[:600])

    left = usps.all_residuals(fitted(40), X[:50])
    for r in (10, 30):
        found = left[:, :, usps.AXES.index(r)]
        np.testing.assert_allclose(found, fitted(r).reconstruction_error(X[:50]), atol=1e-7)


@pytest.mark.slow
def test_denoising():
    errors = figures("denoising")
    for noise, before in (("σ = 50", 19.6), ("p = 0.2", 40.0)):
        for basis in ("centroids", "nearest"):
            subset, reduced = (errors[f"{noise}: {way} (60), {basis}"] for way in ("SubKp", "RKp"))
            assert subset < 1.01 * reduced < before
        assert errors[f"{noise}: Wiener"] < errors[f"{noise}: linear PCA"] < before


def test_what_must_be_is_judged():
    assert Line("a", 1.0).met is None
    assert Line("a", 1.0, most=1.0, least=0.5).met is True
    assert Line("a", 1.1, most=1.0).met is False
    assert Line("a", 0.4, least=0.5).met is False
    assert Line("a", float("nan"), most=1.0).met is False
    assert not Result("title", [Line("a", 1.0), Line("b", 2.0, most=1.0)], seeds="none").met
    assert Line("a", 1.0, most=1 + 1e-9, least=1 - 1e-9, form=".6f").cells()[3] == "= 1.000000"
    assert Line("a", 2.0, "1.9", most=2.5, spread=0.1).cells()[1:4] == (
        "1.9",
        "2.00 ± 0.10",
        "≤ 2.50",
    )


def test_bars_within_a_cell_do_not_begin_another():
    result = Result("title", [Line("mean |b|", 1.0)], seeds="none")
    assert "| mean \\|b\\| |" in result.table(markdown=True)
    assert "mean |b|" in result.table()


def test_one_cut():
    inside = np.array([True, False, True, True])
    assert one_cut(np.array([1.0, 2.0, 3.0, 4.0]), inside) == 0.75
    assert one_cut(np.array([4.0, 1.0, 2.0, 3.0]), inside) == 1.0
    assert one_cut(np.array([3.0, 4.0, 2.0, 1.0]), inside) == 1.0


def test_points_of_the_plane_are_what_they_say():
    rng = np.random.default_rng(0)
    X, cluster = clusters(rng, 3000)
    centres = np.array([X[cluster == i].mean(axis=0) for i in range(3)])
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 4, atol=0.1)
    np.testing.assert_allclose(X[cluster == 1].std(axis=0), 0.8, atol=0.05)
    X, body = beans(rng, 1000)
    assert [int((body == name).sum()) for name in ("upper bean", "lower bean", "disc")] == [
        400,
        400,
        200,
    ]
    assert np.linalg.norm(X[body == "disc"], axis=1).max() <= 0.6
    X, moon = waves(rng, 100, 0.0)
    x, y = X[moon == "cosine"].T
    np.testing.assert_allclose(y, np.cos(x))
    X, ring = rings(rng, 90, (1.0, 3.0), 0.0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), np.where(ring == 0, 1.0, 3.0))


FIGURES = """| what | printed | ours | must | met | note |
| ---- | ------- | ---- | ---- | --- | ---- |
| a | 2.00 ± 0.10 | 2.05 ± 0.30 | ≤ 3 | yes | |
| b | 1e-05 | 9.6e-06 | – | – | |
| c | 10 | 12 | ≤ 11 | NO  | |
| d | < 0.01 | 0.009 | – | – | |
| e | – | 7 | – | – | |"""


def test_the_contents_lead_from_source_to_part_and_picture():
    text = ""
    for name, title, verdicts in (
        ("b", "Later, in two parts (worrell §4.2)", FIGURES),
        ("a", "First of all: rates (aguilera Fig. 10)", ""),
        ("c", "Second (aguilera Fig. 9)", "| yes |"),
        ("d", "Without a place", ""),
    ):
        made = f"![{name}](images/{name}.png)\n\n`{name}`: 2 cores, 90 s. Seeds: 0."
        part = f"## {name}\n\n{title}\n\n{verdicts}\n\n{made}"
        text = page.put(text, name, part)
    lines = [
        line.split(" | ") for line in text.splitlines() if line.startswith("| ") and "](#" in line
    ]
    assert [line[2] for line in lines] == ["[c](#c)", "[a](#a)", "[b](#b)", "[d](#d)"]
    assert lines[1][:2] == ["| aguilera", "Fig. 10"]
    assert lines[1][3] == "First of all"
    assert lines[2][4:7] == ["2 of 3", "1 of 2", "90"]
    assert lines[0][4] == "–"
    assert 'src="images/b.png"' in lines[2][7]
    assert "All of them took 6 minutes." in text
    assert "**worrell**" in text
    assert "**marukatat**" not in text
    assert [part.name for part in page.parsed(text)] == ["c", "a", "b", "d"]


def test_what_the_text_tells_of_is_a_no_and_no_failure():
    as_printed = Line("a", 2.0, "< 1", most=1.0)
    told = Line("b", 2.0, "< 1", most=1.0, departs=True)
    assert told.cells()[4] == as_printed.cells()[4] == "NO"
    kept = Line("c", 0.5, most=1.0)
    assert not Result("", [as_printed, kept], seeds="").met
    result = Result("", [told, kept, Line("d", 1.0)], seeds="")
    assert result.met
    assert summary([result], ["e"], 90).splitlines()[1:] == [
        "results: 1 in 1.5 minutes, 1 of 2 bounds met",
        "  not met, explained: b",
        "  skipped, as there are no data: e",
    ]


def test_the_page_is_what_its_parts_say():
    """The contents were not changed by hand, and every part has its picture and its facts."""
    text = results.PAGE.read_text(encoding="utf-8")
    parts = page.parsed(text)
    assert page.whole(parts) == text, "python -m papers --contents writes them anew"
    assert {part.name for part in parts} == set(NAMES)
    for part in parts:
        assert (results.HERE / "images" / f"{part.name}.png").stat().st_size < 300_000
        assert f"`python -m papers {part.name}`, 20" in part.text
        assert "Seeds: " in part.text.splitlines()[-1]
        assert part.place[0], part.title


def test_the_page_begins_with_the_first_figure_of_the_first_source():
    """By the numbers of the place: Fig. 1 comes before Fig. 2, and what is not of the five last."""
    places = [part.place for part in page.parsed(results.PAGE.read_text(encoding="utf-8"))]
    assert places[0] == ("marukatat", "Fig. 1, Table 2")
    assert places[-1] == ("Hoffmann", "2007")
    sources = [source for source, _ in places]
    assert sources == sorted(sources, key=list(page.SOURCES).index)


def test_a_result_says_what_it_drew_and_keeps_its_paragraphs():
    with pytest.raises(TypeError, match="seeds"):
        Result("title", [])
    result = Result("title", [], text="One\nline.\n\nAnother\none. ", seeds=results.NONE)
    assert result.text == "One line.\n\nAnother one."


def test_threads_are_those_of_products():
    pools = [{"user_api": "openmp", "num_threads": 8}, {"user_api": "blas", "num_threads": 2}]
    assert results.threads(pools) == "2 BLAS threads, "
    assert results.threads(pools[:1]) == ""


def test_the_page_keeps_each_result_once(tmp_path):
    kept = tmp_path / "RESULTS.md"
    for name, figure in (("b", 1.0), ("a", 2.0), ("b", 3.0)):
        result = Result(f"title of {name}", [Line("x", figure)], seeds=f"rows {figure:.0f}")
        results.keep(name, result, 1.0, kept)
    text = kept.read_text()
    assert text.count("## a\n") == text.count("## b\n") == 1
    assert text.index("## a") < text.index("## b")
    assert "| 3.00 |" in text
    assert "| 1.00 |" not in text
    assert text.startswith("# Results of the sources")
    assert "Seeds: rows 3." in text


def test_what_is_named_and_has_no_data_is_no_success(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    assert main(["segmentation", "--quick"]) == 1
    assert "segmentation: skipped" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "number"), [("basis_size", 4353), ("runtimes", 4353)])
def test_tables_that_are_not_there_are_asked_of_openml(monkeypatch, tmp_path, capsys, name, number):
    def fails(number):
        raise OSError("no network")

    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    monkeypatch.setattr(openml, "_table", fails)
    load.cache_clear()
    assert main([name, "--quick"]) == 1
    printed = capsys.readouterr().out
    assert f"fetching data set {number} of OpenML" in printed
    assert "no network); go online, or set MERCER_DATA" in printed


def test_a_file_that_cannot_be_read_stops_its_own_results_only(monkeypatch, tmp_path, capsys):
    np.savez(tmp_path / "whole.npz", X=np.zeros((100, 100)))
    (tmp_path / "orl_faces.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:5000])
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    assert main(["grouping", "rings", "--quick"]) == 1
    printed = capsys.readouterr().out
    assert "grouping: skipped" in printed
    assert "orl_faces.npz cannot be read" in printed
    assert "Rings" in printed


def test_the_contents_take_no_names(capsys):
    with pytest.raises(SystemExit):
        main(["rings", "--contents"])
    assert "takes no names" in capsys.readouterr().err


def test_what_has_no_file_comes_from_openml(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    table = np.arange(506.0 * 14).reshape(506, 14)
    monkeypatch.setattr(openml, "_table", {531: table}.__getitem__)
    found = load("boston_housing")
    np.testing.assert_array_equal(found["X"], table[:, :13])
    np.testing.assert_array_equal(found["y"], table[:, 13])
    assert "fetching data set 531 of OpenML" in capsys.readouterr().out
    load.cache_clear()


@pytest.mark.slow
def test_cifar_from_openml_is_its_training_images(monkeypatch, tmp_path):
    """60 000 are stored, the last 10 000 to test with; a quick run does not fetch them."""
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    table = np.broadcast_to(np.repeat([1, 2, 3], 1024).astype(np.uint8), (60_000, 3072))
    asked = []

    def given(number):
        asked.append(number)
        return np.column_stack([table, np.arange(60_000) % 10]).astype(np.uint8)

    monkeypatch.setattr(openml, "_table", given)
    with pytest.raises(FileNotFoundError):
        spectra.cifar(quick=True)
    assert not asked
    X, y, whole = spectra.cifar()
    load.cache_clear()
    assert whole
    assert X.shape == (50_000, 3072)
    assert X[7, :6].tolist() == [1, 2, 3, 1, 2, 3]
    assert y[7] == 7


def test_openml_in_another_shape_or_order_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    tables = {531: np.zeros((505, 14)), 298: np.zeros((9822, 86))}
    monkeypatch.setattr(openml, "_table", tables.__getitem__)
    with pytest.raises(FileNotFoundError, match=r"\(505, 14\) rows and columns, not \(506, 14\)"):
        load("boston_housing")
    with pytest.raises(FileNotFoundError, match="rows are in another order"):
        load("tic")


def test_offline_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz is not in MERCER_DATA.*go online, or"):
        load("mnist")
    with pytest.raises(FileNotFoundError, match="OpenML has no such copy of it"):
        load("orl_faces")


def test_openml_columns_become_numbers():
    """Categories that are numbers keep their values; others are numbered, missing ones are NaN."""
    pandas = pytest.importorskip("pandas")
    columns = {
        "plain": [1.5, 2.5, 3.5],
        "rad": pandas.Categorical(["24", "1", "2"]),
        "class": pandas.Categorical(["malignant", "benign", None]),
    }
    found = [openml._numbers(column) for _, column in pandas.DataFrame(columns).items()]
    np.testing.assert_array_equal(found, [[1.5, 2.5, 3.5], [24, 1, 2], [1, 0, np.nan]])


def test_the_command_names_what_there_is(capsys):
    assert {"novelty", "eigenfaces", "lsa", "segmentation", "plane"} <= set(NAMES)
    with pytest.raises(SystemExit, match="2"):
        main(["nothing"])
    assert "nothing" in capsys.readouterr().err
