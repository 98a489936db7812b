"""Check the purity of array code: `python utils/emberlint.py PATH`; the same as the command `emberlint`."""

import sys
from pathlib import Path

# The linter stands apart from the rest of the package and runs from a checkout without installation.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.__main__ import main

if __name__ == "__main__":
    main()
