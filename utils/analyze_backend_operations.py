"""Shows which backend has which op, and moves misplaced ones: `python utils/analyze_backend_operations.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.commands.parity import main

if __name__ == "__main__":
    main()
