"""What is true of rows and of a fitted model, from dense longdouble matrices.

Every figure comes with a bound on its own error, `slack`, which the checks allow for: eigenvalues
are LAPACK's in float64 of a matrix that was formed and centred in longdouble, good to n ε times
the largest of them; everything else is longdouble throughout.
"""

from functools import cached_property

import numpy as np

from tests.laws.truth import centred

LD = np.longdouble
EPS = LD(np.finfo(LD).eps)
EPS64 = float(np.finfo(np.float64).eps)


def orthonormal(W):
    """Gram–Schmidt, twice, keeping the order of the columns; a dependent column becomes zero."""
    Q = np.zeros_like(W)
    for j in range(W.shape[1]):
        length = norms(W[:, j : j + 1])[0]
        v = W[:, j] / length if length > 0 else W[:, j]
        for _ in range(2):
            v = v - Q[:, :j] @ (Q[:, :j].T @ v)
        left = norms(v[:, None])[0]
        Q[:, j] = v / left if left > 1e-15 else 0
    return Q


def norms(columns):
    """Lengths of columns, whatever their scale."""
    largest = np.abs(columns).max(axis=0, initial=0)
    unit = np.where(largest > 0, largest, 1)
    return unit * np.sqrt(((columns / unit) ** 2).sum(axis=0))


class Spectrum:
    """Eigenvalues of a symmetric longdouble matrix, largest first, and their slack."""

    def __init__(self, A):
        largest = np.abs(A).max(initial=0)
        unit = LD(2) ** np.floor(np.log2(largest)) if largest > 0 else LD(1)
        values = np.linalg.eigvalsh((A / unit).astype(np.float64))[::-1]
        self.values = values.astype(LD) * unit
        self.slack = 2 * len(A) * EPS64 * np.abs(self.values).max(initial=0)
        """Error of each of them."""

    def top(self, k):
        """The sum of the k largest; of an indefinite matrix, of the positive ones among them."""
        return np.maximum(self.values[:k], 0).sum()


def divisor(deviation, metric):
    """What centred columns are divided by; infinite where they have no share."""
    divide = LD(1) if deviation is None else np.asarray(deviation, LD)
    with np.errstate(divide="ignore"):
        return divide if metric is None else divide / np.sqrt(np.asarray(metric, LD))


class Linear:
    """PCA of rows: treated as a model of them says, or not scaled; in the metric of column weights.

    Columns are divided by their deviation, and multiplied by the root of their weight.
    """

    psd = True

    def __init__(self, rows, weights, center, deviation=None, metric=None):
        rows = np.asarray(rows, LD)
        w = np.ones(len(rows), LD) if weights is None else np.asarray(weights, LD)
        rows, w = rows[w > 0], w[w > 0]
        Z = centred(rows, w) if center else rows
        divide = divisor(deviation, metric)
        Z = Z / divide
        self.count = w.sum()
        self.Z = Z * np.sqrt(w)[:, None] / np.sqrt(self.count - 1)
        self.total = (self.Z**2).sum()
        # Columns are centred about their first entry, then their mean, in longdouble.
        spread = norms((np.abs(rows - rows[0]).max(axis=0, initial=0) / divide)[:, None])[0]
        self.error = 64 * EPS * (self.total + center * np.sqrt(self.total) * spread)
        sizes = np.abs(rows).max(axis=0, initial=0) / divide
        self.offset = norms(sizes[:, None])[0]
        """Length of a row of the largest entries."""
        rounded = (4 * EPS64 * center * sizes) ** 2
        self.floor = float(np.minimum((self.Z**2).sum(axis=0), rounded).sum())
        """Variance that float64 may take for rounding of the mean."""

    @cached_property
    def spectrum(self):
        n, d = self.Z.shape
        return Spectrum(self.Z.T @ self.Z if d <= n else self.Z @ self.Z.T)

    def held(self, components):
        """The variance in the span of the rows of `components`, and the slack of that."""
        Q = orthonormal(np.asarray(components, LD).T)
        return ((self.Z @ Q) ** 2).sum(), self.error

    def residuals(self, components, values):
        """‖Cv − λv‖ of each row v of `components`, as it is."""
        V = np.asarray(components, LD).T
        return norms(self.Z.T @ (self.Z @ V) - V * np.asarray(values, LD))

    def variances(self, components):
        """Variances of the scores along the rows of `components`."""
        return ((self.Z @ np.asarray(components, LD).T) ** 2).sum(axis=0)


