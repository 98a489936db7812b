"""Tools to test that backends agree: `assert_agree`, `gradcheck`, the conformance checks, a fuzzer, a pytest plugin."""

from typing import TYPE_CHECKING

from emberharmony.core.names.lazy import lazy_getattr_and_dir

if TYPE_CHECKING:
    from emberharmony.testing.agree import assert_agree as assert_agree
    from emberharmony.testing.gradient_check import gradcheck as gradcheck
    from emberharmony.testing.models.libraries import register_adapter as register_adapter

__all__ = ["assert_agree", "gradcheck", "register_adapter"]
_LAZY = {
    "assert_agree": "emberharmony.testing.agree",
    "gradcheck": "emberharmony.testing.gradient_check",
    "register_adapter": "emberharmony.testing.models.libraries",
}

# pytest loads this package with the plugin in every run, and many runs need no op.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_getattr_and_dir(__name__, _LAZY)
