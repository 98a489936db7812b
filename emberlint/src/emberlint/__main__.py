"""The entry point of the command `emberlint` and of `python -m emberlint`."""

import os
import sys

from emberlint.fast_path import print_cached_report


def main() -> None:
    """Runs the command `emberlint` and exits with its status."""
    try:
        status = print_cached_report(sys.argv[1:])
        if status is not None:
            sys.exit(status)
        try:
            from emberlint.cli import main as command
        except ImportError as error:
            if error.name not in ("click", "rich"):
                raise
            sys.stderr.write(f"emberlint needs {error.name}: pip install emberlint\n")
            sys.exit(2)
        command(prog_name="emberlint")
    except BrokenPipeError:  # the program that reads the report, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python's flush at exit must not fail
        sys.exit(1)
    except KeyboardInterrupt:  # an interrupt outside of click, which handles others
        sys.exit(130)


if __name__ == "__main__":
    main()
