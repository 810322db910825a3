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

unknown_word() {
	echo "$me: unknown word '$1' (--help tells more)" >&2
	exit 2
}

# known_words 'WORD...' "$@": shows the help if that is wanted, refuses what is none of the words.
known_words() {
	local known=" $1 " word
	shift
	for word in "$@"; do
		case $word in
		-h | --help)
			help_from_header
			exit 0
			;;
		esac
		[[ -n $word && $known == *" $word "* ]] || unknown_word "$word"
	done
}

# known_suites "$@": the same for names of releases, of which none begins with a dash.
known_suites() {
	local word
	for word in "$@"; do
		case $word in
		-h | --help)
			help_from_header
			exit 0
			;;
		-* | "") unknown_word "$word" ;;
		esac
	done
}
