"""``mercer denoise``: what the axes keep of rows."""

from __future__ import annotations

from mercer.cli import say, transform

Options = transform.Options
EXAMPLES = (
    "mercer fit clean.npy --kernel rbf --preimage auto -o digits.mercer",
    "mercer denoise digits.mercer noisy.npy -o denoised.npy",
)


def denoise(asked: Options, voice: say.Voice) -> say.Result:
    """Write rows without what the axes do not hold: their noise, if the axes are the signal's.

    A model of a kernel needs a way back, which fit learns with --preimage.
    """
    from mercer.cli import tables, use

    return use.written(asked, voice, tables.kept_of)
