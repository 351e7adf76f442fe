"""One function per promise of a fitted model: each yields what it looked at, and what is false."""

import math
import re
from typing import NamedTuple

import numpy as np

from mercer import ConvergenceWarning
from mercer.kernels.points import Points
from mercer.messages import ParameterError
from tests.truth import oracle
from tests.truth.oracle import EPS64, LD


class Look(NamedTuple):
    """One look at one promise.

    `wrong` says what is false, None where the promise holds; `sure` is False of promises that
    hold with a probability of 0.999 only.
    """

    check: str
    wrong: str | None = None
    sure: bool = True


class Fitted(NamedTuple):
    """A fitted model beside the truth about its data."""

    model: object
    data: object
    truth: object
    axes: object
    warned: list

    @property
    def certificate(self):
        return self.model.estimator.certificate_

    @property
    def estimator(self):
        return self.model.estimator

    @property
    def k(self):
        return len(self.certificate.eigenvalues)

    @property
    def eps(self):
        """A rounding in the precision of the data."""
        kind = self.data.rows.dtype if isinstance(self.data.rows, np.ndarray) else np.float64
        return float(np.finfo(kind).eps) if np.dtype(kind).kind == "f" else EPS64


def look(check, holds, text, sure=True):
    """Return a look whose text is made only where the promise is broken."""
    return Look(check, None if holds else text(), sure)


def sure_of(figure):
    return figure.confidence >= 1.0


# What is held, and what can be.


def shares(fitted):
    """`captured` and `optimum_upper` against the shares of the total variance."""
    found, truth = fitted.certificate, fitted.truth
    captured, upper, k = found.captured, found.optimum_upper, fitted.k
    total = truth.total
    blur = truth.error / abs(total) if total != 0 else LD(np.inf)
    if not blur < 0.02:  # the data have no variance that longdouble can tell from rounding
        return
    best = truth.spectrum.top(k) / total
    slack = 1e-12 + blur * 4 + k * truth.spectrum.slack / abs(total)
    if truth.psd:
        best = min(best, LD(1))
    if total <= 0:
        yield from variances_apart(fitted)
        return
    if upper.kind == "bound":
        text = lambda: f"optimum_upper={upper!r} < {_f(best)}"  # noqa: E731
        yield look("optimum", upper >= best - slack, text, sure_of(upper))
    if captured.kind == "bound":
        held, more = held_by(fitted)
        share = held / total
        allowed = slack + more / abs(total)
        if not allowed < 1e-6:  # components so dependent that longdouble cannot tell
            return
        text = lambda: f"captured={captured!r} > {_f(share)}; the best is {_f(best)}"  # noqa: E731
        yield look("captured", captured <= share + allowed, text, sure_of(captured))
        gap = found.gap
        true_gap = 1 - share / best if best > 0 else LD(0)
        text = lambda: f"gap={gap!r} < {_f(true_gap)}"  # noqa: E731
        if gap.kind == "bound" and best > 0:
            yield look("gap", gap >= true_gap - 2 * allowed / best, text, sure_of(gap))
        asked, wanted = fitted.estimator.n_components, fitted.estimator.gap
        if wanted is not None and isinstance(asked, int) and k < asked and not fitted.model.batch:
            most = truth.spectrum.top(min(asked, len(truth.spectrum.values))) / total
            near = share >= (1 - wanted) * (min(most, LD(1)) if truth.psd else most) - allowed
            text = lambda: f"{k} components, not {asked}, hold {_f(share)} of {_f(most)}"  # noqa: E731
            yield look("promised gap", near or has_warned(fitted), text, sure_of(captured))


def variances_apart(fitted):
    """The gap of an indefinite kernel whose eigenvalues add up to nothing: no shares, variances."""
    gap, truth, k = fitted.certificate.gap, fitted.truth, fitted.k
    if truth.psd or gap.kind != "bound" or not isinstance(fitted.axes, oracle.Axes) or not k:
        return
    held, more = held_by(fitted)
    best = truth.spectrum.top(k)
    slack = (more + k * truth.spectrum.slack) / best if best > 0 else LD(np.inf)
    if slack < 0.01:
        text = lambda: f"gap={gap!r} < {_f(1 - held / best)}"  # noqa: E731
        yield look("gap", gap >= 1 - held / best - 1e-9 - 4 * slack, text, sure_of(gap))


def held_by(fitted):
    """Variance in the span of the components, and the slack of it."""
    truth, axes = fitted.truth, fitted.axes
    if isinstance(truth, oracle.Linear):
        return truth.held(fitted.estimator.components_)
    if not isinstance(axes, oracle.Axes):  # scores of random features
        return truth.held_by_vectors(axes)
    if truth.psd:
        return axes.held
    return truth.quotients(vectors(axes, fitted.data.weights)), truth.error


