"""Configuration of the documentation. It writes the pages of ops and layers from docstrings before the build."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from pages import write_module_pages, write_pages

from emberharmony import nn, optim
from emberharmony.version import __version__

project = "EmberHarmony"
author = "The EmberHarmony authors"
release = version = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"EmberHarmony {version}"

write_pages(HERE / "api")
for package in (nn, optim):
    write_module_pages(HERE / "api" / package.__name__.rpartition(".")[2], package)
