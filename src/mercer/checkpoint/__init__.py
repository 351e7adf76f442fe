"""Checkpoints: a fit saves its passes in a folder, and can resume if interrupted."""

from mercer.checkpoint.folder import CheckpointError as CheckpointError
from mercer.checkpoint.folder import check_same as check_same
from mercer.checkpoint.folder import checkpointed as checkpointed
from mercer.checkpoint.folder import has_checkpoint as has_checkpoint
from mercer.checkpoint.identity import describe as describe
from mercer.checkpoint.identity import identify as identify
