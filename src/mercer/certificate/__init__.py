"""Certificates: how much variance components explain, and how much any others could."""

from mercer.certificate.evidence import SPECTRUM as SPECTRUM
from mercer.certificate.evidence import Axes as Axes
from mercer.certificate.evidence import Certificate as Certificate
from mercer.certificate.evidence import Evidence as Evidence
from mercer.certificate.evidence import Figure as Figure
from mercer.certificate.evidence import certify as certify
from mercer.certificate.evidence import lifted_evidence as lifted_evidence
from mercer.certificate.evidence import spacing_of as spacing_of
from mercer.certificate.evidence import spectral_evidence as spectral_evidence
