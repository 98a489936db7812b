"""The programs of the gallery run on every backend, and each draws one picture."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PROGRAMS = sorted(path.name for path in GALLERY.glob("plot_*.py"))
ALONE = "plot_scikit_learn.py"
"""The program that sets a variable which SciPy reads when it is imported."""
RUN_ALONE = """
import runpy, sys
import matplotlib.pyplot as plt
shown = []
plt.show = lambda: shown.append([axes.has_data() for axes in plt.gcf().axes])
names = runpy.run_path(sys.argv[1])
assert shown == [[True, True]], shown
groups, slopes = names["groups"], names["slopes"]
assert {float(groups[i]) for i in range(100)}.isdisjoint(float(groups[i]) for i in range(100, 300))
roots = names["root"](names["sides"])
assert float(abs(slopes * (3 * roots**2 + 1) - 1).max()) < 1e-5
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != ALONE])
def test_a_program_draws_a_picture(program: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    runpy.run_path(str(GALLERY / program))
    assert len(shown) == 1
    assert all(axes.has_data() for axes in shown[0].axes)
    plt.close("all")


@pytest.mark.slow
def test_scikit_learn_and_scipy_draw_a_picture(backend: str) -> None:
    pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("sklearn")
    if backend not in ("numpy", "torch", "mlx"):
        pytest.skip("the program is written for arrays that compute at once")
    environment = os.environ | {"MPLBACKEND": "agg", "EMBERHARMONY_BACKEND": backend}
    program = [sys.executable, "-c", RUN_ALONE, str(GALLERY / ALONE)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_gallery_has_ten_programs_that_need_nothing_else() -> None:
    assert len(PROGRAMS) >= 10
    for program in PROGRAMS:
        text = (GALLERY / program).read_text(encoding="utf-8")
        assert text.startswith('"""\n'), f"{program} starts with its title"
        assert "from emberharmony import" in text
