"""The programs of the gallery run on every backend, and each draws one picture."""

import runpy
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PROGRAMS = sorted(path.name for path in GALLERY.glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("program", PROGRAMS)
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


def test_the_gallery_has_ten_programs_that_need_nothing_else() -> None:
    assert len(PROGRAMS) >= 10
    for program in PROGRAMS:
        text = (GALLERY / program).read_text(encoding="utf-8")
        assert text.startswith('"""\n'), f"{program} starts with its title"
        assert "from emberharmony import" in text
