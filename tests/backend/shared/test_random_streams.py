"""The default streams of random numbers."""

from emberharmony.backend.shared.random_streams import DefaultStream, start_streams


def test_a_default_stream_restarts_with_each_seed() -> None:
    stream = DefaultStream(lambda seed: [seed])
    start_streams(7)
    first = stream.get()
    assert first == [7]
    assert stream.get() is first
    start_streams(7)
    assert stream.get() is not first
