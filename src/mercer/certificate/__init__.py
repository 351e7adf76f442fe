"""Certificates: how close to optimal a result is."""

from mercer.certificate.certificate import (
    Axes,
    Certificate,
    Evidence,
    certify,
    lifted_evidence,
    spacing_of,
    spectral_evidence,
)
from mercer.linalg.operator import Figure

__all__ = [
    "Axes",
    "Certificate",
    "Evidence",
    "Figure",
    "certify",
    "lifted_evidence",
    "spacing_of",
    "spectral_evidence",
]
