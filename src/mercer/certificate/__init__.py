"""Certificates: how far from the best possible answer a result can be."""

from mercer.certificate.certificate import Certificate, certify
from mercer.certificate.evidence import Axes, Evidence, spacing_of
from mercer.linalg.bounds import Figure

__all__ = ["Axes", "Certificate", "Evidence", "Figure", "certify", "spacing_of"]
