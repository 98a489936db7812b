"""Rows of `ops/device.py`. The results depend on the machine, so `tests/ops/test_device.py` checks these ops."""

from emberharmony.testing.sample import by_tests

SAMPLES = [
    by_tests("get_device", ("ops.ones((3,))",)),
    by_tests("to_device", ("ops.ones((3,))", "'cpu'")),
    by_tests("get_available_devices"),
    by_tests("get_default_device"),
    by_tests("set_default_device", ("None",), ("'cpu'",)),
    by_tests("synchronize"),
    by_tests("memory_info"),
]
