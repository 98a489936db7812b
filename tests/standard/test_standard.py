"""`ops` follows the Python array API standard 2025.12 on every backend, except for the rows of `deviations.csv`."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from tests.standard import array_object, calls, complex_special, elementwise, harness, signatures, special
from tests.standard.harness import Check, deviations, functions

CHECKS: dict[str, list[Check]] = defaultdict(list)
MODULES = (signatures, elementwise, special, complex_special, calls, array_object)
for module in MODULES:
    for found in module.checks():
        CHECKS[found.function].append(found)
NAMES = [function.name for function in functions()]
DEVIATIONS = deviations()


def _failure(check: Check) -> str:
    """Returns the error of a failing check, or an empty string."""
    try:
        check.run()
    except Exception as error:  # noqa: BLE001  (an error of any class fails the check)
        return f"{type(error).__name__}: {error}"
    return ""


def _labels(name: str, listed: Iterable[str]) -> set[str]:
    """Returns the labels of the listed deviations; one that ends in "*" means all labels with that prefix."""
    labels = [check.label for check in CHECKS[name]]
    found: set[str] = set()
    for one in listed:
        found |= {label for label in labels if label.startswith(one[:-1])} if one.endswith("*") else {one}
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_function_follows_the_standard(name: str, backend: str) -> None:
    listed = _labels(name, DEVIATIONS.get((backend, name), {}))
    failures = {check.label: failure for check in CHECKS[name] if (failure := _failure(check))}
    unlisted = [f"{label}: {failure}" for label, failure in failures.items() if label not in listed]
    assert not unlisted, f"{len(unlisted)} of {len(CHECKS[name])} checks fail\n" + "\n".join(unlisted)
    passing = sorted(listed - set(failures))
    assert not passing, f"listed as a deviation, but passes or does not exist: {passing}"


@pytest.mark.parametrize(
    "share", [pytest.param(slice(0, 1), id="first"), pytest.param(slice(1, None), id="others", marks=pytest.mark.slow)]
)
def test_the_namespace_of_a_tensor_follows_the_standard(
    share: slice, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    xp = ops.array_namespace(ops.zeros(1))
    inactive = next((name for name in BUILTIN if name != backend and is_installed(name)), backend)
    for module in (harness, *MODULES):
        monkeypatch.setattr(module, "ops", xp)
    unlisted = []
    with ops.use_backend(inactive):
        for name in NAMES:
            listed = _labels(name, DEVIATIONS.get((backend, name), {}))
            for check in CHECKS[name][share]:
                failure = "" if check.label in listed else _failure(check)
                unlisted += [f"{name}, {check.label}: {failure}"] if failure else []
    assert not unlisted, "\n".join(unlisted)


def test_default_dtypes_follow_set_default_float(backend: str) -> None:
    once = {(name, label) for name, kind, labels in calls.sections() if kind == "once" for label in labels}
    ops.set_default_float("float64")
    try:
        checks = [check for checks in CHECKS.values() for check in checks if (check.function, check.label) in once]
        failures = {check.label: failure for check in checks if (failure := _failure(check))}
    finally:
        ops.set_default_float("float32")
    assert len(checks) == len(once)
    assert not failures


def test_every_function_has_more_than_its_signature_checked() -> None:
    unchecked = [name for name in NAMES if not [c for c in CHECKS[name] if c.label != "signature"]]
    # The checks of its methods call this function, so it needs no checks of its own.
    assert unchecked == ["__array_namespace_info__"]
    assert set(CHECKS) == set(NAMES)


def test_the_labels_of_the_checks_of_a_function_are_unique() -> None:
    for checks in CHECKS.values():
        labels = [check.label for check in checks]
        assert len(set(labels)) == len(labels), sorted(label for label in labels if labels.count(label) > 1)


def test_every_deviation_names_a_backend_a_function_and_a_reason() -> None:
    for (backend, name), listed in DEVIATIONS.items():
        assert backend in BUILTIN
        assert name in NAMES
        assert all(listed.values())
        assert all(_labels(name, [label]) for label in listed)


def test_the_documentation_lists_the_deviations() -> None:
    page = (Path(__file__).parents[2] / "docs" / "standard.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("| mlx", "| numpy", "| torch"))]
    wanted = [
        f"| {backend} | `{name}` | {label} | {reason} |"
        for (backend, name), listed in DEVIATIONS.items()
        for label, reason in listed.items()
    ]
    assert rows == wanted
