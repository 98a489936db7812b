"""The collectives, on ranks that are threads and may have different backends."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, TensorSpec, ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import ArgumentError, DistributedError, DTypeError, ShapeError
from tests.distributed import gradients
from tests.distributed.ranks import right, run

D = ops.distributed
MIXED = tuple(name for name in BUILTIN if is_installed(name))
THREE = (MIXED * 3)[:3]
NUMPY = ("numpy", "numpy", "numpy")


def host(tree: Any) -> Any:
    return ops.tree_map(ops.to_numpy, tree)


def terms(dtype: str, size: int, shape: tuple[int, ...] = (2, 3)) -> list[Any]:
    rng = np.random.default_rng(0)
    found = rng.normal(size=(size, *shape)) * 10
    return list(np.abs(found).astype(dtype) if dtype.startswith("u") else found.astype(dtype))


def test_a_process_that_is_alone_gets_what_it_gives(backend: str) -> None:
    tree = {"a": ops.array([1.0, 2.0]), "b": [ops.array(3), Parameter([4.0])]}
    for found in (D.all_sum(tree), D.broadcast(tree), D.all_sum(tree, deterministic=True)):
        assert host(found)["a"].tolist() == [1.0, 2.0]
        assert host(found)["b"][0].shape == ()
        assert host(found)["b"][1].tolist() == [4.0]
    assert D.all_gather(ops.array(3)).tolist() == [3]
    assert D.all_mean(ops.array([1.0])).tolist() == [1.0]
    assert (D.rank(), D.size()) == (0, 1)
    D.barrier()


@pytest.mark.parametrize("deterministic", [False, True])
def test_sums_of_ranks_with_different_backends(monkeypatch: pytest.MonkeyPatch, deterministic: bool) -> None:
    dtypes = ["float32", "float64", "float16", "int8", "uint8", "uint32", "int64", "uint64", "complex64"]
    given = {dtype: terms(dtype, 3) for dtype in dtypes}
    given["empty"] = [np.zeros((0, 2), np.float32)] * 3
    given["scalar"] = [np.asarray(rank + 0.5, np.float32) for rank in range(3)]
    expected = {
        name: sum(x.astype("complex128" if "comp" in name else "float64") for x in xs) for name, xs in given.items()
    }

    def program(world: Any) -> Any:
        tree = {name: ops.convert_to_tensor(x[world.rank]) for name, x in given.items()}
        found = D.all_sum(tree, deterministic=deterministic, bucket_bytes=16)
        assert {name: ops.dtype(x) for name, x in found.items()} == {name: ops.dtype(x) for name, x in tree.items()}
        return host(found)

    results = right(run(monkeypatch, THREE, program))
    for name, want in expected.items():
        for result in results:
            assert result[name].shape == want.shape
            if name in ("int8", "uint8"):
                want = want.astype("int64").astype(name)
            rounding = 1e-3 if name == "float16" else 1e-6
            np.testing.assert_allclose(result[name], want, rtol=rounding, atol=rounding)
    if deterministic:
        total = (given["float32"][0] + given["float32"][1]) + given["float32"][2]
        assert all((result["float32"] == total).all() for result in results)


def test_bfloat16_is_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1.0, 0.75 * 2.0**-8, 0.75 * 2.0**-8]

    def program(world: Any) -> Any:
        small = ops.array([values[world.rank], np.inf, np.nan], "bfloat16")
        return ops.cast(D.all_sum(small), "float32").tolist()

    for found in right(run(monkeypatch, THREE, program)):
        assert found[:2] == [1.0 + 2.0**-7, np.inf]
        assert np.isnan(found[2])


def test_the_order_of_ranks_is_that_of_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks that have each added two terms have the bits of four ranks."""
    given = terms("float32", 4, (1001,))

    def four(world: Any) -> Any:
        return host(D.all_mean(ops.convert_to_tensor(given[world.rank]), deterministic=True))

    def two(world: Any) -> Any:
        pair = ops.add(*(ops.convert_to_tensor(x) for x in given[2 * world.rank : 2 * world.rank + 2]))
        return host(ops.divide(D.all_sum(pair, deterministic=True), 4.0))

    wanted = ((given[0] + given[1]) + (given[2] + given[3])) / np.float32(4)
    for found in right(run(monkeypatch, ("numpy",) * 4, four)) + right(run(monkeypatch, ("numpy",) * 2, two)):
        assert (found == wanted).all()


