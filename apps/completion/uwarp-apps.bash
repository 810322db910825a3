# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash: commands first, long options as --help lists them (_longopt is bash-completion's).
_uwarp_apps() {
	local commands
	case ${1##*/} in
	uwarp-kv) commands="serve run check move where front" ;;
	uwarp-seq) commands="serve take audit" ;;
	*) commands="serve run" ;;
	esac
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$2")
	else
		_longopt "$@"
	fi
}
complete -F _uwarp_apps uwarp-kv uwarp-btree uwarp-seq uwarp-rate
