"""Builds wheels and source archives of both packages into `dist/` and checks them: `python tools/dist.py [FOLDER]`.

A wheel must hold the package and nothing else, a source archive what its tests need, and the metadata must be whole.
"""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIELDS = ("Name", "Version", "Summary", "License-Expression", "Requires-Python", "Description-Content-Type")
NEEDED = {
    "emberharmony": (
        "ops/__init__.py",
        "ops/__init__.pyi",
        "py.typed",
        "data/digits.csv.gz",
        "examples/training/gpt.py",
    ),
    "emberlint": ("__main__.py", "guide.md", "py.typed"),
}
"""By the package, some files that are no modules imported by others, so that an import would not miss them."""
UNWANTED = ("__pycache__", ".pyc", "/tests/", ".ci/", ".venv", ".hypothesis", ".coverage")


def build_packages(folder: Path) -> list[Path]:
    """Builds both packages and returns the files."""
    for source in (ROOT, ROOT / "emberlint"):
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(source)], check=True)
    return sorted(folder.iterdir())


def faults_of_wheel(path: Path) -> list[str]:
    """Returns what is wrong with a wheel."""
    name = path.name.split("-")[0]
    with zipfile.ZipFile(path) as wheel:
        files = wheel.namelist()
        metadata = next(file for file in files if file.endswith(".dist-info/METADATA"))
        fields = Parser().parsestr(wheel.read(metadata).decode())
    faults = [f"lacks the field {field}" for field in FIELDS if not fields[field]]
    faults += [f"lacks {name}/{file}" for file in NEEDED[name] if f"{name}/{file}" not in files]
    faults += [f"holds {file}" for file in files if any(part in file for part in UNWANTED)]
    faults += [f"holds {file}" for file in files if file.split("/")[0].split("-")[0] != name]
    if len(str(fields.get_payload())) < 500:
        faults.append("has no long description")
    return faults


def faults_of_archive(path: Path) -> list[str]:
    """Returns what is wrong with a source archive."""
    with tarfile.open(path) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
    needed_files = (
        ["pyproject.toml", "README.md", "LICENSE"] if path.name.startswith("emberharmony") else ["pyproject.toml"]
    )
    if path.name.startswith("emberharmony"):
        needed_files += ["tests/conftest.py", "Makefile", "constraints.txt", "CHANGELOG.md"]
    faults = [f"lacks {name}" for name in needed_files if name not in files]
    return faults + [f"holds {name}" for name in files if "__pycache__" in name or name.startswith(".venv")]


def main() -> int:
    """Builds and checks; returns the exit status."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("ember*"):
        old.unlink()
    status = 0
    files = [path for path in build_packages(folder) if path.suffix in (".whl", ".gz")]
    # The index refuses a description that it cannot show; twine asks the index's own renderer.
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    for path in files:
        faults = faults_of_wheel(path) if path.suffix == ".whl" else faults_of_archive(path)
        sys.stdout.write(f"{path.name}: {path.stat().st_size // 1024} KiB\n")
        for fault in faults:
            sys.stdout.write(f"  {fault}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
