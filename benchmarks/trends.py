"""Measures commits with asv and draws the results: `python benchmarks/trends.py [--bench REGEX] [COMMIT ...]`.

Each commit is checked out into a folder of its own and measured with the libraries of this environment and with the
benchmarks of this checkout, so the curves compare the commits alone. The default is the present commit. The results
stay in `.asv/results`, one file for each machine and commit; the pages are in `.asv/html`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASV = [sys.executable, "-m", "asv"]
CONFIG = ["--config", str(ROOT / "benchmarks" / "asv.conf.json")]


def git(*arguments: str) -> str:
    """Returns what a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def measure(commit: str, bench: str) -> int:
    """Measures one commit and returns the exit status of asv."""
    with tempfile.TemporaryDirectory() as folder:
        tree = str(Path(folder) / "tree")
        git("worktree", "add", "--detach", tree, commit)
        try:
            searched = os.pathsep.join(filter(None, (tree, os.environ.get("PYTHONPATH"))))
            # asv removes PYTHONPATH from the environment of the benchmarks and puts ASV_PYTHONPATH in its place.
            paths = {"ASV_PYTHONPATH": searched}
            environment = os.environ | paths | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            environment.pop("EMBERHARMONY_BACKEND", None)
            options = ["--environment", f"existing:{sys.executable}", "--set-commit-hash", git("rev-parse", commit)]
            chosen = ["--bench", bench] if bench else []
            command = [*ASV, "run", *CONFIG, *options, *chosen, "--show-stderr"]
            return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        finally:
            git("worktree", "remove", "--force", tree)


def main() -> int:
    """Measures the commits, draws all results, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="what to measure (default: HEAD)")
    parser.add_argument("--bench", default="", metavar="REGEX", help="run only these benchmarks")
    options = parser.parse_args()
    subprocess.run([*ASV, "machine", *CONFIG, "--yes"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    failed = [commit for commit in options.commits or ["HEAD"] if measure(commit, options.bench)]
    for commit in failed:
        print(f"{commit}: at least one benchmark failed")
    drawn = subprocess.run([*ASV, "publish", *CONFIG], cwd=ROOT, check=False).returncode
    print(f"{ROOT / '.asv' / 'html' / 'index.html'} (open it through `python -m http.server --directory .asv/html`)")
    return 1 if failed else drawn


if __name__ == "__main__":
    sys.exit(main())
