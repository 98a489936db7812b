"""Prints the mistakes with what is seen of each: `python -m tests.first_hour [AREA ...] [--scores]`."""

import sys
import tempfile
from pathlib import Path

from tests.first_hour.mistake import AREAS, mistakes, output_of


def main(*arguments: str) -> None:
    points: dict[str, list[int]] = {}
    for area, mistake in mistakes([name for name in arguments if not name.startswith("-")] or AREAS):
        points.setdefault(area, []).append(mistake.score)
        sys.stdout.write(f"== {area}: {mistake.name} ({mistake.score})\n")
        if "--scores" not in arguments:
            with tempfile.TemporaryDirectory() as folder:
                sys.stdout.write(f"{output_of(mistake, Path(folder))}\n")
    for area, scores in points.items():
        sys.stdout.write(f"{area}: {sum(scores)} of {2 * len(scores)}\n")
    sys.stdout.write(f"all: {sum(map(sum, points.values()))} of {2 * sum(map(len, points.values()))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
