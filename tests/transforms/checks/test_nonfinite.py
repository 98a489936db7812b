"""The check "nan": each birth of a NaN or infinity is named on every backend, forwards and backwards, and no more."""

import contextlib
import gc
import pickle
import re
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, nn, ops, optim
from emberharmony.errors import ArgumentError, CheckWarning, NonFiniteError
from emberharmony.transforms.checks import nonfinite
from emberharmony.transforms.observe import is_observing

INFINITE = float("inf")


def array(*values: float) -> Any:
    return ops.array(list(values))


class Scaled(nn.Module):
    def __init__(self) -> None:
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Identity())
        self.scale = nn.Parameter([1.0, 0.0, 1.0])

    def __call__(self, x: Any) -> Any:
        return ops.divide(self.inner(x), self.scale.value)


def halves(value: float) -> Any:
    return ops.full((2, 64), value, dtype="float16")


# By name: the program, the op at fault, and what the message says about the cause.
FORWARD: dict[str, tuple[Callable[[], Any], str, str]] = {
    "division": (lambda: ops.divide(array(1.0, 2.0), array(0.0, 1.0)), "divide", "1 infinity of 2.*x2 holds 1 zero"),
    "0 / 0": (lambda: ops.divide(ops.zeros((2, 3)), ops.zeros(3)), "divide", r"6 NaN of 6.*\(0, 0\): x2 holds 3 zeros"),
    "log of 0": (lambda: ops.log(array(1.0, 0.0)), "log", r"first at \(1,\): x holds 1 zero"),
    "log of negative": (lambda: ops.log(array(-1.0, 2.0)), "log", "1 NaN of 2.*x holds 1 negative number"),
    "sqrt": (lambda: ops.sqrt(array(4.0, -4.0, -1.0)), "sqrt", "2 NaN of 3.*x holds 2 negative numbers"),
    "rsqrt": (lambda: ops.rsqrt(array(0.0)), "rsqrt", "x holds 1 zero"),
    "exp": (lambda: ops.exp(array(100.0, 1.0)), "exp", r"overflow of float32.*max\|x\| is 100"),
    "half precision": (
        lambda: ops.matmul(halves(200.0), ops.transpose(halves(200.0))),
        "matmul",
        r"4 infinities.*overflow of float16.*max\|x1\| is 200",
    ),
    "cast": (lambda: ops.cast(array(1e6), "float16"), "cast", "overflow of float16"),
    "0 * inf": (lambda: ops.multiply(array(0.0), array(INFINITE)), "multiply", r"x1 holds 1 zero \(0 \* inf\)"),
    "inf - inf": (lambda: ops.subtract(array(INFINITE), array(INFINITE)), "subtract", r"\(inf - inf\)"),
    "masked row": (lambda: ops.softmax(ops.full((2, 3), -INFINITE)), "softmax", "nothing but -inf has no softmax"),
    "empty mean": (lambda: ops.mean(ops.zeros(0)), "mean", "no elements"),
    "power": (lambda: ops.power(array(-1.0, 2.0), 0.5), "power", "1 negative number, raised to a fraction"),
    "arccos": (lambda: ops.arccos(array(0.5, 1.5)), "arccos", "beyond 1, up to 1.5"),
    "in a module": (lambda: Scaled()(ops.ones((2, 3))), "divide", "x2 holds 1 zero; in Scaled; at "),
}
BACKWARD: dict[str, tuple[Callable[[Any], Any], Any, str, str]] = {
    "sqrt": (lambda x: ops.sqrt(x), [0.0, 1.0], "sqrt", "holds 1 zero"),
    "masked sqrt": (lambda x: ops.where(ops.greater(x, 0.0), ops.sqrt(x), 0.0), [0.0, 1.0], "sqrt", "1 NaN of 2"),
    "power": (lambda x: ops.power(x, 0.5), [0.0, 4.0], "power", "x1 holds 1 zero"),
    "log of tiny": (lambda x: ops.log(x), [1e-40, 1.0], "log", "1 infinity of 2"),
    "square of large": (lambda x: ops.multiply(ops.sum(ops.multiply(x, 1e20)), 1e20), [1e-25], "multiply", "overflow"),
}


