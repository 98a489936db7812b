"""Modules as arguments of transforms, on every backend: only what is trained is differentiated."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, nn, ops
from emberharmony.errors import ArgumentError
from tests.nn.behaviours import quick_compiler

X = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")


def made() -> nn.Sequential:
    """Returns a model with a frozen parameter, and with buffers of floats and integers."""
    rng = ops.random.Generator(0)
    return nn.Sequential(nn.Linear(3, 2, rng=rng), nn.BatchNorm1d(2), nn.Linear(2, 1, rng=rng)).freeze("0.bias")


def loss(net: Any) -> Any:
    return ops.sum(ops.square(net(ops.convert_to_tensor(X)))) + ops.sum(ops.square(net[1].running_mean.value))


def named(tree: nn.Sequential) -> dict[str, Any]:
    """Returns the entries of a tree like the model by the names of the model."""
    return {name: getattr(tree[int(name[0])], name[2:]) for name in made().state_dict()}


def require_like(found: nn.Sequential, wanted: dict[str, Any]) -> None:
    """Checks that a tree has these tensors in the places of the trained parameters, and None in all others."""
    for name, entry in named(found).items():
        if name in wanted:
            np.testing.assert_allclose(ops.to_numpy(entry), ops.to_numpy(wanted[name]), rtol=1e-5, atol=1e-6)
        else:
            assert entry is None


def test_grad_gives_a_module_with_the_gradients_of_what_is_trained(backend: str) -> None:
    trained, fresh = made(), made()
    _, wanted = nn.value_and_grad(trained, lambda: loss(trained))()
    before = fresh.state_dict(host=True)
    require_like(ops.grad(loss)(fresh), wanted)
    require_like(ops.value_and_grad(loss)(fresh)[1], wanted)
    require_like(ops.grad(lambda tree: loss(tree["net"]))({"net": fresh})["net"], wanted)
    require_like(ops.grad(ops.checkpoint(loss))(fresh), wanted)
    require_like(ops.jacobian(loss)(fresh), wanted)
    value, pull = ops.vjp(lambda net, x: loss(net) * x, fresh, 2.0)
    by_net, by_x = pull(1.0)
    np.testing.assert_allclose(ops.to_numpy(by_x) * 2.0, ops.to_numpy(value), rtol=1e-5)
    require_like(ops.tree_map(lambda gradient: gradient / 2.0, by_net), wanted)
    for name, after in fresh.state_dict(host=True).items():
        np.testing.assert_array_equal(after, before[name])


@pytest.mark.slow
def test_a_compiled_gradient_of_a_module_is_the_same(backend: str) -> None:
    net = made()
    with quick_compiler(backend):
        found = ops.compile(ops.grad(loss))(net)
    require_like(found, {name: x for name, x in named(ops.grad(loss)(net)).items() if x is not None})


def test_forward_mode_takes_tangents_with_or_without_those_of_constants(backend: str) -> None:
    net = made()
    gradients = ops.grad(loss)(net)
    square = sum(float(ops.sum(ops.square(each))) for each in ops.tree_leaves(gradients))
    whole = ops.tree_map(ops.ones_like, net)
    for i in range(3):
        for name, entry in vars(gradients[i]).items():
            if entry is not None and hasattr(entry, "shape"):
                setattr(whole[i], name, entry)
    for tangents in (gradients, whole):
        np.testing.assert_allclose(float(ops.jvp(loss, (net,), (tangents,))[1]), square, rtol=1e-4)
    with pytest.raises(ArgumentError, match="the tangents must form the same tree"):
        ops.jvp(loss, (net,), (net[0],))


def test_the_hessian_has_entries_for_pairs_of_trained_parameters(backend: str) -> None:
    layer = nn.Linear(2, 1).freeze("weight")
    found = ops.hessian(lambda layer: ops.sum(ops.square(layer([[1.0, 2.0], [3.0, 4.0]]))))(layer)
    assert found.weight is None
    assert found.bias.weight is None
    assert ops.to_numpy(found.bias.bias).tolist() == [[4.0]]
    specs = ops.eval_shape(ops.grad(lambda layer: ops.sum(layer([[1.0, 2.0]]))), layer)
    assert (specs.weight, specs.bias) == (None, ops.TensorSpec((1,)))


def test_ensembles_are_differentiated_by_vmap(backend: str) -> None:
    layers = [nn.Linear(3, 1).freeze("bias") for _ in range(2)]
    stacked = ops.tree_map(lambda *cells: Parameter(ops.stack([c.value for c in cells])), *layers)
    stacked.freeze("bias")
    found = ops.vmap(ops.grad(lambda layer: ops.sum(layer(X))))(stacked)
    np.testing.assert_allclose(ops.to_numpy(found.weight), [X.sum(0, keepdims=True)] * 2, rtol=1e-5)
    assert found.bias is None


def test_an_argument_that_is_a_cell_is_differentiated_whatever_its_kind(backend: str) -> None:
    buffer, frozen = Buffer([1.0, 2.0]), Parameter([3.0], trainable=False)
    found = ops.grad(lambda a, b: ops.sum(ops.square(a)) + ops.sum(ops.square(b)), argnums=(0, 1))(buffer, frozen)
    assert [x.tolist() for x in found] == [[2.0, 4.0], [6.0]]
    found = ops.grad(lambda tree: ops.sum(ops.multiply(tree["w"], tree["m"])))({"w": Parameter([3.0]), "m": frozen})
    assert (found["w"].tolist(), found["m"]) == ([3.0], None)
    with pytest.raises(ArgumentError, match=r"grad\(\) on backend .* no trainable Parameter in the arguments"):
        ops.grad(loss)(made().freeze())


def test_backward_and_zero_grad_take_a_module_in_every_form(backend: str) -> None:
    net, trained = made(), made()
    _, wanted = nn.value_and_grad(trained, lambda: loss(trained))()
    forms: list[Any] = [
        net,
        [net],
        {"model": net},
        net.parameters(),
        dict(net.named_parameters()),
        list(net.named_parameters()),
    ]
    for form in (*forms, None):
        net.load_state_dict(made().state_dict())
        ops.backward(lambda: loss(net), form or net.named_parameters())
        found = {name: cell.grad for name, cell in net.named_parameters()}
        assert [name for name, gradient in found.items() if gradient is None] == ["0.bias"]
        for name, gradient in wanted.items():
            np.testing.assert_allclose(ops.to_numpy(found[name]), ops.to_numpy(gradient), rtol=1e-5, atol=1e-6)
        ops.zero_grad(form or net.named_parameters())
        assert all(cell.grad is None for cell in net.parameters())


def with_statistics() -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1, rng=ops.random.Generator(0)))


@pytest.mark.parametrize("transform", ["vmap", "compile", "jvp"])
def test_statistics_are_kept_once_where_a_gradient_contains_another_transform(backend: str, transform: str) -> None:
    if backend == "torch" and transform == "compile":
        pytest.skip("takes seconds; tests/nn/layers/test_normalization.py compiles a layer alone")
    batches = np.stack([X, 2.0 * X[::-1] + 1.0])

    def outputs(net: nn.Sequential, transform: str) -> Any:
        if transform == "vmap":
            return ops.vmap(net)(ops.convert_to_tensor(batches))
        call = ops.compile(net) if transform == "compile" else net
        if transform == "jvp":
            call = lambda x: ops.jvp(net, (x,), (ops.ones_like(x),))[0]
        return ops.stack([call(ops.convert_to_tensor(x)) for x in batches])

    def loss(net: nn.Sequential, transform: str) -> Any:
        return ops.sum(ops.square(outputs(net, transform)))

    wanted, net, other = with_statistics(), with_statistics(), with_statistics()
    ops.backward(lambda: loss(wanted, "none"), wanted)
    ops.backward(lambda: loss(net, transform), net)
    _, gradients = nn.value_and_grad(other, lambda: loss(other, transform))()
    for name, cell in wanted.named_parameters():
        for found in (dict(net.named_parameters())[name].grad, gradients[name]):
            np.testing.assert_allclose(ops.to_numpy(found), ops.to_numpy(cell.grad), rtol=1e-4, atol=1e-5)
    for name, value in wanted.state_dict(host=True).items():
        for each in (net, other):
            np.testing.assert_allclose(each.state_dict(host=True)[name], value, rtol=1e-5, atol=1e-6)


def test_what_a_functional_call_assigns_does_not_end_its_vectorization(backend: str) -> None:
    net, calls = with_statistics(), []

    def one(weight: Any) -> Any:
        calls.append(1)
        return nn.functional_call(net, {"1.weight": weight}, ops.convert_to_tensor(X))

    found = ops.vmap(one)(ops.stack([ops.zeros((1, 3)), net[1].weight.value]))
    np.testing.assert_allclose(ops.to_numpy(found[1]), ops.to_numpy(with_statistics()(X)), rtol=1e-5, atol=1e-6)
    assert len(calls) == 1
    assert int(net[0].num_batches_tracked.value) == 0


def test_a_compiled_function_in_a_gradient_has_the_layers_of_each_call(backend: str) -> None:
    rng = ops.random.Generator(0)
    net = nn.Sequential(nn.Linear(3, 3, rng=rng), nn.Linear(3, 3, rng=rng), nn.Linear(3, 3, rng=rng))

    def call(layer: Any, x: Any) -> Any:
        return layer(x)

    def loss_of(run: Any) -> Any:
        return ops.sum(ops.square(run(net[2], run(net[1], run(net[0], ops.convert_to_tensor(X))))))

    expected, gradients = nn.value_and_grad(net, lambda: loss_of(call))()
    with quick_compiler(backend):
        compiled = ops.compile(call)
        value, compiled_gradients = nn.value_and_grad(net, lambda: loss_of(compiled))()
    np.testing.assert_allclose(ops.to_numpy(value), ops.to_numpy(expected), rtol=1e-5)
    for name, gradient in gradients.items():
        ours = ops.to_numpy(compiled_gradients[name])
        np.testing.assert_allclose(ours, ops.to_numpy(gradient), rtol=1e-4, atol=1e-5, err_msg=name)
