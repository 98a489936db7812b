"""The command: `python tools/mutants`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mutants.command import main

if __name__ == "__main__":
    sys.exit(main())