@pytest.mark.parametrize("name", FORWARD)
def test_a_birth_is_named_forwards(name: str, backend: str) -> None:
    run, op, cause = FORWARD[name]
    with pytest.raises(NonFiniteError, match=cause) as caught, ops.checked("nan"):
        ops.eval(ops.add(run(), 1.0))
    finding = caught.value.finding
    assert (finding.op, finding.backend, finding.backward) == (op, backend, False)
    assert re.fullmatch(r".*test_nonfinite\.py:\d+", finding.line)
    assert str(caught.value).startswith(f"{op}() on backend {backend!r} made ")


def test_results_that_wait_are_looked_at_once_they_are_many(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite, "_MOST", 4)
    added = []
    with pytest.raises(NonFiniteError, match="x holds 1 zero"), ops.checked("nan", every="step"):
        ops.log(array(1.0, 0.0))
        added.extend(ops.add(array(1.0), number) for number in range(9))
    assert len(added) < 9


@pytest.mark.parametrize("name", BACKWARD)
def test_a_birth_is_named_backwards(name: str, backend: str) -> None:
    function, x, op, cause = BACKWARD[name]
    with pytest.raises(NonFiniteError, match=cause) as caught, ops.checked("nan"):
        ops.grad(lambda x: ops.sum(function(x)))(ops.array(x, dtype="float32"))
    finding = caught.value.finding
    assert (finding.op, finding.backward) == (op, True)
    assert str(caught.value).startswith(f"the gradient of {op}()")
    assert "test_nonfinite.py:" in finding.line


def test_the_module_of_the_backward_pass_is_named(backend: str) -> None:
    class Root(nn.Module):
        def __call__(self, x: Any) -> Any:
            return ops.sqrt(x)

    net = nn.Sequential(nn.Linear(2, 2, bias=False), Root())
    with pytest.raises(NonFiniteError, match=r"in Sequential\.1"), ops.checked("nan"):
        ops.backward(lambda: ops.sum(net(ops.zeros((1, 2)))), net)


def test_a_composite_is_named_with_the_op_inside(backend: str) -> None:
    x = ops.ones((1, 4, 4, 1))
    with ops.checked("nan", policy="record") as found:
        ops.eval(ops.psnr(x, x, 1.0))
    (finding,) = found
    assert finding.op == "psnr"
    assert finding.inner == "log10"
    assert f"{finding.inner}() made it inside" in str(finding)


def test_what_is_given_or_inherited_is_no_birth(backend: str) -> None:
    with ops.checked("nan"):
        x = ops.array([np.nan, INFINITE, 1.0])
        ops.eval(ops.add(ops.multiply(x, 2.0), 1.0), ops.full((2,), -INFINITE))
        scores = ops.where(ops.array([True, False]), ops.ones(2), -INFINITE)
        assert ops.softmax(scores).tolist() == [1.0, 0.0]
        ops.grad(lambda x: ops.sum(ops.maximum(x, -INFINITE)))(array(1.0, 2.0))
        large = ops.full((8,), 3e38)  # a sum of these overflows, but none of them does
        ops.eval(ops.multiply(large, 1.0), ops.sqrt(large))


def test_a_loss_that_no_op_made_nan_is_reported_with_the_op_that_got_the_first(backend: str) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = ops.array([[np.nan, 1.0], [1.0, 1.0]])
    message = r"is NaN, and no op made it: linear\(\) got the first one, in x; in Sequential.0"
    with pytest.raises(NonFiniteError, match=message), ops.checked("nan"):
        ops.backward(lambda: ops.sum(net(x)), net)
    with ops.checked("nan"):
        ops.backward(lambda: ops.nansum(net(x)), net)  # the loss is finite
    with ops.checked("nan", policy="record") as found:
        ops.backward(lambda: ops.sum(ops.log(ops.negative(ops.abs(net(ops.add(ops.nan_to_num(x), 9.0)))))), net)
        ops.backward(lambda: ops.sum(net(x)), net)
    assert found[0].op == "log"
    assert not any("no op made it" in str(finding) for finding in found)  # the first finding says enough


def test_an_operator_that_makes_a_nan_is_found_at_the_latest_by_the_loss(backend: str) -> None:
    cell = Parameter(np.zeros(2, np.float32))

    def loss() -> Any:
        square = ops.square(cell)
        return ops.mean(square / square)

    with np.errstate(invalid="ignore"), pytest.raises(NonFiniteError) as caught, ops.checked("nan"):
        ops.backward(loss, cell)
    start = "the loss on backend 'torch' is NaN, and no op made it" if backend == "torch" else "divide() on backend"
    assert str(caught.value).startswith(start)


