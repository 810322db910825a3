# SPDX-License-Identifier: BSD-3-Clause
"""The parts of uwarp-conform: an iWARP endpoint on ordinary TCP sockets, the table of exchanges
that it drives, and the verdicts that it draws. RFC 5040, 5041, 5044, 6581, 7306."""
