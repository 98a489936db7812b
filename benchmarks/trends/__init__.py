"""The benchmarks whose results asv draws over commits; they reuse the functions of the programs in the folder above."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