class Kernel:
    """Kernel PCA of rows."""

    def __init__(self, kernel, rows, weights, center, sparse=False):
        self.kernel, self.rows = kernel, rows
        self.weights = np.ones(len(rows), LD) if weights is None else np.asarray(weights, LD)
        self.count, self.center = self.weights.sum(), center
        with np.errstate(all="ignore"):
            self.K = kernel.formula(self._moved, self._moved)
        self.root = np.sqrt(self.weights)
        self.A = self._centred(self.K) * np.outer(self.root, self.root) / (self.count - 1)
        self.A = (self.A + self.A.T) / 2
        self.total = np.trace(self.A)
        own = np.abs(np.diag(self.K))
        if sparse and kernel.bilinear:  # sparse rows are not moved before products
            own = (rows**2).sum(axis=1)
        self.amount = (self.weights * own).sum() / (self.count - 1)
        """Σ w k(x, x) over the divisor: what roundings are relative to."""
        self.error = kernel.roundings * EPS * 4 * (self.weights * np.abs(np.diag(self.K))).sum()
        self.error /= self.count - 1
        self.floor = 0.0

    @property
    def finite(self):
        return bool(np.isfinite(self.A).all())

    @property
    def _moved(self):
        """Rows less their mean, where that changes nothing but the rounding."""
        if not (self.kernel.bilinear and self.center):
            return self.rows
        return centred(self.rows, self.weights)

    def _centred(self, K):
        if not self.center:
            return K
        for _ in range(2):
            K = K - self._mean(K)[None, :]
            K = K - self._mean(K.T)[:, None]
        return K

    def _mean(self, M):
        return (self.weights[:, None] * M).sum(axis=0) / self.count

    @cached_property
    def spectrum(self):
        return Spectrum(self.A)

    def held_by_vectors(self, U):
        """Variance in the span of Σ_i u_i Φ̃(x_i)√w_i for the columns u, and the slack of it."""
        unit = self.root[:, None] / np.sqrt(self.count) * self.center  # no part of the space
        Q = orthonormal(U - unit * (unit.T @ U))
        product = self.A @ Q
        largest = norms(product).max(initial=0)
        error = 64 * EPS * largest
        return _held(Q.T @ product, product, error, error, self.total + self.error)

    def quotients(self, U):
        """tr UᵀAU of the orthonormalised columns: what an indefinite matrix has along them."""
        Q = orthonormal(U)
        return np.trace(Q.T @ self.A @ Q)

    def residuals(self, U, values):
        """‖Au − λu‖ of each column u, made of length one."""
        lengths = norms(U)
        U = U / np.where(lengths > 0, lengths, 1)
        return norms(self.A @ U - U * np.asarray(values, LD))


