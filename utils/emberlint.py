"""Checks that array code uses `ops` only: `python utils/emberlint.py PATH` is the same as the command `emberlint`."""

import sys
from pathlib import Path

# emberlint is a package of its own; this path lets it run from a checkout without being installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.__main__ import main

if __name__ == "__main__":
    main()
