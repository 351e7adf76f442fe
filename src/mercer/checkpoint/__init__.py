"""Checkpoints: a fit saves its passes in a folder, and can resume if interrupted."""

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
