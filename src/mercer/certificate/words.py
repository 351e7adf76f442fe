"""Certificates in words, as a table and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.messages import percent
from mercer.notebook import as_html, share_bar

if TYPE_CHECKING:
    from mercer.certificate.evidence import Certificate

SPECTRUM = "eigenvalues and residuals"
"""Name of the bounds that an eigensolver gives."""
# A total variance that is known this closely goes without saying.
_KNOWN = 1e-4


def sentence(certificate: Certificate) -> str:
    """Return what is explained, and what cannot be."""
    k = len(certificate.eigenvalues)
    if not k:
        label = certificate.gap.label
        return f"There are no components: no variance is above rounding error ({label})."
    explain = f"{k} components explain" if k != 1 else "1 component explains"
    others = f"No {k} components" if k != 1 else "No component"
    gap, share = certificate.gap, percent(certificate.captured)
    within = percent(max(gap, 1e-6), 4 if gap < 1e-4 else 2, up=True)
    text = f"{explain} {share} of the variance. {others} can explain"
    # A limit with as many digits would be rounded up.
    if percent(certificate.optimum_upper) == share and gap < 1e-4:
        return f"{text} noticeably more: this is within {within} of optimal ({gap.label})."
    upper = percent(certificate.optimum_upper, up=True)
    return f"{text} more than {upper} ({gap.label}), so this is within {within} of optimal."


def remarks(certificate: Certificate) -> list[str]:
    """Return what else a reader should know, a line each."""
    lines, (low, high) = [], certificate.total
    if certificate.optimum_from not in ("", SPECTRUM) and len(certificate.eigenvalues):
        lines.append(f"The bound comes from {certificate.optimum_from}.")
    if high > low * (1.0 + _KNOWN):
        lines.append(f"The total variance is known {_apart(low, high)}.")
    if not certificate.converged:
        lines.append("The solver did not meet its tolerance.")
    if certificate.likely is not None and certificate.gap_estimate < 0.9 * certificate.gap:
        likely = percent(certificate.gap_estimate, up=True)
        lines.append(f"Probably within {likely} of optimal (estimated).")
    lines += certificate.notes
    if len(certificate.negative):
        lines.append(
            f"The kernel is not positive semi-definite: {len(certificate.negative)} of the "
            f"computed eigenvalues are negative, the smallest is {certificate.negative[0]:.3g}. "
            f"They have no components. Shares are relative to the sum of all eigenvalues, which "
            f"the negative ones reduce."
        )
    return lines


def _apart(low: float, high: float) -> str:
    """Return how closely two bounds determine a figure."""
    if not low > 0.0:
        return "from above only"
    if high > 2.0 * low:
        return f"to within a factor of {high / low:.3g}"
    return f"to within {percent(high / low - 1.0, up=True)}"


def table(certificate: Certificate) -> str:
    """Return the first components and the last, a line each; nothing if nothing is known."""
    if not len(certificate.eigenvalues) or np.all(np.isnan(certificate.residuals)):
        return ""
    lines = [
        f"{'component':>9}  {'variance':>12}  {'residual':>9}  {'error':>9}  angle",
        f"{'':>9}  {'':>12}  {certificate.residuals_label:>9}  {'estimated':>9}  estimated",
    ]
    rows = zip(
        certificate.eigenvalues,
        certificate.residuals,
        certificate.eigenvalue_errors,
        np.degrees(certificate.angles),
        strict=True,
    )
    for i, (value, residual, error, angle) in enumerate(rows, start=1):
        if 6 < i < len(certificate.eigenvalues):
            lines += [f"{'…':>9}"] if i == 7 else []
            continue
        lines.append(f"{i:>9}  {value:12.6g}  {residual:9.1e}  {error:9.1e}  {angle:.2g}°")
    return "\n".join(lines)


def html(certificate: Certificate) -> str:
    """Return a bar of what is explained, what might be, and what cannot be, with the text."""
    explained = min(1.0, max(0.0, float(certificate.captured)))
    possible = min(1.0, max(0.0, float(certificate.optimum_upper)))
    parts = {
        "explained": explained,
        "not excluded": max(0.0, possible - explained),
        "impossible": 1.0 - max(possible, explained),
    }
    return share_bar(parts) + as_html(
        sentence(certificate), remarks(certificate), table(certificate)
    )
