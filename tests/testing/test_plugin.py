"""The pytest plugin in a user's test suite, with the examples of `docs/testing.md`."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from emberharmony.backend.discovery import BUILTIN, create_backend, is_installed

pytest_plugins = "pytester"

INSTALLED = [name for name in BUILTIN if is_installed(name)]
for _name in INSTALLED:
    # pytester removes modules that a run imports first from `sys.modules`; importing torch twice ends the process.
    create_backend(_name)
PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PLAIN = """
from emberharmony import ops

def test_it(ember_backend):
    assert ops.get_backend() == ember_backend
"""


@pytest.fixture(autouse=True, scope="module")
def _keeps_what_torch_loads_late() -> None:
    """Imports a module that PyTorch loads late and cannot import twice, so that pytester does not remove it."""
    if "torch" in INSTALLED:
        import_module("torch._inductor.test_operators")


def run(pytester: pytest.Pytester, program: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(program)
    return pytester.runpytest("-p", "no:cacheprovider", "--strict-markers", "-rsx", *options)


def test_a_test_runs_on_each_installed_backend(pytester: pytest.Pytester, backend: str) -> None:
    from emberharmony import ops

    result = run(pytester, PLAIN, "-v")
    result.assert_outcomes(passed=len(INSTALLED))
    result.stdout.fnmatch_lines([f"*test_it[[]{name}[]] PASSED*" for name in INSTALLED])
    assert ops.get_backend() == backend


def test_the_former_backend_is_restored_after_a_failure(pytester: pytest.Pytester) -> None:
    program = """
    from emberharmony import ops
    ops.set_backend("numpy")

    def test_fails(ember_backend):
        assert not ember_backend

    def test_after():
        assert ops.get_backend() == "numpy"
    """
    run(pytester, program).assert_outcomes(failed=len(INSTALLED), passed=1)


def test_other_tests_and_earlier_fixtures_have_the_former_backend(pytester: pytest.Pytester) -> None:
    program = f"""
    import pytest
    from emberharmony import ops
    ops.set_backend("numpy")

    @pytest.fixture(autouse=True)
    def earlier():
        assert ops.get_backend() == "numpy"

    @pytest.mark.parametrize("number", range(2))
    def test_first(ember_backend, number):
        with ops.use_backend({INSTALLED[-1]!r}):
            ops.sin(1.0)
        assert ops.get_backend() == ember_backend

    def test_second():
        assert ops.get_backend() == "numpy"

    def test_third(ember_backend):
        assert ops.get_backend() == ember_backend

    @pytest.fixture(scope="module")
    def shared():
        return ops.get_backend()

    def test_fourth(ember_backend, shared):
        assert (ops.get_backend(), shared) == (ember_backend, "numpy")
    """
    run(pytester, program).assert_outcomes(passed=4 * len(INSTALLED) + 1)


def test_the_option_chooses_the_backends(pytester: pytest.Pytester) -> None:
    names = dict.fromkeys(("numpy", INSTALLED[-1]))
    result = run(pytester, PLAIN, "--ember-backend", ", ".join(names), "-v")
    result.assert_outcomes(passed=len(names))
    result.stdout.fnmatch_lines([f"*test_it[[]{name}[]]*" for name in names])


def test_an_unknown_name_in_the_option_is_a_usage_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, PLAIN, "--ember-backend", "nunpy")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*--ember-backend: no backend is named 'nunpy'; did you mean 'numpy'*"])


def test_marks_skip_or_xfail_one_backend(pytester: pytest.Pytester) -> None:
    program = """
    import pytest

    @pytest.mark.ember_skip("numpy", reason="not of interest")
    def test_skipped(ember_backend):
        assert ember_backend != "numpy"

    @pytest.mark.ember_xfail("numpy", reason="known to be wrong")
    def test_failing(ember_backend):
        assert ember_backend != "numpy"
    """
    result = run(pytester, program)
    result.assert_outcomes(skipped=1, xfailed=1, passed=2 * (len(INSTALLED) - 1))
    result.stdout.fnmatch_lines(["SKIPPED*not of interest", "XFAIL*known to be wrong"])


@pytest.mark.parametrize("mark", ["ember_skip", "ember_xfail"])
def test_a_mark_without_a_reason_is_an_error(pytester: pytest.Pytester, mark: str) -> None:
    program = f"""
    import pytest

    @pytest.mark.{mark}("numpy")
    def test_it(ember_backend):
        pass
    """
    run(pytester, program).stdout.fnmatch_lines([f"*{mark} needs a backend and a reason*"])


@pytest.mark.parametrize("mark", ["ember_skip", "ember_xfail"])
def test_a_mark_with_an_unknown_backend_is_an_error(pytester: pytest.Pytester, mark: str) -> None:
    program = f"""
    import pytest

    @pytest.mark.{mark}("mxl", reason="a typo")
    def test_it(ember_backend):
        pass
    """
    result = run(pytester, program)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*{mark}: no backend is named 'mxl'; did you mean 'mlx'?*known: numpy, torch, mlx*"])


def test_tests_without_the_fixture_run_once(pytester: pytest.Pytester) -> None:
    program = """
    import sys

    def test_plain():
        assert "emberharmony.testing.plugin" in sys.modules
    """
    run(pytester, program).assert_outcomes(passed=1)


@pytest.mark.fresh_process
def test_a_run_without_the_fixture_does_not_import_ops(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_plain():\n    assert 'emberharmony.ops' not in sys.modules\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_page_pass(pytester: pytest.Pytester, number: int) -> None:
    if '"torch"' in EXAMPLES[number] and "torch" not in INSTALLED:
        pytest.skip("torch is not installed")
    result = run(pytester, EXAMPLES[number])
    outcomes = result.parseoutcomes()
    assert outcomes["passed"]
    assert not set(outcomes) & {"failed", "errors", "xpassed"}
