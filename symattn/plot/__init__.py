"""Pictures: each function gives a figure for ``Derivation.figure``, for a notebook, or for a file.

Charts and maps are drawn by Matplotlib (``pip install 'symattn[plot]'``) when a page or a file shows them.
"""

from .curves import kernel_regression as kernel_regression
from .curves import saturation as saturation
from .curves import variance as variance
from .flow import flow as flow
from .maps import attention_map as attention_map
from .maps import mask as mask

__all__ = ["attention_map", "flow", "kernel_regression", "mask", "saturation", "variance"]
