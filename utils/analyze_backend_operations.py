"""Shows which backend defines which op, and moves ops to the right file.

`python utils/analyze_backend_operations.py --help` lists the commands.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "emberlint" / "src"))

from emberlint.commands.parity import main

if __name__ == "__main__":
    main()
