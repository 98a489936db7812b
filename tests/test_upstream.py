"""The faults of libraries that `docs/upstream.md` lists: each block shows one, until its library has mended it."""

import importlib
import platform
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony.backend.discovery import is_installed

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "upstream.md").read_text(encoding="utf-8")
SECTIONS = {"NumPy": "numpy", "PyTorch": "torch", "MLX": "mlx"}
VERSIONS = re.search(r"The values are those of (.*?) on a CPU", PAGE, re.DOTALL)[1].replace(",", " ").split()  # type: ignore[index]
ANY = ("an error", "arbitrary numbers")


class Fault(NamedTuple):
    """An entry of the page: the expected and the found value as `repr` shows them, an error by its name and message."""

    library: str
    title: str
    code: str
    expected: str
    found: str
    files: list[str]


def entries() -> list[Fault]:
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        for entry in re.split(r"^### ", body, flags=re.MULTILINE)[1:]:
            title, _, rest = entry.partition("\n")
            code, _, text = rest.partition("```python\n")[2].partition("```\n")
            line = " ".join(text.split())
            match = re.match(rf"Expected ({ANY[0]}|`.*?`), found ({ANY[1]}|`.*?`)\. Workaround: ", line)
            assert match, title
            files = re.findall(r"`(emberharmony/[\w/]+\.py)`", line)
            found.append(Fault(SECTIONS[heading], title, code, match[1].strip("`"), match[2].strip("`"), files))
    return found


ENTRIES = entries()


def version(library: str) -> str:
    """Returns the version of an installed library."""
    return str(importlib.import_module("mlx.core" if library == "mlx" else library).__version__).partition("+")[0]


def shown(code: str) -> tuple[str, bool]:
    """Returns what a block finds, and whether it is an error."""
    scope: dict[str, Any] = {"np": np}
    for name, module in (("torch", "torch"), ("F", "torch.nn.functional"), ("mx", "mlx.core")):
        if re.search(rf"\b{name}\.", code):
            scope[name] = importlib.import_module(module)
    try:
        exec(code, scope)
    except Exception as error:  # noqa: BLE001  (an error is what some blocks show, or should show)
        return f"{type(error).__name__}: {error}", True
    return repr(scope["found"]), False


@pytest.mark.parametrize("fault", ENTRIES, ids=[f"{x.library}-{i}" for i, x in enumerate(ENTRIES)])
@pytest.mark.filterwarnings("ignore")
def test_the_fault_is_still_there(fault: Fault) -> None:
    if not is_installed(fault.library):
        pytest.skip(f"{fault.library} is not installed")
    found, failed = shown(fault.code)
    stated = version(fault.library) in VERSIONS and sys.platform == "linux" and platform.machine() == "x86_64"
    is_right = failed if fault.expected == ANY[0] else found == fault.expected
    if not stated:
        if is_right:
            here = f"{fault.library} {version(fault.library)} on {sys.platform} {platform.machine()}"
            pytest.skip(f"{fault.title}: right in {here}; the workaround is in {fault.files}")
        return
    assert not is_right, f"{fault.title}: gives {found}, as it should, so the page is wrong"
    assert fault.found in (ANY[1], found), f"{fault.title}: gives {found}, the page says {fault.found}"


def test_each_workaround_names_its_library() -> None:
    for fault in ENTRIES:
        for file in fault.files:
            assert (ROOT / file).is_file(), (fault.title, file)
    assert sum(not fault.files for fault in ENTRIES) == 1
    assert len(ENTRIES) == PAGE.count("```python")