def test_an_operator_with_a_native_operand_hides_no_op_of_the_function(backend: str) -> None:
    weight, share = Parameter([0.0, 1.0]), ops.array([1.0, 1.0])

    def loss() -> Any:
        return ops.sum(ops.log(share * ops.multiply(weight, 1.0)))

    named = pytest.raises(NonFiniteError, match=r"log\(\) .* made 1 infinity of 2, first at \(0,\): x holds 1 zero")
    with np.errstate(divide="ignore"), named, ops.checked("nan"):
        ops.backward(loss, [weight])


@pytest.mark.parametrize("kind", ["infinite", "NaN"])
def test_a_gradient_whose_ops_are_not_seen_names_the_operator(kind: str, backend: str) -> None:
    share = ops.array([1.0 if kind == "infinite" else 0.0])
    seen = (
        "the gradient of sqrt" if backend != "mlx" else rf"a gradient on backend 'mlx' is {kind}; at .*test_nonfinite"
    )

    def slope(x: Any) -> Any:
        return ops.sum(share * ops.sqrt(x))

    with ops.checked("nan", policy="record") as findings, np.errstate(all="ignore"):
        ops.grad(slope)(ops.array([0.0]))
    assert [finding.check for finding in findings] == ["nan"]
    assert re.search(seen, str(findings[0]))
    assert ("given a traced tensor at " in str(findings[0])) == (backend == "mlx")
    with ops.checked("nan", policy="record", infinities=False) as findings, np.errstate(all="ignore"):
        ops.grad(slope)(ops.array([0.0]))
    assert len(findings) == (kind == "NaN")


def test_policies_and_kinds(backend: str) -> None:
    with pytest.warns(CheckWarning, match=r"divide\(\)"), ops.checked("nan", policy="warn"):
        ops.eval(ops.divide(array(1.0), array(0.0)))
    with ops.checked("nan", policy="record", infinities=False) as found:
        for _ in range(2):
            ops.eval(ops.divide(array(1.0), array(0.0)), ops.sqrt(array(-1.0)))
    assert [finding.op for finding in found] == ["sqrt"]  # once for each line
    with ops.checked("nan"), ops.checked(False):
        ops.eval(ops.sqrt(array(-1.0)))
    for wrong in ({"policy": "stop"}, {"every": "day"}, {"judge": "seen"}):
        with pytest.raises(ArgumentError):
            ops.checked("nan", **wrong)
    with pytest.raises(ArgumentError, match="'nam' is no check; the checks are nan, bounds, dtype"):
        ops.checked("nam")


def test_a_masked_branch_counts_only_if_it_is_used(backend: str) -> None:
    x = array(-1.0, 4.0)

    def masked(x: Any) -> Any:
        return ops.sum(ops.where(ops.greater(x, 0.0), ops.log(x), 0.0))

    with ops.checked("nan", judge="used"):
        assert ops.to_numpy(masked(x)) == pytest.approx(np.log(4.0))
        assert ops.grad(masked)(x).shape == (2,)
    with pytest.raises(NonFiniteError, match=r"log\(\).*negative"), ops.checked("nan"):
        ops.eval(masked(x))
    with pytest.raises(NonFiniteError, match=r"^log\(\).*negative") as caught, ops.checked("nan", judge="used"):
        ops.sqrt(array(-7.0))  # never used
        ops.to_numpy(ops.sum(ops.add(ops.log(x), 1.0)))
    assert caught.value.finding.op == "log"
    with pytest.raises(NonFiniteError, match=r"gradient of sqrt\(\)"), ops.checked("nan", judge="used"):
        ops.grad(lambda x: ops.sum(ops.where(ops.greater(x, 0.0), ops.sqrt(x), 0.0)))(array(0.0, 1.0))


def test_of_several_births_the_one_that_is_used_is_named(backend: str) -> None:
    for op, other in ((ops.log, ops.sqrt), (ops.sqrt, ops.log)):
        with pytest.raises(NonFiniteError) as caught, ops.checked("nan", judge="used"):
            used = op(array(-1.0, 2.0))
            other(array(-7.0))  # never used
            ops.to_numpy(ops.sum(ops.add(used, 1.0)))
        assert caught.value.finding.op == op.__name__


