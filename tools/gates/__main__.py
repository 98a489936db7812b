"""The command: `python tools/gates`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gates.command import command

if __name__ == "__main__":
    command(prog_name="python tools/gates")
