"""Certificates: how far from the best possible answer a result can be."""

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
