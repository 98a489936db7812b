"""Rows of `ops/device.py`. The results depend on the machine, so `tests/ops/test_device.py` checks these ops."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample(op, str, (), reference="tests")
    for op in (
        *("get_device", "to_device", "get_available_devices", "get_default_device", "set_default_device"),
        *("synchronize", "memory_info"),
    )
]
