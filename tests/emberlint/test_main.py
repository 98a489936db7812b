"""The command without its optional dependencies."""

import subprocess
import sys

HIDDEN = """
import sys

class Hider:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise ModuleNotFoundError("No module named 'click'", name="click")

sys.meta_path.insert(0, Hider())
sys.argv = ["emberlint", "--version"]
from emberlint.__main__ import main
main()
"""


def test_without_click_the_error_names_the_package_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "emberlint needs click: pip install emberlint\n"
