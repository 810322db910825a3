# SPDX-License-Identifier: BSD-3-Clause
"""Parts of uwarp-run, and what other tools have of it."""

EXIT_SETUP, EXIT_USAGE, EXIT_NOT_RUNNABLE, EXIT_NOT_FOUND = 1, 2, 126, 127


class Refusal(Exception):
    """One line for the user, and the exit code that goes with it."""

    def __init__(self, text, code=EXIT_SETUP):
        super().__init__(text)
        self.code = code
