"""The program between a launcher and a rank: it lets the kernel end the rank when the launcher has gone.

It needs the standard library alone, so it starts in 20 ms: `python -S -E guard.py LAUNCHER COMMAND...`. It replaces
itself by the command, so the rank has its process. The launcher's process is 0 if another program, such as torchrun,
starts the rank.
"""

import os
import sys


def main() -> None:
    """Asks the kernel for a signal at the end of the parent, and runs the command."""
    launcher = int(sys.argv[1])
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    if launcher and os.getppid() != launcher:  # it ended before the kernel was asked
        sys.exit(1)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
