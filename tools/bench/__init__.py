# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-bench: uwarp beside the raw link, the kernel's TCP and what else users would run."""