def test_what_is_computed_last_is_looked_at_when_the_block_ends(backend: str) -> None:
    for every in (None, "step"):
        with ops.checked("nan", policy="record", every=every) as found:
            ops.sqrt(array(-1.0))
        assert [finding.op for finding in found] == ["sqrt"]


def test_a_step_is_evaluated_once_on_mlx(monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    calls = []
    evaluate = mx.eval
    with ops.use_backend("mlx"), ops.checked("nan"):
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = optim.AdamW(net)
        x = ops.ones((2, 3))
        ops.eval(x)
        monkeypatch.setattr(mx, "eval", lambda *args: calls.append(len(args)) or evaluate(*args))
        for _ in range(3):
            loss = ops.backward(lambda: ops.mean(ops.square(net(x))), net)
            optimizer.step()
            ops.eval(loss)
    assert [count for count in calls if count > 2][:3] == [count for count in calls if count > 2]
    assert len([count for count in calls if count > 2]) <= 4


def test_when_is_chosen_by_the_caller(backend: str) -> None:
    for every in ("op", "step"):
        with ops.checked("nan", policy="record", every=every) as found:
            y = ops.sqrt(array(-1.0))
            assert len(found) == (every == "op")
            ops.eval(y)
            assert len(found) == 1


def test_an_error_is_pickled_and_a_decorator_works(backend: str) -> None:
    @ops.checked("nan")
    def root(n: int) -> Any:
        return ops.sqrt(array(-1.0)) if n == 0 else root(n - 1)

    with pytest.raises(NonFiniteError) as caught:
        root(2)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.finding == caught.value.finding
    assert ops.isnan(ops.sqrt(array(-1.0))).tolist() == [True]


def test_threads_do_not_see_the_findings_of_others(backend: str) -> None:
    def work(i: int) -> list[str]:
        if i % 2:
            ops.eval(ops.log(array(-1.0)))
            return []
        with ops.checked("nan", policy="record") as found:
            for _ in range(20):
                ops.eval(ops.sqrt(array(-1.0)))
        return [finding.op for finding in found]

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(16))) == [["sqrt"], []] * 8
    assert not is_observing()


def test_complex_and_half_numbers_are_checked(backend: str) -> None:
    z = ops.array([1 + 1j, 2 - 1j])
    with ops.checked("nan", policy="record") as found:
        ops.eval(ops.multiply(z, 2.0), ops.multiply(ops.full(9, 60000.0, dtype="float16"), 1.0))
        assert found == []
        ops.eval(ops.divide(z, 0.0))
    assert [finding.op for finding in found] == ["divide"]


def test_gradients_of_gradients_and_vmap_are_checked(backend: str) -> None:
    def curve(x: Any) -> Any:
        return ops.sum(ops.power(x, 1.5))

    with pytest.raises(NonFiniteError, match="gradient of"), ops.checked("nan"):
        ops.grad(lambda x: ops.sum(ops.grad(curve)(x)))(array(0.0, 1.0))
    with pytest.raises(NonFiniteError, match=r"log\(\)"), ops.checked("nan"):
        ops.eval(ops.vmap(ops.log)(array(1.0, 0.0)))


def test_an_array_whose_elements_lie_in_another_order_is_looked_at(backend: str) -> None:
    for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        x = ops.transpose(ops.reshape(ops.arange(-1.0, 23.0), (2, 3, 4)), axes)
        with ops.checked("nan", policy="record") as found:
            ops.eval(ops.sqrt(x))
            ops.eval(ops.sqrt(ops.add(x, 1.0)))
        assert [finding.op for finding in found] == ["sqrt"]


def rooted(x: Any) -> Any:
    """Returns a sum whose gradient is infinite where x is 0, and masked by that of relu."""
    return ops.sum(ops.sqrt(ops.relu(x)))


