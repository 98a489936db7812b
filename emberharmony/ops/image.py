"""Images: colours, patches, resampling, warping."""

from emberharmony.core.names.spaces import fill_namespace
from emberharmony.ops import _modules

fill_namespace(globals(), _modules, ("images.image_ops", "images.resampling", "images.warping"))
