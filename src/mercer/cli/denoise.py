"""``mercer denoise``: rows projected onto the components."""

from __future__ import annotations

from mercer.cli import say, transform

Options = transform.Options
EXAMPLES = (
    "mercer fit clean.npy --kernel rbf --preimage auto -o digits.mercer",
    "mercer denoise digits.mercer noisy.npy -o denoised.npy",
)


def denoise(asked: Options, voice: say.Voice) -> say.Result:
    """Denoise data by projecting it onto the components.

    A kernel model must have been fitted with --preimage.
    """
    from mercer.cli import tables, use

    return use.written(asked, voice, tables.kept_of)