def vectors(axes, weights=None):
    """The coefficients over rows of some weight, divided by its root: eigenvectors; or None."""
    root, unit = axes.truth.root[:, None], axes.unit
    if weights is not None and len(root) < len(unit) == len(weights):
        unit = unit[weights > 0]
    if len(unit) != len(root):
        return None
    return np.where(root > 0, unit / np.where(root > 0, root, 1), 0)


def order(fitted):
    """Figures agree with each other, and are shares."""
    found = fitted.certificate
    captured, upper, gap = (float(x) for x in (found.captured, found.optimum_upper, found.gap))
    both = found.captured.kind == found.optimum_upper.kind == "bound"
    if both:
        text = lambda: f"captured={captured!r} > optimum_upper={upper!r}"  # noqa: E731
        yield look("order", captured <= upper * (1 + 1e-15), text, sure_of(found.gap))
    most = 1.0 if fitted.truth is None or fitted.truth.psd else math.inf
    shares = 0.0 <= captured <= most and 0.0 <= upper <= most and 0.0 <= gap <= 1.0
    yield look("order", shares, lambda: f"not shares: {captured!r}, {upper!r}, gap {gap!r}")
    yield look("order", all(map(math.isfinite, (captured, gap))), lambda: "NaN or infinity")


def promised_gap(fitted):
    """With gap=g the certificate's gap is at most g as a bound, or a warning was given."""
    wanted, gap = fitted.estimator.gap, fitted.certificate.gap
    if wanted is None or fitted.model.batch:
        return
    met = gap.kind == "bound" and gap <= wanted * (1 + 1e-12)
    text = lambda: f"gap={wanted}: {gap!r}, and no warning"  # noqa: E731
    yield look("promised gap", met or has_warned(fitted), text)


def has_warned(fitted):
    return any(issubclass(w.category, ConvergenceWarning) for w in fitted.warned)


def converged(fitted):
    """What did not converge warns."""
    if not fitted.certificate.converged and not fitted.model.batch:
        text = lambda: "converged is False, and no warning was given"  # noqa: E731
        yield look("converged", has_warned(fitted), text)


# Residuals, variances, components.


def residuals(fitted):
    """‖Cv − λv‖ of the components that are returned, with the certificate's λ.

    Of kernel methods it is that of the component in feature space, of its scores over the rows,
    or of its coefficients: each bounds how far λ is from an eigenvalue.
    """
    found, truth = fitted.certificate, fitted.truth
    reported, values = found.residuals, found.eigenvalues
    text = lambda: f"{len(reported)} residuals of {len(values)} components"  # noqa: E731
    yield look("residual", len(reported) == len(values), text)
    if not len(values) or len(reported) != len(values) or np.isnan(reported).all():
        return
    largest = float(np.abs(truth.spectrum.values).max(initial=0))
    allowed = 16 * EPS64 * largest + 4 * truth.error + truth.floor + 1e-6 * reported
    if isinstance(truth, oracle.Linear):
        true = [(truth.residuals(fitted.estimator.components_, values), 0)]
    elif not isinstance(fitted.axes, oracle.Axes):
        true = [(truth.residuals(fitted.axes, values), 0)]
    else:
        true = _kernel_residuals(fitted, values)
    least = np.min([r - more for r, more in true], axis=0)
    yield from _worst("residual", reported, least, allowed)


def _kernel_residuals(fitted, values):
    truth, axes = fitted.truth, fitted.axes
    found = [axes.residuals(values)] if truth.psd else []
    found.append((truth.residuals(axes.weighed, values), 0))
    coefficients = vectors(axes, fitted.data.weights)
    if coefficients is not None:
        found.append((truth.residuals(coefficients, values), 0))
    return found


def _worst(check, reported, true, allowed):
    excess = np.asarray(true - reported - allowed, np.float64)
    j = int(np.nanargmax(excess))
    text = lambda: f"component {j}: {reported[j]:.3e} < {float(true[j]):.3e}"  # noqa: E731
    yield look(check, not excess[j] > 0, text)