def test_what_is_not_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        rank = world.rank
        x = ops.array([[rank, 2.0], [3.0, rank]])
        flags = ops.array([rank > 0, True])
        gathered, shared = D.all_gather({"x": x, "flags": flags}), D.broadcast({"x": x, "flags": flags}, 2)
        part = D.reduce_scatter(ops.add(ops.arange(6, dtype="float32"), float(rank)))
        if rank == 0:
            D.send([x, flags], 2)
        got = host(D.recv([TensorSpec((2, 2)), TensorSpec((2,), "bool")], 0)) if rank == 2 else None
        D.barrier()
        return host(gathered), host(shared), part.tolist(), got

    for rank, (gathered, shared, part, got) in enumerate(right(run(monkeypatch, THREE, program))):
        assert gathered["x"].shape == (6, 2)
        assert gathered["x"][:, 0].tolist() == [0.0, 3.0, 1.0, 3.0, 2.0, 3.0]
        assert gathered["flags"].tolist() == [False, True, True, True, True, True]
        assert shared["x"].tolist() == [[2.0, 2.0], [3.0, 2.0]]
        assert shared["flags"].tolist() == [True, True]
        assert part == [6.0 * rank + 3.0, 6.0 * rank + 6.0]
        assert got is None or (got[0].tolist(), got[1].tolist()) == ([[0.0, 2.0], [3.0, 0.0]], [False, True])


def test_rows_that_cannot_be_divided_among_the_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        said = []
        for shape in ((4,), (), (2, 3)):
            with pytest.raises(ShapeError, match="expected a first axis that divides by the 3 ranks") as caught:
                D.reduce_scatter(ops.ones(shape))
            said.append(str(caught.value))
        assert D.reduce_scatter(ops.ones((3, 2))).tolist() == [[3.0, 3.0]]
        return said

    for said in right(run(monkeypatch, NUMPY, program)):
        assert [f"has shape {shape}" in text for shape, text in zip(("(4,)", "()", "(2, 3)"), said, strict=True)] == [
            True
        ] * 3


