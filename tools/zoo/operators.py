"""Compares operators with PyTorch on PyTorch's own samples, and prints what differs: `operators.py [NAME …]`."""

import argparse
import sys
import warnings
from pathlib import Path

import torch

from emberharmony.errors import CaptureError, UnsupportedOpError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.interop.torch.opinfo import NOT_UNIQUE, UNLIKE, differences, operators


def main() -> None:
    """Prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--dtype", default="float64")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    info_by_name = operators()
    count_by_kind = dict.fromkeys(("same", "differs", "lacks", "not exported", "fails"), 0)
    for name in options.names or [name for name in info_by_name if name not in (*UNLIKE, *NOT_UNIQUE)]:
        try:
            notes = differences(info_by_name[name], options.backend, getattr(torch, options.dtype))
            kind = "differs" if notes else "same"
        except UnsupportedOpError as error:
            kind, notes = "lacks", [str(error).partition("lacks ")[2].partition(" (")[0]]
        except CaptureError as error:
            kind, notes = "not exported", [str(error)[:150]]
        except Exception as error:  # noqa: BLE001  (the next operators are to be tried too)
            kind, notes = "fails", [f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}"[:300]]
        count_by_kind[kind] += 1
        if kind != "same":
            print(f"{name}: {kind}: {'; '.join(notes)[:400]}", flush=True)
    print(count_by_kind)


if __name__ == "__main__":
    main()
