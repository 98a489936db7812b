"""
A filter in the frequency domain
================================

A noisy signal loses its high frequencies: `ops.fft.rfft`, a mask, and `ops.fft.irfft`.
"""

import math

import matplotlib.pyplot as plt

from emberharmony import ops

time = ops.linspace(0.0, 1.0, 512, endpoint=False)
clean = ops.add(
    ops.sin(ops.multiply(time, 2 * math.pi * 5)), ops.multiply(ops.sin(ops.multiply(time, 2 * math.pi * 12)), 0.5)
)
noisy = ops.add(clean, ops.random.normal((512,), stddev=0.5, generator=ops.random.Generator(2)))

frequency = ops.fft.rfftfreq(512, d=1 / 512)
spectrum = ops.fft.rfft(noisy)
kept = ops.where(ops.less_equal(frequency, 15.0), spectrum, ops.zeros_like(spectrum))
filtered = ops.fft.irfft(kept, n=512)

plt.plot(ops.to_numpy(time), ops.to_numpy(noisy), alpha=0.4, label="measured")
plt.plot(ops.to_numpy(time), ops.to_numpy(filtered), label="filtered")
plt.plot(ops.to_numpy(time), ops.to_numpy(clean), "k--", linewidth=1, label="clean")
plt.legend(loc="upper right")
plt.show()
