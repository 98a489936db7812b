"""Fourier transforms beyond the sample rows: errors, dtypes and inverses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors
from tests.together import together

X = np.ones((2, 4), np.float32)
Z = X.astype(np.complex64)
F = ops.fft
ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    *((lambda f=f: f(X, 0), errors.ArgumentError) for f in (F.fft, F.ifft, F.rfft, F.irfft, F.hfft, F.ihfft)),
    *((lambda f=f: f(X, -3), errors.ArgumentError) for f in (F.fft, F.ifft, F.rfft, F.irfft, F.hfft, F.ihfft)),
    *((lambda f=f: f(X, axis=2), errors.AxisError) for f in (F.fft, F.ifft, F.rfft, F.irfft, F.hfft, F.ihfft)),
    *((lambda f=f: f(X, norm="x"), errors.ArgumentError) for f in (F.fft, F.ifft, F.rfft, F.irfft, F.hfft, F.ihfft)),
    *((lambda f=f: f(X[:, :0]), errors.ArgumentError) for f in (F.fft, F.ifft, F.rfft, F.irfft, F.fftn, F.irfftn)),
    *((lambda f=f: f(X[0, 0]), errors.AxisError) for f in (F.fft, F.rfft, F.irfft, F.fft2)),
    *((lambda f=f: f(X, (2, 2), (1,)), errors.ArgumentError) for f in (F.fftn, F.ifftn, F.rfftn, F.irfftn, F.fft2)),
    *((lambda f=f: f(X, None, (1, 1)), errors.AxisError) for f in (F.fftn, F.ifftn, F.rfftn, F.irfftn, F.fft2)),
    *((lambda f=f: f(X, None, ()), errors.ArgumentError) for f in (F.fftn, F.ifftn, F.rfftn, F.irfftn)),
    (lambda: F.fftn(X, (0, 2)), errors.ArgumentError),
    *((lambda f=f: f(Z), errors.DTypeError) for f in (F.rfft, F.ihfft, F.rfftn)),
    (lambda: F.fftfreq(0), errors.ArgumentError),
    (lambda: F.rfftfreq(-1), errors.ArgumentError),
    *((lambda f=f: f(4, 0.0), errors.ArgumentError) for f in (F.fftfreq, F.rfftfreq)),
    *((lambda f=f: f(4.0), errors.ArgumentTypeError) for f in (F.fftfreq, F.rfftfreq)),
    *((lambda f=f: f(2**60), errors.OutOfMemoryError) for f in (F.fftfreq, F.rfftfreq)),
    (lambda: F.fftshift(X, 2), errors.AxisError),
    (lambda: F.ifftshift(X, (0, 0)), errors.AxisError),
    (lambda: F.stft(X, 5, 1, 4, center=False), errors.ArgumentError),
    (lambda: F.stft(X, 2, 0, 4, center=False), errors.ArgumentError),
    (lambda: F.stft(X, 2, 1.5, 4), errors.ArgumentTypeError),
    (lambda: F.istft(np.ones((3, 3), np.complex64), 2, 1.5, 4), errors.ArgumentTypeError),
    (lambda: F.stft(X, 4, 1, 4, "boxcar"), errors.ArgumentError),
    (lambda: F.stft(X, 4, 1, 4, [1.0, 2.0]), errors.ShapeError),
    (lambda: F.stft(X, 8, 1, 8, center=False), errors.ShapeError),
    (lambda: F.stft(Z, 2, 1, 2), errors.DTypeError),
    (lambda: F.stft(X[0, 0], 4, 1, 4), errors.ShapeError),
    (lambda: F.istft(Z, 4, 1, 4), errors.ShapeError),
    (lambda: F.istft(Z[:0], 4, 1, 6), errors.ShapeError),
    (lambda: F.istft(Z, 4, 1, 6, -1), errors.ArgumentError),
]


@together("call, typed", ERRORS)
def test_bad_input_raises_a_typed_error(call: Callable[[], object], typed: type[Exception], backend: str) -> None:
    with pytest.raises(typed, match=rf"\(\) on backend '{backend}'"):
        call()


def test_float64_is_transformed_in_double_precision_except_on_mlx(backend: str) -> None:
    x = np.linspace(0.0, 1.0, 6)
    wide = backend != "mlx"
    assert ops.dtype(F.fft(x)) == ("complex128" if wide else "complex64")
    assert ops.dtype(F.irfft(x)) == ("float64" if wide else "float32")
    tolerance = 1e-14 if wide else 1e-6
    assert np.allclose(ops.to_numpy(F.fft(x)), np.fft.fft(x), atol=tolerance)
    assert np.allclose(ops.to_numpy(F.rfft(x)), np.fft.rfft(x), atol=tolerance)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    norm=st.sampled_from(["backward", "ortho", "forward"]),
)
def test_inverse_transforms_undo_their_transforms(backend: str, seed: int, shape: list[int], norm: Any) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    z = (x + 1j * rng.standard_normal(shape)).astype(np.complex64)
    last = shape[-1]
    pairs = [
        (F.ifft(F.fft(z, norm=norm), norm=norm), z),
        (F.irfft(F.rfft(x, norm=norm), last, norm=norm), x),
        (F.hfft(F.ihfft(x, norm=norm), last, norm=norm), x),
        (F.ifftn(F.fftn(z, norm=norm), norm=norm), z),
        (F.irfftn(F.rfftn(x, norm=norm), shape, norm=norm), x),
        (F.ifftshift(F.fftshift(x)), x),
    ]
    for found, wanted in pairs:
        assert np.allclose(ops.to_numpy(found), wanted, atol=1e-5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    length=st.integers(20, 40),
    stride=st.integers(1, 4),
    size=st.integers(8, 11),
    window=st.sampled_from(["hann", "hamming", None]),
)
def test_istft_is_the_inverse_of_stft(
    backend: str, seed: int, length: int, stride: int, size: int, window: str | None
) -> None:
    x = np.random.default_rng(seed).standard_normal((2, length)).astype(np.float32)
    spectra = F.stft(x, 8, stride, size, window)
    back = ops.to_numpy(F.istft(spectra, 8, stride, size, length, window))
    assert back.shape == x.shape
    # The last samples are missing if no complete frame covers them.
    inside = slice(0, length - size)
    assert np.allclose(back[:, inside], x[:, inside], atol=1e-4)


def test_istft_pads_to_the_given_length_with_zeros(backend: str) -> None:
    spectra = F.stft(np.ones(16, np.float32), 4, 2, 4)
    assert ops.to_numpy(F.istft(spectra, 4, 2, 4, 20))[-2:].tolist() == [0.0, 0.0]


def test_ops_fft_is_the_namespace_and_not_the_op() -> None:
    assert ops.fft.ifft is ops.ifft
    assert ops.fft.fft(X).shape == X.shape
    assert not callable(ops.fft)


def test_the_inverse_of_an_empty_spectrum_is_zero(backend: str) -> None:
    for n in (1, 4, 5, 9):
        np.full((64, n), 1e20)  # frees memory with these values, which an uninitialised result would show
        found = ops.to_numpy(F.irfft(np.zeros((64, 0), np.complex64), n))
        assert found.shape == (64, n)
        assert not found.any()
    assert not ops.to_numpy(F.hfft(np.zeros((3, 0), np.complex64), 4)).any()


@pytest.mark.parametrize("place, name", [*enumerate(("sequence_length", "sequence_stride", "fft_length"))])
def test_a_length_that_is_no_integer_is_named(place: int, name: str, backend: str) -> None:
    lengths: list[float] = [4, 2, 4]
    lengths[place] += 0.5
    with pytest.raises(errors.ArgumentTypeError, match=rf"stft\(\) on backend '{backend}': expected an integer {name}"):
        ops.stft(np.ones(16, np.float32), *lengths)  # type: ignore[arg-type]


@pytest.mark.parametrize("f", [F.fftfreq, F.rfftfreq])
def test_frequencies_have_a_gradient_by_the_spacing(f: Callable[..., object], backend: str) -> None:
    spacing = ops.convert_to_tensor(0.5)
    assert ops.to_numpy(f(5, spacing)).tolist() == ops.to_numpy(f(5, 0.5)).tolist()
    assert ops.dtype(f(5, spacing, "float16")) == "float16"
    total = float(ops.sum(ops.square(f(5, spacing))))
    assert float(ops.grad(lambda d: ops.sum(ops.square(f(5, d))))(spacing)) == pytest.approx(-4 * total)


@pytest.mark.parametrize("f", [F.fftfreq, F.rfftfreq])
def test_a_million_frequencies(f: Callable[..., object], backend: str) -> None:
    expected = getattr(np.fft, f.__name__)(10**6, 0.1)  # type: ignore[attr-defined]
    assert np.allclose(ops.to_numpy(f(10**6, 0.1)), expected, 2.0**-23, 0.0)


@pytest.mark.parametrize("length", [3, 4, 6, 7])
def test_the_length_has_the_name_of_keras_too(length: int, backend: str) -> None:
    x = ops.convert_to_tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 4.0, -1.0]])
    tangent = ops.cos(x)
    for f, real in ((F.rfft, ops.abs), (F.irfft, ops.square)):

        def by_n(x: Any, f: Any = f, real: Any = real) -> Any:
            return ops.sum(real(f(x, n=length)))

        def by_fft_length(x: Any, f: Any = f, real: Any = real) -> Any:
            return ops.sum(real(f(x, fft_length=length)))

        for run in (
            lambda fn: fn(x),
            lambda fn: ops.grad(fn)(x),
            lambda fn: ops.jvp(fn, (x,), (tangent,))[1],
            lambda fn: ops.vmap(ops.grad(fn))(x),
        ):
            assert np.array_equal(ops.to_numpy(run(by_fft_length)), ops.to_numpy(run(by_n)))
        with pytest.raises(errors.ArgumentError, match="n=4 and fft_length=3 are names of one option"):
            f(x, 4, fft_length=3)
