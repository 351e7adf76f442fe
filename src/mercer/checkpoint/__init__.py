"""Checkpoints: a fit records its passes in a folder, and a killed fit resumes from there."""

from mercer.checkpoint.describe import describe
from mercer.checkpoint.digest import identify
from mercer.checkpoint.folder import CheckpointError, check_same, checkpointed, has_checkpoint

__all__ = [
    "CheckpointError",
    "check_same",
    "checkpointed",
    "describe",
    "has_checkpoint",
    "identify",
]
