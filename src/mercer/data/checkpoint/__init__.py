"""Long runs: what a fit has done is kept in a folder, and a killed fit goes on from there."""

from mercer.data.checkpoint.described import described
from mercer.data.checkpoint.folder import (
    CheckpointError,
    aside,
    held,
    kept_seed,
    run,
    running,
    same,
)
from mercer.data.checkpoint.passes import Saving, kept, saving

__all__ = [
    "CheckpointError",
    "Saving",
    "aside",
    "described",
    "held",
    "kept",
    "kept_seed",
    "run",
    "running",
    "same",
    "saving",
]