def test_gradients_are_those_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of the whole run is the sum of the losses of the ranks."""
    wanted = gradients.of_one_process(3)
    xs, weights = gradients.given(3)

    def program(world: Any) -> Any:
        weight = Parameter(ops.convert_to_tensor(xs[world.rank]))
        ops.backward(lambda: gradients.loss(D.all_sum, weight.value, weights[world.rank]), weight)
        return {**gradients.of_rank(world.rank, 3), "backward": host(weight.grad)}

    for rank, found in enumerate(right(run(monkeypatch, THREE, program))):
        for name, rows in {**wanted, "backward": wanted["all_sum"]}.items():
            np.testing.assert_allclose(found[name], rows[rank], rtol=1e-6, err_msg=name)


def test_second_derivatives_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        second = ops.grad(lambda v: ops.sum(ops.grad(lambda u: ops.sum(D.all_sum(ops.power(u, 3.0))))(v)))
        x = ops.array([2.0, 3.0])
        found = second(x).tolist()

        def chain(v: Any) -> Any:  # rank 0 computes a part, rank 1 goes on with it
            if world.rank == 0:
                return ops.multiply(ops.sum(D.send(ops.square(v), 1)), 0.0)
            return ops.sum(ops.power(D.recv(v, 0), 2.0))

        return found, ops.grad(chain)(x).tolist()

    first, other = right(run(monkeypatch, (MIXED * 2)[:2], program))
    # d/dv of sum over ranks of 3 v^2 by all_sum twice: each cotangent of 1 comes from both ranks.
    assert first[0] == other[0] == [24.0, 36.0]
    assert first[1] == [4.0 * 8.0, 4.0 * 27.0]
    assert other[1] == [0.0, 0.0]


def test_checked_mode_names_the_rank_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any, kind: str = "") -> Any:
        with ops.checked():
            D.all_sum(ops.ones((2,)))
            odd = world.rank == 1
            with pytest.raises(DistributedError) as caught:
                if kind == "shape":
                    D.all_sum({"w": ops.ones((3,) if odd else (2,))})
                elif kind == "dtype":
                    D.all_gather([ops.ones((2,), "int32" if odd else "float32")])
                elif kind == "root":
                    D.broadcast(ops.ones((2,)), 1 if odd else 0)
                elif odd:
                    D.barrier()
                else:
                    D.all_mean(ops.ones((2,)))
        return caught.value

    wanted = {
        "shape": r"rank 1 gives w: shape \(3,\), float32 \(the others: w: shape \(2,\), float32\)",
        "dtype": r"rank 1 gives 0: shape \(2,\), int32 \(the others: 0: shape \(2,\), float32\)",
        "root": r"rank 1 gives root=1 \(the others: root=0\)",
        "call": r"rank 1 calls barrier\(\), the others all_mean\(\)",
    }
    for kind, text in wanted.items():
        for error in right([[x] for x in run(monkeypatch, NUMPY, lambda world, kind=kind: program(world, kind))]):
            assert isinstance(error[0], DistributedError)
            assert error[0].ranks == (1,)
            with pytest.raises(DistributedError, match=text):
                raise error[0]


def test_wrong_arguments_are_refused_before_anything_is_carried() -> None:
    with pytest.raises(DTypeError, match=r"all_sum\(\): bool has no sum; cast it to int32"):
        D.all_sum(ops.array([True]))
    with pytest.raises(DTypeError, match=r"all_mean\(\): a tensor has dtype int64, expected a floating or complex one"):
        D.all_mean(ops.array([1]))
    with pytest.raises(ArgumentError, match=r"broadcast\(\): rank 1, expected an integer from 0 to 0"):
        D.broadcast(ops.array([1]), 1)
    with pytest.raises(ArgumentError, match=r"send\(\): rank 0, expected an integer from 0 to 0, but not 0 itself"):
        D.send(ops.array([1]), 0)
    with pytest.raises(ArgumentError, match="bucket_bytes is 0, expected a number above 0"):
        D.all_sum(ops.array([1]), bucket_bytes=0)
    with pytest.raises(ShapeError, match=r"a tensor has shape \(\), expected a first axis that divides by the 1 ranks"):
        D.reduce_scatter(ops.array(1.0))
    assert D.all_sum(ops.array([2])).tolist() == [2]


def test_a_call_after_one_that_failed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        if world.rank == 1:
            raise ValueError("it fails alone")
        with pytest.raises(DistributedError, match=r"all_sum\(\) \(call 1\) on rank \d of 3 cannot end"):
            D.all_sum(ops.ones(()))
        with pytest.raises(DistributedError, match="no longer in step since an earlier call failed"):
            D.barrier()

    results = run(monkeypatch, NUMPY, program)
    assert isinstance(results[1], ValueError)
    assert results[0] is results[2] is None


def test_many_small_tensors_take_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each collective joins 60 tensors of two dtypes into one message for each, or one of bytes."""

    def program(world: Any) -> Any:
        tree = {str(i): ops.full((3, i % 3), float(i), "float32" if i % 2 else "float64") for i in range(60)}
        found, messages = {}, {}
        for name, call in (
            ("all_sum", D.all_sum),
            ("all_mean", lambda x: D.all_mean(x, deterministic=True)),
            ("all_gather", D.all_gather),
            ("reduce_scatter", D.reduce_scatter),
            ("broadcast", D.broadcast),
            ("message", lambda x: D.send(x, 1) if world.rank == 0 else D.recv(x, 0) if world.rank == 1 else x),
        ):
            before = world.transport.messages
            found[name] = host(call(tree))
            messages[name] = world.transport.messages - before
        return found, messages

    for rank, (found, messages) in enumerate(right(run(monkeypatch, THREE, program))):
        wanted = {"all_sum": 2, "all_mean": 4, "all_gather": 1, "reduce_scatter": 2, "broadcast": 1}
        assert messages == {**wanted, "message": rank < 2}
        for i in range(60):
            given = np.full((3, i % 3), float(i), "float32" if i % 2 else "float64")
            results = {
                **dict.fromkeys(("all_mean", "broadcast", "message"), given),
                "all_sum": 3 * given,
                "all_gather": np.concatenate([given] * 3),
                "reduce_scatter": 3 * given[:1],
            }
            for name, result in results.items():
                np.testing.assert_array_equal(found[name][str(i)], result, err_msg=name)
                assert found[name][str(i)].dtype == result.dtype


def test_other_transforms_of_a_process_that_is_alone(backend: str) -> None:
    def tripled(x: Any) -> Any:
        return ops.multiply(D.all_sum(ops.multiply(x, 2.0)), 1.5)

    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    assert ops.jvp(tripled, (x,), (ops.full_like(x, 2.0),))[1].tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert ops.vmap(tripled)(x).tolist() == ops.multiply(x, 3.0).tolist()
