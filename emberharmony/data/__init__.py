"""The data that comes with the package, as host arrays and text."""

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Digits", "digits", "sonnets"]


class Digits(NamedTuple):
    """The digits: images (n, 64) as float32 from 0 to 1 and labels (n,) as int64, for training and for testing.

    Args:
        train_images: (n, 64) as float32 from 0 to 1.
        train_labels: (n,) as int64 from 0 to 9.
        test_images: (n, 64) as float32 from 0 to 1, held out.
        test_labels: (n,) as int64 from 0 to 9, held out.
    """

    train_images: np.ndarray[Any, Any]
    train_labels: np.ndarray[Any, Any]
    test_images: np.ndarray[Any, Any]
    test_labels: np.ndarray[Any, Any]


def digits(held_out: int = 397, seed: int = 0) -> Digits:
    """Returns the 1,797 UCI optical digits, shuffled by `seed`, the last `held_out` of them for testing.

    Args:
        held_out: how many of the images are for testing.
        seed: the seed of the order, an integer.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998, CC BY 4.0.
    """
    with gzip.open(Path(__file__).parent / "digits.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.int64)
    table = np.random.default_rng(seed).permutation(table)
    images, labels = (table[:, :64] / 16.0).astype(np.float32), table[:, 64].copy()
    return Digits(images[:-held_out], labels[:-held_out], images[-held_out:], labels[-held_out:])


def sonnets() -> str:
    """Returns 21 sonnets by William Shakespeare, 12,893 letters with the spaces between them, in modern spelling.

    Source: Shakespeare's Sonnets, 1609, in the public domain.
    """
    return (Path(__file__).parent / "sonnets.txt").read_text(encoding="utf-8")