def totals(fitted):
    """The total variance, and the shares of it."""
    model, truth = fitted.estimator, fitted.truth
    if isinstance(fitted.axes, np.ndarray) and not isinstance(truth, oracle.Linear):
        return  # of random features: the features' own
    total, true = model.projection_.total_variance, truth.total
    rounding = 8 * truth_size(truth) * EPS64
    amount = getattr(truth, "amount", truth.total)
    loose = 1e-10 if fitted.eps < 1e-10 else 1e-5
    allowed = loose * abs(true) + rounding * amount + 4 * truth.error + truth.floor
    if fitted.eps > 1e-10 and not isinstance(truth, oracle.Linear):
        allowed += 8 * fitted.eps * amount  # kernel values of float32
    if hasattr(fitted.data.X, "tocsr") and isinstance(truth, oracle.Linear):
        # Sparse rows are not centred before their squares are summed.
        allowed += 8 * EPS64 * np.sqrt(true) * truth.offset
    if "Adaptive" in _name(fitted):
        allowed += 1e-6 * amount  # a matrix kept in float32
    if in_space(fitted):
        allowed += 1e-4 * true + kernel_error(fitted, np.float64) * amount
    notes = fitted.certificate.notes
    over_basis = any("span of" in n or "in that span" in n for n in notes)
    low, high = fitted.certificate.total
    if 0 < true < 1e-300:  # beyond what float64 holds
        return
    if low.kind == high.kind == "bound":
        within = low <= true + allowed and high >= true - allowed
        bracket = lambda: f"total in {low!r} to {high!r}, and it is {_f(true)}"  # noqa: E731
        yield look("total", within, bracket, sure_of(low) and sure_of(high))
    text = lambda: f"total_variance={total!r}, and it is {_f(true)}"  # noqa: E731
    if over_basis:
        if truth.psd:
            yield look("total", total >= true - allowed, text)
        return
    if true > 0 or (truth.psd and true == 0):
        yield look("total", abs(total - max(true, 0)) <= allowed, text)


def in_space(fitted):
    """Tell whether kernel values are those of differences of large values of another kernel."""
    return "rbf(0.1)" in repr(getattr(fitted.estimator, "kernel_", None))


def kernel_error(fitted, dtype):
    """What the kernel says of its values' relative errors."""
    points = Points(np.asarray(fitted.data.rows, dtype))
    each = fitted.estimator.kernel_.roundings(points, points, dtype)
    return float(np.max(each)) * float(np.finfo(dtype).eps)


def truth_size(truth):
    return len(truth.A) if hasattr(truth, "A") else sum(truth.Z.shape)


def variances(fitted):
    """Variances that are returned are those of the scores, where a method promises it."""
    truth, found = fitted.truth, fitted.certificate
    if isinstance(truth, oracle.Linear):
        if not _unpolished(fitted) and "Frequent" not in repr(fitted.model.settings):
            true = truth.variances(fitted.estimator.components_)
            yield from _same_variances(fitted, true, found.eigenvalues)
        return
    settings = repr(fitted.model.settings)
    direct = _name(fitted) in ("Exact", "Adaptive", "Greedy", "SparseL1", "Subset", "Cholesky")
    direct = direct and "centroid='basis'" not in settings and "on='rows'" not in settings
    if direct and isinstance(fitted.axes, oracle.Axes) and truth.psd and not _low_rank(fitted):
        yield from _same_variances(fitted, fitted.axes.variances, found.eigenvalues)


def _same_variances(fitted, true, reported):
    if not len(reported):
        return
    largest = float(np.abs(fitted.truth.spectrum.values).max(initial=0))
    floor = getattr(fitted.truth, "amount", 0.0) * 8 * truth_size(fitted.truth) * fitted.eps
    rough = 1e-8 if fitted.eps < 1e-10 else 2e-4
    known = np.where(np.isnan(fitted.certificate.residuals), 0, fitted.certificate.residuals)
    if not isinstance(fitted.truth, oracle.Linear) and _name(fitted) != "Exact":
        rough = max(rough, 1e-5)  # directions of a basis that are nearly rounding
    floor += fitted.truth.floor
    off = np.abs(true - reported) - rough * largest - float(floor) - known
    j = int(np.argmax(off))
    text = lambda: f"component {j}: {reported[j]!r}, scores have {_f(true[j])}"  # noqa: E731
    yield look("variance", not off[j] > 0, text)


def _unpolished(fitted):
    return "polish=False" in repr(fitted.model.settings)


def _name(fitted):
    """The name of the method that was used."""
    return type(fitted.estimator.plan_.method).__name__


def _low_rank(fitted):
    return getattr(fitted.estimator.plan_.method, "rank", None) is not None


