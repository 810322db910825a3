# SPDX-License-Identifier: BSD-3-Clause
# Sourced by what tries things in a bare Debian: systems made by debootstrap, kept in ~/.cache/uwarp as tar files, and
# unpacked anew for every use. Needs common.sh and apt.sh, root, and $work, a folder of the caller's.

# A bare system in the cache is made anew when it is older than this.
keep_days=30
# What a machine behind a proxy needs to fetch anything; nothing else of the environment.
passed_on='^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|PROXY|TRUSTED_HOST|DEFAULT_TIMEOUT)|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE)='

# What the bare system at $1 expects of a kernel; call it in a mount namespace of its own.
mount_kernel_file_systems() {
	local r=$1 node
	mount -t proc proc "$r/proc"
	mount -t sysfs -o ro sysfs "$r/sys"
	mount -t tmpfs -o mode=755 dev "$r/dev"
	mkdir "$r"/dev/{pts,shm,net}
	for node in null zero full random urandom tty net/tun; do
		[ -e "/dev/$node" ] || continue
		: >"$r/dev/$node"
		mount --bind "/dev/$node" "$r/dev/$node"
	done
	mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$r/dev/pts"
	ln -s pts/ptmx "$r/dev/ptmx"
	ln -s /proc/self/fd "$r/dev/fd"
	mount -t tmpfs -o mode=1777 shm "$r/dev/shm"
}

# A bare system of the suite, from the cache or made now, as a tar file.
bare_system() {
	local suite=$1 tar=$cache/bare-$1-$(dpkg --print-architecture).tar.gz mirror dir
	if [ -n "$(find "$tar" -mtime "-$keep_days" 2>/dev/null)" ]; then
		return
	fi
	mirror=$(apt_mirrors | head -n 1)
	[ -n "$mirror" ] || die "found no Debian mirror in this machine's apt configuration"
	say "$suite: making a bare system with debootstrap (once in $keep_days days)"
	dir=$work/debootstrap
	debootstrap --keyring="$(apt_keyring)" "$suite" "$dir" "$mirror" >"$work/log" 2>&1 || {
		tail -n 20 "$work/log" >&2
		die "debootstrap $suite failed"
	}
	rm -f "$dir"/var/cache/apt/archives/*.deb
	mkdir -p "$cache"
	tar -C "$dir" --one-file-system -czf "$tar.new" .
	mv "$tar.new" "$tar"
	rm -rf "$dir"
}

# The machine's way to the network: name service, proxies, certificates.
copy_network_settings() {
	local r=$1 f
	cp -L /etc/resolv.conf /etc/hosts "$r/etc/"
	apt_transport_settings >"$r/etc/apt/apt.conf.d/90machine"
	for f in /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/pip.conf /usr/local/share/ca-certificates; do
		[ ! -e "$f" ] || cp -RL "$f" "$r${f%/*}/"
	done
	# apt may need them before the package ca-certificates is there
	mkdir -p "$r/etc/ssl/certs"
	[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$r/etc/ssl/certs/"
}

# unpack_bare SUITE DIR
unpack_bare() {
	bare_system "$1"
	rm -rf "$2"
	mkdir "$2"
	tar -C "$2" -xzf "$cache/bare-$1-$(dpkg --print-architecture).tar.gz"
	copy_network_settings "$2"
}
