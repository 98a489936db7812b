"""Typical mistakes of a newcomer's first hour: a program, and how well what it prints helps.

The score is 2 if the output says what to do, 1 if it is true but shows no way out, 0 if it is raw, misleading or
silent. `says` is the part of the output that the score was given for; the tests look for it.
"""

import contextlib
import importlib.util
import io as text_io
import os
import subprocess
import sys
import traceback
import warnings
from ast import Interactive, parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import emberharmony
from emberharmony import Parameter, io, nn, ops, optim
from emberharmony.core.display.tracebacks import shorten_error
from emberharmony.core.state import hooks

ROOT = Path(__file__).parents[2]
AREAS = ("install", "shapes", "dtypes", "modules", "training", "files", "names", "notebook")
LATER = ("later", "last", "third", "fourth", "fifth", "sixth", "seventh", "classes")
"""Mistakes that were written after those of `AREAS` had been mended."""


class Mistake(NamedTuple):
    """A mistake.

    Attributes:
        name: what somebody does.
        score: 0, 1 or 2.
        program: in it `emberharmony`, its modules and NumPy as `np` are imported; the last expression is shown.
        says: a regular expression that the output contains.
        backend: on which it is made.
        fresh: whether it needs a process of its own.
        environment: variables of that process.
        shell: a command in the place of a program.
        notebook: whether the program is the cells of a notebook, separated by `# %%`.
        lines: how many lines the output may have.
        not_says: a regular expression that the output must not contain.
        needs: modules without which the mistake cannot be made.
    """

    name: str
    score: int
    program: str
    says: str = ""
    backend: str = "numpy"
    fresh: bool = False
    environment: Mapping[str, str] = {}
    shell: bool = False
    notebook: bool = False
    lines: int = 0
    not_says: str = ""
    needs: tuple[str, ...] = ()


def mistakes(areas: Sequence[str] = AREAS) -> Iterator[tuple[str, Mistake]]:
    """Yields the area of each mistake, and the mistake."""
    for area in areas:
        for mistake in importlib.import_module(f"tests.first_hour.mistakes.{area}").MISTAKES:
            yield area, mistake


def output_of(mistake: Mistake, folder: Path) -> str:
    """Returns what somebody sees: printed text, warnings, the last expression, and the end of a traceback.

    Args:
        mistake: the mistake.
        folder: where it may write files.
    """
    if mistake.shell:
        return _output_of_process(["/bin/sh", "-c", mistake.program], mistake, folder)
    if mistake.notebook:
        return output_of_cells(mistake.program.split("# %%\n"), mistake.backend)
    if mistake.fresh:
        return _output_of_process([sys.executable, "-c", mistake.program], mistake, folder)
    with contextlib.chdir(folder), ops.use_backend(mistake.backend):
        return _output_here(mistake.program)


def _output_of_process(command: list[str], mistake: Mistake, folder: Path) -> str:
    path = os.pathsep.join([str(ROOT), str(ROOT / "emberlint" / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHON": sys.executable, "CHECKOUT": str(ROOT)}
    for variable in ("EMBERHARMONY_BACKEND", "XDG_CONFIG_HOME"):
        environment.pop(variable, None)
    environment |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **mistake.environment}
    run = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return (run.stdout + run.stderr).strip()


def _output_here(program: str) -> str:
    names: dict[str, Any] = {"__name__": "__main__", "np": np, "emberharmony": emberharmony, "Parameter": Parameter}
    names |= {"io": io, "nn": nn, "ops": ops, "optim": optim}
    written = text_io.StringIO()
    with warnings.catch_warnings(record=True) as issued, contextlib.redirect_stdout(written):
        warnings.simplefilter("always")
        try:
            for code in _statements(program):
                exec(code, names)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a mistake raises is shown)
            with shorten_error(error, error.__traceback__):
                written.write("".join(traceback.format_exception_only(error)))
    shown = [f"{each.category.__name__} at {Path(each.filename).name}: {each.message}" for each in issued]
    return "\n".join([*shown, written.getvalue().strip()]).strip()


def _statements(program: str) -> Iterator[Any]:
    """Yields the code of each statement; expressions are shown as at the prompt."""
    for statement in parse(program).body:
        yield compile(Interactive([statement]), "<program>", "single")


def output_of_cells(cells: list[str], backend: str = "numpy") -> str:
    """Returns what a notebook shows of its cells: text, tables as HTML, and tracebacks without colours."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    hooks.install_hooks()  # a program in a notebook imports the library after IPython has started
    shell.colors = "nocolor"
    shell.reset(new_session=False)
    names = "Parameter, io, nn, ops, optim"
    header = f"import numpy as np\nimport emberharmony\nfrom emberharmony import {names}\nops.set_backend({backend!r})"
    shell.run_cell(header, silent=True)
    shown: list[str] = []
    for cell in cells:
        with capture_output() as captured:
            result = shell.run_cell(cell)
        shown += [captured.stdout, captured.stderr]
        shown += [data.data.get("text/html") or data.data.get("text/plain", "") for data in captured.outputs]
        if result.result is not None and not captured.outputs:
            data, _ = shell.display_formatter.format(result.result)
            shown = [*shown[:-2], captured.stderr, data.get("text/html") or data["text/plain"]]
    return "\n".join(text.strip() for text in shown if text.strip())
