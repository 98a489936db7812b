"""Samples rotate with a seed, and the order of the tests can be shuffled by one."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest, sampling

NAMES = [f"test_ops.py::test_{i}[{backend}]" for i in range(40) for backend in ("numpy", "torch")]


@pytest.fixture
def rotated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that sets the seed; the profile is not the deep one."""
    monkeypatch.setattr(sampling, "WHOLE", False)
    return lambda seed: monkeypatch.setattr(sampling, "SEED", seed)


def test_consecutive_seeds_try_every_case(rotated: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    by_name, by_place = [], set()
    for seed in range(20261128, 20261131):
        rotated(seed)
        by_name += [name for name in NAMES if sampling.is_tried(name, 3)]
        by_place |= {*sampling.portion(NAMES, 3)}
        assert sampling.portion(NAMES, 1) == NAMES
    assert sorted(by_name) == sorted(by_place) == sorted(NAMES)
    assert len(sampling.portion(NAMES[:1], 3)) == 1
    monkeypatch.setattr(sampling, "WHOLE", True)
    assert all(sampling.is_tried(name, 3) for name in NAMES)
    assert sampling.portion(NAMES, 3) == NAMES


class Item(SimpleNamespace):
    """A test; the hooks need its identity."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def collected(order: int | None, why: str = "", share: int = 1, **options: bool) -> list[str]:
    """Returns the names of the tests that run, in their order; each has a mark and a fixture of the name `why`."""
    mark = SimpleNamespace(args=(share,), kwargs=options)
    dropped: list[Any] = []
    config: Any = SimpleNamespace(
        getoption=lambda name: order if name == "--order-seed" else None,
        hook=SimpleNamespace(pytest_deselected=lambda items: dropped.extend(items)),
    )
    items: list[Any] = [
        Item(
            name=name.partition("::")[2],
            nodeid=name.replace("ops", f"ops_{i % 3}"),
            callspec=SimpleNamespace(params={"ember_backend": "torch" if "torch" in name else "numpy"}),
            get_closest_marker=lambda name: mark if name == why else None,
            fixturenames=[why],
        )
        for i, name in enumerate(NAMES)
    ]
    every = {item.nodeid for item in items}
    conftest.pytest_collection_modifyitems(config, items)
    assert {item.nodeid for item in (*items, *dropped)} == every
    return [item.nodeid for item in items]


def test_an_order_depends_on_its_seed_alone_and_keeps_files_together() -> None:
    plain, one, again, other = (collected(order) for order in (None, 1, 1, 2))
    assert one == again
    assert sorted(plain) == sorted(one) == sorted(other)
    assert len({tuple(names) for names in (plain, one, other)}) == 3
    files = [name.partition("::")[0] for name in one]
    assert sum(a != b for a, b in pairwise(files)) == 2


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({"when": "call"}, True),
        ({"when": "setup"}, False),
        ({"when": "teardown"}, False),
        ({"when": "setup", "outcome": "skipped"}, True),
        ({"when": "teardown", "outcome": "failed"}, True),
        ({"when": "teardown", "sections": [("Captured stdout teardown", "text")]}, True),
        ({"when": "setup", "duration": 2.0}, True),
    ],
)
def test_a_worker_sends_the_reports_that_are_printed(given: dict[str, Any], printed: bool) -> None:
    fields: dict[str, Any] = {"outcome": "passed", "longrepr": None, "duration": 0.01, "sections": ()} | given
    assert conftest.is_printed(pytest.TestReport("test", ("test.py", 1, "test"), {}, **fields)) is printed


def test_a_sampled_test_without_a_backend_runs_in_some_runs(rotated: Any) -> None:
    item: Any = SimpleNamespace(name="test", get_closest_marker=lambda name: SimpleNamespace(args=(3,)))
    left_out = []
    for seed in range(3):
        rotated(seed)
        left_out.append(conftest._is_left_out(item))
    assert sorted(left_out) == [False, True, True]


@pytest.mark.parametrize(("why", "share"), [("sampled", 4), ("fresh_process", 3), ("quick", 2)])
def test_some_tests_run_in_part_on_backends_other_than_numpy(why: str, share: int, rotated: Any) -> None:
    found = []
    for seed in range(share):
        rotated(seed)
        names = collected(None, why, share)
        assert sum("numpy" in name for name in names) == 40
        found += [name for name in names if "torch" in name]
    assert len(found) == len(set(found)) == 40


def test_a_test_sampled_everywhere_runs_in_part_on_numpy_too(rotated: Any) -> None:
    found = []
    for seed in range(4):
        rotated(seed)
        found += collected(None, "sampled", 4, everywhere=True)
    assert len(found) == len(set(found)) == 80


def test_the_header_prints_the_seeds() -> None:
    config: Any = SimpleNamespace(getoption=lambda name: 7)
    assert conftest.pytest_report_header(config) == f"EMBERHARMONY_TEST_SEED={sampling.SEED}, --order-seed 7"


@pytest.mark.parametrize("order", [None, 7])
def test_a_failure_of_a_seeded_run_says_how_to_repeat_it(order: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "SEED", 20261128)
    monkeypatch.setattr(conftest, "WHOLE", False)
    params = SimpleNamespace(args=("tests/ops", "--order-seed", "7"))
    config = SimpleNamespace(getoption=lambda name: order, invocation_params=params)
    item: Any = SimpleNamespace(nodeid="tests/a.py::test_b[c d]", config=config)
    for failed in (False, True):
        report: Any = SimpleNamespace(failed=failed, sections=[])
        hook = conftest.pytest_runtest_makereport(item, Any)  # type: ignore[arg-type]
        next(hook)
        with pytest.raises(StopIteration):
            hook.send(report)
        what = "'tests/a.py::test_b[c d]'" if order is None else "tests/ops --order-seed 7"
        wanted = [("to repeat", f"EMBERHARMONY_TEST_SEED=20261128 python -m pytest {what}")]
        assert report.sections == (wanted if failed else [])
