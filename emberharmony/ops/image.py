"""Images: colours, patches, resampling, warping."""

from emberharmony.core.names.spaces import fill
from emberharmony.ops import _modules

fill(globals(), _modules, ("images.image_ops", "images.resampling", "images.warping"))
