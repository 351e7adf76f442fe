"""Checkpoints: a fit records its passes in a folder, and a killed fit resumes from there."""

from mercer.checkpoint.folder import CheckpointError, check_same, checkpointed, has_checkpoint
from mercer.checkpoint.identity import describe, identify

__all__ = [
    "CheckpointError",
    "check_same",
    "checkpointed",
    "describe",
    "has_checkpoint",
    "identify",
]