class Axes:
    """Components in feature space as a fitted map holds them: Σ_i a_ij Φ(b_i) over its points b."""

    def __init__(self, truth, projection, rows):
        kernel = truth.kernel
        self.truth = truth
        A = np.asarray(projection.components, LD)
        with np.errstate(all="ignore"):
            if projection.basis is None:  # rows are the kernel matrix
                H = G = truth.K
                self.on_rows, self.own = True, truth.K
            else:
                shift = projection.shift
                X = rows if shift is None else rows - np.asarray(shift, LD)
                basis = _dense(projection.basis)
                H = kernel.formula(X, basis)
                G = kernel.formula(basis, basis)
                self.on_rows = _same(X, basis)
                self.own = None if self.on_rows else kernel.formula(X, X)
        self.overlaps = A.T @ (G @ A)
        lengths = np.sqrt(np.maximum(np.diag(self.overlaps), 0))
        self.lengths = np.where(lengths > 0, lengths, 1)
        A = A / self.lengths
        self.unit, self.at_basis, self.gram = A, H, G
        y = H @ A
        self.scores = y - truth._mean(y) if truth.center else y
        noise = kernel.roundings * EPS
        weighed = self.scores * truth.root[:, None] / np.sqrt(truth.count - 1)
        off = norms((np.abs(H) @ np.abs(A)) * truth.root[:, None]) / np.sqrt(truth.count - 1)
        lost = np.abs(A * (np.abs(G) @ np.abs(A))).sum(axis=0)
        self.variances = (weighed**2).sum(axis=0)
        self.off, self.lost = (noise * np.max(x, initial=0) for x in (off, lost))
        self.weighed = weighed

    @cached_property
    def held(self):
        """Variance in the span of the components, and the slack of it."""
        G = self.overlaps / np.outer(self.lengths, self.lengths)
        return _held(G, self.weighed, self.lost, self.off, self.truth.total + self.truth.error)

    def residuals(self, values):
        """‖Cv − λv‖ in feature space of each component v, made of length one; and the slack.

        Cv − λv = Σ_x p_x Φ(x) − λ Σ_b a_b Φ(b), p the weighed scores. Where the points are the
        rows, the coefficients are subtracted first; else squares cancel, and half of the digits
        are lost.
        """
        truth, values = self.truth, np.asarray(values, LD)
        p = truth.weights[:, None] * self.scores / (truth.count - 1)
        if self.on_rows:
            d = p - self.unit * values
            squares = (d * (self.gram @ d)).sum(axis=0)
            noise = truth.kernel.roundings * EPS * (np.abs(d) * (np.abs(self.gram) @ np.abs(d)))
            return np.sqrt(np.maximum(squares, 0)), np.sqrt(noise.sum(axis=0))
        parts = [
            (p, self.own, p, 1),
            (p, self.at_basis, self.unit * values, -2),
            (self.unit * values, self.gram, self.unit * values, 1),
        ]
        squares = sum(s * (x * (M @ y)).sum(axis=0) for x, M, y, s in parts)
        size = sum((np.abs(x) * (np.abs(M) @ np.abs(y))).sum(axis=0) for x, M, y, _ in parts)
        slack = np.sqrt(truth.kernel.roundings * EPS * size)
        return np.sqrt(np.maximum(squares, 0)), slack


def _dense(points):
    if isinstance(points, list):
        return points
    return np.asarray(points.toarray() if hasattr(points, "tocsr") else points, LD)


def _same(X, basis):
    """Tell whether the points are the rows, but for a rounding."""
    if isinstance(X, list):
        return basis == X
    if X.shape != basis.shape:
        return False
    return bool(np.abs(X - basis).max(initial=0) <= 4 * EPS64 * np.abs(X).max(initial=0))


def _held(G, Y, lost, off, most):
    """tr G†YᵀY of overlaps G and scores Y, and its slack, by pivoted Cholesky in longdouble.

    The scores are eliminated themselves, not their products, which would square their range.
    `lost` and `off` bound the errors of the entries of G and of the columns of Y. Directions that
    longdouble cannot tell from rounding hold at most what the others leave of `most`, the total.
    """
    G, Y = G.copy(), Y.copy()
    total = slack = LD(0)
    start = max(np.diag(G).max(initial=0), LD(0))
    for _ in range(len(G)):
        i = int(np.argmax(np.diag(G)))
        pivot = G[i, i]
        if not pivot > 1e-15 * start:
            if (norms(Y) + off).max(initial=0) > 0:
                slack += max(most - total, LD(0))
            break
        g = G[:, i] / pivot
        s = (Y[:, i] ** 2).sum() / pivot
        total += s
        slack += s * lost / pivot + 2 * np.sqrt(s / pivot) * off
        Y = Y - np.outer(Y[:, i], g)
        G = G - np.outer(g, g) * pivot
        G[i, :] = G[:, i] = 0
    return total, slack