# By name: what computes a gradient in which the one of sqrt is born.
WITHIN: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: ops.grad(rooted)(x),
    "value_and_grad": lambda x: ops.value_and_grad(rooted)(x),
    "vjp": lambda x: ops.vjp(rooted, x)[1](ops.array(1.0)),
    "jacrev": lambda x: ops.jacrev(lambda x: ops.sqrt(ops.relu(x)))(x),
    "checkpoint": lambda x: ops.grad(ops.checkpoint(rooted))(x),
    "vmap of grad": lambda x: ops.vmap(ops.grad(rooted))(ops.stack([x, x])),
    "grad of vmap": lambda x: ops.grad(lambda x: ops.sum(ops.vmap(rooted)(ops.stack([x, x]))))(x),
    "grad of grad": lambda x: ops.grad(lambda x: ops.sum(ops.grad(rooted)(x)))(x),
    "grad of vjp": lambda x: ops.grad(lambda x: ops.sum(ops.vjp(rooted, x)[1](ops.array(1.0))[0]))(x),
}


@pytest.mark.parametrize("name", WITHIN)
def test_a_birth_that_a_later_op_masks_is_named_in_each_transform(name: str, backend: str) -> None:
    with pytest.raises(NonFiniteError, match=r"gradient of (sqrt|divide)\(\)") as caught, ops.checked("nan"):
        ops.eval(WITHIN[name](array(-1.0, 4.0)))  # twice differentiated, the division is at fault
    assert "test_nonfinite.py:" in caught.value.finding.line


def test_gradients_have_the_bits_that_they_have_outside(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 1))
    x = ops.random.normal((5, 3), seed=0)

    def gradients() -> list[Any]:
        ops.zero_grad(net)
        ops.backward(lambda: ops.mean(ops.square(net(x))), net)
        return [ops.to_numpy(cell.grad) for cell in net.parameters()]

    outside = gradients()
    with ops.checked("nan"):
        inside = gradients()
    same = np.array_equal if backend == "torch" else np.allclose  # the library's own backward pass is looked at
    assert all(same(a, b) for a, b in zip(inside, outside, strict=True))


def test_own_gradients_are_differentiated_as_outside(backend: str) -> None:
    def cubed(x: Any) -> Any:
        def own(x: Any) -> Any:
            return ops.multiply(x, 0.0), lambda x, upstream: ops.multiply(upstream, ops.power(x, 3))

        return ops.sum(ops.custom_gradient(own)(x))

    x = array(1.0, 2.0)
    for derivative in (ops.grad(cubed), ops.grad(lambda x: ops.sum(ops.grad(cubed)(x)))):
        outside = derivative(x).tolist()
        with ops.checked("nan"):
            assert derivative(x).tolist() == outside


def test_parts_of_a_gradient_may_be_left_out(backend: str) -> None:
    def quietly(x: Any) -> Any:
        with ops.checked(False):
            y = ops.sqrt(x)
        return ops.sum(ops.multiply(y, 2.0))

    with ops.checked("nan"):
        assert not ops.all(ops.isfinite(ops.grad(quietly)(array(0.0, 4.0))))


def test_checks_nest_with_each_other_and_with_records_of_the_backward_pass(backend: str) -> None:
    x = array(0.0, 4.0)
    with ops.checked("nan", policy="record") as outer, ops.checked("nan", policy="record") as inner:
        ops.eval(ops.grad(lambda x: ops.sum(ops.sqrt(x)))(x))
    assert [finding.op for finding in outer] == [finding.op for finding in inner] == ["sqrt"]
    with ops.checked("nan", policy="record") as found, ops.record(backward=True) as log:
        ops.eval(ops.grad(lambda x: ops.sum(ops.sqrt(x)))(x))
    assert [finding.op for finding in found] == ["sqrt"]
    assert {event.gradient_of for event in log} >= {"sqrt"}


def test_a_gradient_of_the_library_itself_leaves_no_tensor_behind() -> None:
    pytest.importorskip("torch")
    kept: list[Any] = []

    def loss(x: Any, wrong: bool) -> Any:
        y = ops.exp(x)
        kept.append(weakref.ref(y))
        if wrong:
            raise ValueError("the program fails")
        return ops.sum(ops.sqrt(ops.multiply(y, 0.0)))

    with ops.use_backend("torch"), ops.checked("nan", policy="record") as found:
        for wrong in (False, True):
            with contextlib.suppress(ValueError):
                ops.eval(ops.grad(lambda x, wrong=wrong: loss(x, wrong))(array(1.0, 2.0)))
    assert [finding.op for finding in found] == ["sqrt", "multiply"]
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