def orthonormality(fitted):
    """Components are orthonormal, where overlaps are not said."""
    eps, truth = fitted.eps, fitted.truth
    if _unpolished(fitted) or not fitted.k:
        return
    if isinstance(truth, oracle.Linear):
        V = np.asarray(fitted.estimator.components_, LD)
        off = float(np.abs(V @ V.T - np.eye(len(V))).max())
        allowed = 8 * eps * (V.shape[1] + 8) ** 0.5 * 4
        yield look("orthonormal", off <= allowed, lambda: f"off by {off:.2e}")
        return
    if not isinstance(fitted.axes, oracle.Axes) or not truth.psd:
        return
    G, said = fitted.axes.overlaps, fitted.estimator.projection_.overlaps
    said = np.eye(fitted.k) if said is None else said
    if _name(fitted) == "Sketch":
        return  # overlaps of a sketch are estimates
    lengths = np.sqrt(np.maximum(np.outer(np.diag(G), np.diag(G)), LD(np.finfo(float).tiny) ** 2))
    off = np.abs(G - said) / lengths
    j = float(np.max(off))
    # Residuals, and the rounding of the matrix, count by the smallest variance; on a basis the
    # rounding is divided by directions down to 1e-11 of the largest.
    known = np.nan_to_num(fitted.certificate.residuals).max(initial=0.0)
    least = max(float(np.min(fitted.certificate.eigenvalues)), 1e-300)
    rounding = 64 * eps * truth_size(truth) * float(truth.amount)
    allowed = (1e-8 if _name(fitted) == "Exact" else 1e-4) + (known + rounding) / least
    A = np.abs(np.asarray(fitted.estimator.projection_.components, LD))
    terms = A.T @ np.sqrt(np.abs(np.diag(fitted.axes.gram)))
    allowed += 64 * eps * float(np.max(terms)) ** 2  # the terms of a component cancel
    yield look("orthonormal", j <= allowed, lambda: f"overlaps off by {j:.2e}")


def positive(fitted):
    """A kernel that says so has no negative eigenvalues."""
    truth = fitted.truth
    if truth.psd and isinstance(truth, oracle.Kernel) and len(truth.A):
        least = truth.spectrum.values[-1]
        allowed = truth.spectrum.slack + truth.error * len(truth.A)
        yield look("psd", least >= -allowed, lambda: f"{_f(least)} is an eigenvalue")


def finite(fitted):
    """What is returned is finite."""
    model = fitted.estimator
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_"):
        values = getattr(model, name, None)
        if values is not None:
            values = np.asarray(values, np.float64)
            yield look("finite", np.isfinite(values).all(), lambda name=name: name)
    ratio = np.asarray(model.explained_variance_ratio_, np.float64)
    most = 1.0 + 1e-5 if fitted.truth is None or fitted.truth.psd else math.inf
    # Other variances than those of the rows about their mean, or components that overlap.
    other = _name(fitted) in ("Nystrom", "Reduced", "Sketch") or _unpolished(fitted)
    other = other or "centroid='basis'" in repr(fitted.model.settings)
    yield look("ratio", (ratio >= 0).all(), lambda: f"explained_variance_ratio_ has {ratio.min()}")
    if not other:
        text = lambda: f"explained_variance_ratio_ sums to {ratio.sum()!r}"  # noqa: E731
        yield look("ratio", ratio.sum() <= most, text)


# Crashes.

_REFUSALS = (
    r"cannot be met",
    r"gives NaN or infinity",
    r"is too large, or too small, for float64",
    r"too few for",
    r"is too small for n_components",
    r"needs dense rows",
    r"may be negative\. Use eigen_solver",
    r"scale=True needs all standard deviations",
    r"cannot be read by columns",
    r"is more than the \d+ (rows|columns)",
    r"must be between \d and min\(n_samples, n_features\)",
    r"are negative|negative entries|not be negative|has negative",
    r"sample_weight sums to",
    r"All entries of sample_weight are zero",  # of a batch
    r"its square, which",
    r"needs \d+ components or more",
    r"too large for Fourier",
    r"squares overflow",
    r"their squares are too large, or too small",
    r"has led to infinity",
    r"orthogonal",
    r"applies to kernel PCA of all rows",
    r"requires numeric rows, but got",
    r"needs all eigenvalues|needs the whole spectrum",
    r"needs more rows than|n_samples >= n_features|as many rows as columns",
    r"Fourier features",
    r"leaves no point",
    r"memory budget",
    r"rows can be drawn",
    r"in fsum",  # raised by the function that a kernel was made of
)


def refusal(error):
    """Return a look at an exception: documented refusals pass."""
    text = " ".join(str(error).split())
    kind = type(error)
    known = kind in (ValueError, ParameterError) or issubclass(kind, MemoryError)
    documented = known and any(re.search(r, text) for r in _REFUSALS)
    return look("crash", documented, lambda: f"{kind.__name__}: {text[:160]}")


def warned(fitted):
    """NumPy's warnings are not for the user to see."""
    seen = set()
    for warning in fitted.warned:
        if issubclass(warning.category, RuntimeWarning):
            where = f"{warning.filename.rpartition('mercer/')[2]}:{warning.lineno}"
            seen.add(f"{warning.message} ({where})")
    yield look("warning", not seen, lambda: "; ".join(sorted(seen)))


def _f(x):
    return f"{float(x):.17g}"


CERTIFICATE = (order, promised_gap, converged, finite, warned)
TRUTH = (shares, residuals, totals, variances, orthonormality, positive)
