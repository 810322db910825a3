# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tools that fetch from this machine's Debian mirror without touching the
# machine's own apt state. Nothing here names a host: it is all read from apt at run time.

apt_codename() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

apt_keyring() {
	local k
	for k in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
		[ -e "$k" ] && { echo "$k"; return; }
	done
	return 1
}

# The mirrors of this machine that carry its own release, whatever form its sources have.
# Other repositories (security, third parties) do not have that suite name.
apt_mirrors() {
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk -v c="$(apt_codename)" '$3 == "main" && ($2 == c || $2 == "stable" || $2 == "testing" || $2 == "unstable" || $2 == "sid") { print $1 }' |
		sort -u
}

# The machine's proxies, timeouts and certificates, but none of its hooks.
apt_transport_settings() {
	apt-config dump | grep -E '^Acquire::(http|https|Retries|Check|Queue|Force|By-Hash|GzipIndexes)' || true
}

# apt_private DIR TYPE MIRROR SUITE ARCH: an apt of its own in DIR that knows one suite of one
# mirror; afterwards APT_CONFIG=DIR/apt.conf makes apt-get use it. TYPE is deb or deb-src.
apt_private() {
	local dir=$1 type=$2 mirror=$3 suite=$4 arch=$5
	mkdir -p "$dir"/{lists/partial,cache/archives/partial,files}
	: >"$dir/status"
	echo "$type [signed-by=$(apt_keyring)] $mirror $suite main" >"$dir/sources.list"
	apt_transport_settings >"$dir/apt.conf"
	cat >>"$dir/apt.conf" <<-EOF
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Get::AllowUnauthenticated "false";
		APT::Install-Recommends "false";
		Acquire::Languages "none";
		Dir::Etc::parts "$dir/none";
		Dir::Etc::main "$dir/none";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "$dir/none";
		Dir::Etc::preferences "$dir/none";
		Dir::Etc::preferencesparts "$dir/none";
		Dir::State "$dir";
		Dir::State::lists "$dir/lists";
		Dir::State::status "$dir/status";
		Dir::Cache "$dir/cache";
	EOF
	# as root apt downloads as its own user, who must reach these directories
	if [ "$(id -u)" = 0 ] && id _apt >/dev/null 2>&1; then
		chmod 755 "$dir"
		chown _apt "$dir/files" "$dir/lists/partial" "$dir/cache/archives/partial"
	fi
}
