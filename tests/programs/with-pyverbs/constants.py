# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs' constants: the modules that hold them have other names in later versions."""

try:
    import pyverbs.cm_enums as ce
    import pyverbs.enums as e
except ImportError:
    import pyverbs.libibverbs_enums as e
    import pyverbs.librdmacm_enums as ce

__all__ = ["ce", "e"]
