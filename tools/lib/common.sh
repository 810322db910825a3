# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the shell tools: where things are, and how to speak.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
lib=$root/tools/lib
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
cache=${XDG_CACHE_HOME:-$HOME/.cache}/uwarp
me=${0##*/}

say() { echo "$me: $*"; }
die() {
	echo "$me: $*" >&2
	exit 1
}

# The comment block behind the SPDX line of a script is its help.
help_from_header() { sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }
