"""Configuration of the documentation. It writes the pages of ops and layers from docstrings before the build."""

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("EMBERHARMONY_BACKEND", "numpy")  # on which the gallery and the notebooks begin
os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when a program of the gallery imports it

from pages import write_module_pages, write_pages

from emberharmony import nn, optim
from emberharmony.version import __version__

project = "EmberHarmony"
author = copyright = "The EmberHarmony authors"
release = version = __version__
extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design", "sphinx_gallery.gen_gallery"]
myst_enable_extensions = ["colon_fence", "deflist"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
myst_heading_anchors = 3
nb_execution_mode = "cache"  # a notebook runs again after it was changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "api/gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
}
# The gallery writes each program as a notebook too, which would be a second source of its page.
exclude_patterns = ["_build", "gallery", "api/gallery/*.ipynb", "**/sg_execution_times.rst", "sg_execution_times.rst"]
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False  # pages that scripts write, as those of GitHub, have none to find
linkcheck_rate_limit_timeout = 60.0
html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "versions.html", "sidebar/search.html"),
        *("sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_context = {"versions": [line.split() for line in (HERE / "versions.txt").read_text(encoding="utf-8").splitlines()]}
pygments_dark_style = "github-dark"
html_title = "EmberHarmony"

write_pages(HERE / "api")
for package in (nn, optim):
    write_module_pages(HERE / "api" / package.__name__.rpartition(".")[2], package)


def without_blank_ends(_: Any, __: str, source: list[str]) -> None:
    """Removes the blank line that ends an example for doctest, which a page would show."""
    source[0] = re.sub(r"(^(?:>>>|\.\.\.).*(?:\n(?!```).+)*\n)\n```", r"\1```", source[0], flags=re.MULTILINE)


def only_the_branch(_: Any, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
    """Leaves in the sidebar the five entries, and below the one of the page what is beside it."""
    if toctree := context.get("toctree"):
        context["toctree"] = lambda **options: toctree(**options | {"collapse": True})


def setup(app: Any) -> None:
    """Connects the functions above to the reading and to the writing of each page, the latter before the theme's."""
    app.connect("source-read", without_blank_ends)
    app.connect("html-page-context", only_the_branch, priority=400)
