"""The scripts that read a source tree of Keras: `tools/keras_signatures.py` and `tools/keras_tests.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("numpy", "math", "nn", "linalg", "core", "einops", "image")
TESTS = """
import numpy as np
import pytest
from absl.testing import parameterized

from keras.src import backend
from keras.src import testing
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.ops import numpy as knp
from keras.src.testing.test_utils import named_product


class ExampleTest(testing.TestCase):
    @parameterized.named_parameters(named_product(axis=(0, 1), keepdims=(False, True)))
    def test_sum(self, axis, keepdims):
        x = np.ones((2, 3))
        self.assertAllClose(knp.sum(x, axis=axis, keepdims=keepdims), np.sum(x, axis, keepdims=keepdims))
        self.assertAllClose(knp.Sum(axis=axis)(x), np.sum(x, axis))

    def test_symbols(self):
        self.assertEqual(knp.sum(KerasTensor((2, 3))).shape, ())

    def test_error(self):
        with self.assertRaisesRegex(ValueError, "the wording of Keras"):
            knp.reshape(np.ones(3), (2,))

    @pytest.mark.skipif(backend.backend() == "numpy", reason="skipped")
    def test_skipped(self):
        raise AssertionError

    def test_wrong(self):
        self.assertAllClose(knp.sum(np.ones(3)), 4)
"""


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a script of `tools`."""
    command = [sys.executable, str(ROOT / "tools" / script), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


@pytest.mark.fresh_process
@pytest.mark.parametrize("wrong", [True, False])
def test_the_tests_of_keras_run_on_our_ops(tmp_path: Path, wrong: bool) -> None:
    for name in (*(f"ops/{file}" for file in FILES), "random/random"):
        path = tmp_path / "keras" / "src" / f"{name}_test.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    tests = TESTS if wrong else TESTS.replace(", 4)", ", 3)")
    (tmp_path / "keras" / "src" / "ops" / "numpy_test.py").write_text(tests, encoding="utf-8")
    done = run("keras_tests.py", tmp_path, "--backend", "numpy")
    assert done.returncode == (1 if wrong else 0), done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("failed: ops.numpy_test.ExampleTest.test_wrong: AssertionError") == wrong
    passed = "5 passed (83.3 %" if wrong else "6 passed (100.0 %"
    assert lines[wrong].startswith(f"numpy: 8 tests, 6 shared, {passed} of the shared)")
    assert sum("1 excluded: " in line for line in lines) == 2


@pytest.mark.fresh_process
def test_the_scripts_name_what_they_expect(tmp_path: Path) -> None:
    (tmp_path / "keras" / "src" / "ops").mkdir(parents=True)
    done = run("keras_signatures.py", tmp_path)
    assert done.returncode == 1
    assert "expected the unpacked sdist of Keras 3" in done.stderr
