"""Settings: how a path matches a pattern, and the role and the module of a path."""

from pathlib import Path

import pytest

from emberlint.config.settings import Role, Settings, matches


@pytest.mark.parametrize(
    "path, pattern, expected",
    [
        ("a/b.py", "a/*.py", True),
        ("a/b/c.py", "a/*.py", False),
        ("a/b/c.py", "a/**", True),
        ("a/b/c.py", "a", True),
        ("ab/c.py", "a", False),
        ("c.py", "**/c.py", True),
        ("a/b/c.py", "**/c.py", True),
        ("a/xc.py", "**/c.py", False),
        ("a.b/c.py", "a?b/*", True),
        ("a+b/c.py", "a+b/*.py", True),
        ("a/backend/torch/x/y.py", "**/backend/torch/**", True),
        ("a/backend/torch.py", "**/backend/torch/**", False),
    ],
)
def test_a_path_matches_a_pattern(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


@pytest.mark.parametrize(
    "path, role",
    [
        ("library/layers.py", Role("frontend")),
        ("library/core/test/helpers.py", Role("test")),
        ("library/backend/torch/math_ops.py", Role("backend", "torch")),
        ("src/library/backends/mlx/deep/math_ops.py", Role("backend", "mlx")),
        ("library/backend/numpy.py", Role("backend", "numpy")),
        ("library/backend/base.py", Role("backend")),
        ("library/backend/openvino/math.py", Role("backend")),  # a library that is not in `backends`
        ("library/tensor/numpy_backend.py", Role("backend", "numpy")),
        ("library/tensor/sparse_backend.py", Role("backend")),
        ("library/_backends.py", Role("backend")),
        ("library/ops/numpy.py", Role("frontend")),  # NumPy-style ops, not the backend
        ("library/ops/numpy/math_ops.py", Role("backend", "numpy")),
        # `testing` is part of the library, unless the project assigns another role to it
        ("library/testing/compare.py", Role("frontend")),
        ("tests/backend/torch/test_x.py", Role("test")),
        ("library/tests/backend/mlx/cases.py", Role("test")),
        ("tests/helpers.py", Role("test")),
        ("library/test_math.py", Role("test")),
        ("benchmarks/speed.py", Role("script")),
    ],
)
def test_the_role_of_a_path(path: str, role: Role) -> None:
    assert Settings().role(path) == role


def test_configured_roles_come_before_the_defaults() -> None:
    settings = Settings(roles=(("tests/**", "frontend"), *Settings().roles))
    assert settings.role("tests/helpers.py") == Role("frontend")


def test_the_role_determines_the_foreign_libraries() -> None:
    settings = Settings(backends=("numpy", "torch"), host=("numpy",))
    assert settings.foreign_libraries(Role("frontend")) == {"numpy", "torch"}
    assert settings.foreign_libraries(Role("backend", "torch")) == set()
    assert settings.foreign_libraries(Role("backend", "numpy")) == {"torch"}
    assert settings.foreign_libraries(Role("backend")) == set()
    assert settings.foreign_libraries(Role("test")) == set()


@pytest.mark.parametrize(
    "path, module",
    [("a/b.py", "a.b"), ("a/__init__.py", "a"), ("src/a/b.py", "a.b"), ("a/b.pyi", "a.b"), ("src.py", "src")],
)
def test_the_module_of_a_path(path: str, module: str) -> None:
    assert Settings(root=Path("/nowhere")).module(path) == module


@pytest.mark.parametrize(
    "path, module",
    [
        ("one/src/first/a.py", "first.a"),
        ("one/tools/b.py", "one.tools.b"),
        ("two/second/__init__.py", "second"),
        ("src/third.py", "src.third"),
    ],
)
def test_a_module_is_named_from_its_source_folder(path: str, module: str) -> None:
    assert Settings(src=("one/src", "two")).module(path) == module
    assert Settings().module("src/third.py") == "third"
