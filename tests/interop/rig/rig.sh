#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: rig.sh COMMAND
#
# QEMU virtual machines with a distribution kernel and siw, its software iWARP driver,
# bridged to a network namespace on this machine (README.md tells more):
#   up                        make what is missing, start the VMs
#   run 'COMMAND'             a command in VM $RIG_VM: its output, its exit status
#   ns COMMAND...             a command here, in the namespace
#   capture start FILE [DEV]  record what DEV (br0) carries ... capture stop
#   status                    which VMs run
#   down                      end everything
#   prepare                   make kernel, siw and initramfs, start nothing
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# ---- settings (environment) ---------------------------------------------------------------

: "${RIG_STATE:=${XDG_CACHE_HOME:-$HOME/.cache}/uwarp/rig}" # everything the rig writes
: "${RIG_VMS:=a}"                # VM names, separated by blanks, at most 9
: "${RIG_VM:=}"                  # the one that `run` means (default: the first)
: "${RIG_NS:=uwarp-rig}"         # network namespace on this machine
: "${RIG_NET:=10.77.0}"          # first three octets of the rig's /24
: "${RIG_MTU:=1500}"
: "${RIG_MEM:=768}"              # MiB per VM
: "${RIG_SMP:=1}"                # CPUs per VM
: "${RIG_ACCEL:=tcg,thread=multi}"
: "${RIG_CPU:=max}"
: "${RIG_OFFLOAD:=off}"          # virtio-net's checksum and segmentation offloads
: "${RIG_LIFE:=7200}"            # seconds after which a VM is ended anyway
: "${RIG_TIMEOUT:=120}"          # seconds that a `run` may take
: "${RIG_CTL_PORTS:=4}"          # commands at once per VM
: "${RIG_KERNEL_PKG:=}"          # pin a linux-image-...-amd64 package; default: the newest
: "${RIG_APPEND:=}"              # more words for the kernel's command line
: "${RIG_SIW:=stock}"            # siw loaded at boot: stock | tunable | none
: "${RIG_SIW_PARAM:=}"           # for tunable, e.g. mpa_crc_required=1,peer_to_peer=1
: "${RIG_VERBS_CONF:=/etc/libibverbs.d}" # where the distribution has its *.driver files
: "${RIG_SRC_ROOT:=/usr/src}"    # where its source and header packages unpack

modules="virtio_pci virtio_net virtio_console virtio_rng 9pnet_virtio 9p
	crc32c_generic crc32c_intel libcrc32c ib_core rdma_ucm ib_uverbs iw_cm rdma_cm rdma_rxe crc32_generic sch_netem"
programs="rdma ip tc ss ethtool tcpdump rping ucmatose rstream rcopy cmtime qperf
	ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ibv_uc_pingpong udaddy mckey
	ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat"
# commands that the rig needs on this machine, and the packages that carry them
needed="qemu-system-x86_64:qemu-system-x86 cpio:cpio busybox:busybox-static depmod:kmod
	rping:rdmacm-utils ib_write_bw:perftest qperf:qperf ibv_devinfo:ibverbs-utils
	tcpdump:tcpdump ip:iproute2 ethtool:ethtool python3:python3
	make:make gcc:gcc strip:binutils xz:xz-utils"

say() { echo "rig: $*" >&2; }
die() {
	say "$*"
	exit 1
}
help_from_header() { sed -n '/^# usage/,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
ns() { ip netns exec "$RIG_NS" "$@"; }
ns_exists() { ip netns list | awk '{print $1}' | grep -qx "$RIG_NS"; }
vms() { cat "$RIG_STATE/vms" 2>/dev/null || echo "$RIG_VMS"; }

# The address of VM $1: .11, .12, ... in the order of RIG_VMS.
vm_ip() {
	local i=11 v
	for v in $(vms); do
		[ "$v" = "$1" ] && echo "$RIG_NET.$i" && return
		i=$((i + 1))
	done
	die "no VM is called $1"
}

# ---- packages -----------------------------------------------------------------------------

check_packages() {
	local pair missing=""
	for pair in $needed; do
		command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
	done
	[ -e "$RIG_VERBS_CONF/siw.driver" ] || missing="$missing ibverbs-providers"
	[ -z "$missing" ] || die "needs packages: apt-get install --no-install-recommends$missing"
}

apt() { DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq "$@" >>"$RIG_STATE/apt.log" 2>&1; }

# Fetch packages (named by the other arguments) into folder $1; nothing is installed.
fetch() {
	local to=$1
	shift
	mkdir -p "$to"
	(cd "$to" && { apt download "$@" || { apt update && apt download "$@"; }; }) ||
		die "cannot download $*: see $RIG_STATE/apt.log"
}

# fetch_unpack DIR PACKAGE...
fetch_unpack() {
	local to=$1 from f
	shift
	from=$(mktemp -d "$RIG_STATE/fetch.XXXXXX")
	fetch "$from" "$@"
	mkdir -p "$to"
	for f in "$from"/*.deb; do dpkg-deb -x "$f" "$to"; done
	rm -rf "$from"
}

# ---- kernel and siw -----------------------------------------------------------------------

newest_kernel() {
	apt-cache show linux-image-amd64 >/dev/null 2>&1 || apt update || true
	apt-cache depends linux-image-amd64 | awk '/Depends:/ && !n++ {print $2}'
}

# siw's sources from the distribution's own source package of the same version.
siw_source() {
	local k=$1 base=$2 ver=$3 from
	from=$(mktemp -d "$RIG_STATE/fetch.XXXXXX")
	fetch "$from" "linux-source-$base=$ver"
	dpkg-deb --fsys-tarfile "$from"/*.deb | tar xO ".$RIG_SRC_ROOT/linux-source-$base.tar.xz" | xz -dc -T0 |
		tar x -C "$k" --strip-components=4 --wildcards --no-anchored \
			"linux-source-$base/drivers/infiniband/sw/siw/*" || die "no siw in linux-source-$base"
	rm -rf "$from"
}

# The compile-time settings become module parameters with the same defaults.
make_tunable() {
	local p settings="mpa_crc_required mpa_crc_strict siw_tcp_nagle peer_to_peer try_gso zcopy_tx"
	sed -i -E 's/^extern const bool (mpa_|siw_tcp|peer_|try_gso|zcopy_tx)/extern bool \1/' "$1/siw.h"
	sed -i -E 's/^const bool (mpa_|siw_tcp|peer_|try_gso|zcopy_tx)/bool \1/' "$1/siw_main.c"
	for p in $settings; do echo "module_param($p, bool, 0644);"; done >>"$1/siw_main.c"
	echo "module_param(mpa_version, byte, 0644);" >>"$1/siw_main.c"
}

build_siw() {
	local k=$1 headers=$2 kind
	for kind in stock tunable; do
		timeout 300 make -C "$headers" M="$k/siw-$kind" CONFIG_RDMA_SIW=m -j"$(nproc)" modules \
			>"$k/siw-$kind.log" 2>&1 || die "siw does not build: see $k/siw-$kind.log"
		strip -g "$k/siw-$kind/siw.ko"
		cp "$k/siw-$kind/siw.ko" "$k/siw-$kind.ko"
	done
}

# Debian's kernels have CONFIG_RDMA_SIW unset: siw is built from their source package against
# their headers. Packages are only unpacked.
kernel() {
	local k=$RIG_STATE/kernel pkg=$RIG_KERNEL_PKG rel ver base headers
	[ -s "$k/release" ] && return
	[ -n "$pkg" ] || pkg=$(newest_kernel)
	[ -n "$pkg" ] || die "cannot tell which kernel package to take: set RIG_KERNEL_PKG"
	ver=$(apt-cache policy "$pkg" | awk '/Candidate:/ && !n++ {print $2}')
	say "unpacking $pkg $ver"
	rm -rf "$k"
	fetch_unpack "$k/root" "$pkg=$ver"
	rel=$(basename "$k"/root/lib/modules/*)
	base=$(echo "$rel" | cut -d. -f1,2)
	/usr/bin/python3 "$here/tools/extract_vmlinux.py" "$k/root/boot/vmlinuz-$rel" "$k/vmlinux"
	depmod -b "$k/root" "$rel"
	say "building siw from linux-source-$base $ver"
	fetch_unpack "$k/dev" "linux-headers-$rel=$ver" "linux-headers-${rel%-amd64}-common=$ver" "linux-kbuild-$base=$ver"
	headers=$k/dev$RIG_SRC_ROOT/linux-headers-$rel
	sed -i "s#^include $RIG_SRC_ROOT/#include $k/dev$RIG_SRC_ROOT/#" "$headers/Makefile"
	siw_source "$k" "$base" "$ver"
	mv "$k/siw" "$k/siw-stock"
	cp -r "$k/siw-stock" "$k/siw-tunable"
	make_tunable "$k/siw-tunable"
	build_siw "$k" "$headers"
	rm -rf "$k/dev" "$k/siw-stock" "$k/siw-tunable"
	echo "$rel" >"$k/release"
}

# ---- initramfs ----------------------------------------------------------------------------

# Copy the libraries of ELF file $2 into tree $1, to the paths at which the loader looks.
add_libraries() {
	local lib
	ldd "$2" 2>/dev/null | awk '$2=="=>" && $3 ~ /^\//{print $3} $1 ~ /^\//{print $1}' | while read -r lib; do
		[ -e "$1$lib" ] || install -D "$(readlink -f "$lib")" "$1$lib"
	done
}

library() { ldconfig -p | awk -v l="$1" '$1==l && !n++ {print $NF}'; }

add_programs() {
	local r=$1 p file lib
	install -D "$(command -v busybox)" "$r/usr/bin/busybox"
	ln -s busybox "$r/usr/bin/sh"
	for p in $programs; do
		file=$(readlink -f "$(command -v "$p")") || die "needs the program $p"
		install "$file" "$r/usr/bin/$p"
		add_libraries "$r" "$file"
	done
	# glibc loads this one by name, for pthread_exit
	lib=$(library libgcc_s.so.1)
	install -D "$lib" "$r$lib"
	# libibverbs loads a provider by the name in its .driver file
	lib=$(dirname "$(library libibverbs.so.1)")
	install -D -t "$r$RIG_VERBS_CONF" "$RIG_VERBS_CONF"/{siw,rxe}.driver
	for file in "$lib"/libibverbs/lib{siw,rxe}-rdmav*.so; do
		install -D -t "$r$lib/libibverbs" "$file"
		add_libraries "$r" "$file"
	done
}

add_modules() {
	local r=$1 k=$2 rel=$3 m f
	mkdir -p "$r/lib/modules/$rel/updates"
	for m in $modules; do
		# what this kernel has built in has no file
		modprobe -d "$k/root" -S "$rel" --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}'
	done | sort -u | while read -r f; do install -D "$f" "$r${f#"$k/root"}"; done
	cp "$k/siw-stock.ko" "$r/lib/modules/$rel/updates/siw.ko"
	cp "$k/siw-tunable.ko" "$r/rig/siw-tunable.ko"
	cp "$k/root/lib/modules/$rel"/modules.{builtin,order,builtin.modinfo} "$r/lib/modules/$rel/"
	depmod -b "$r" "$rel"
}

initramfs() {
	local k=$RIG_STATE/kernel r=$RIG_STATE/root out=$RIG_STATE/initrd.gz rel stamp d
	rel=$(cat "$k/release")
	stamp=$(cat "$here/rig.sh" "$here"/guest/* "$k/release" | sha256sum)
	[ "$(cat "$RIG_STATE/initrd.stamp" 2>/dev/null)" = "$stamp" ] && return
	say "making the initramfs for $rel"
	rm -rf "$r"
	mkdir -p "$r"/{etc,rig,root,usr/bin,usr/sbin,usr/lib,usr/lib64}
	for d in bin sbin lib lib64; do ln -s "usr/$d" "$r/$d"; done
	install -t "$r/rig" "$here"/guest/*
	mv "$r/rig/init" "$r/init"
	printf 'root:x:0:0::/root:/bin/sh\n' >"$r/etc/passwd"
	printf 'root:x:0:\n' >"$r/etc/group"
	printf '127.0.0.1 localhost\n' >"$r/etc/hosts"
	ln -s /proc/mounts "$r/etc/mtab"
	add_programs "$r"
	add_modules "$r" "$k" "$rel"
	(cd "$r" && find . -print0 | cpio --null -o -H newc --quiet | gzip -1) >"$out"
	echo "$stamp" >"$RIG_STATE/initrd.stamp"
	rm -rf "$r"
}

# ---- network ------------------------------------------------------------------------------

no_offloads() { ns ethtool -K "$1" tx off rx off tso off gso off gro off sg off >/dev/null 2>&1 || true; }

# br0 (.1) with a tap per VM, and a veth pair whose free end, dpdk0, is for a stack in user
# space: up, no address, no offloads.
network() {
	local v d
	ns_exists || ip netns add "$RIG_NS"
	ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || true
	ns ip link set lo up
	if ! ns ip link show br0 >/dev/null 2>&1; then
		ns ip link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
		ns ip link set br0 mtu "$RIG_MTU" up
		ns ip addr add "$RIG_NET.1/24" dev br0
		ns ip link add dpdk0 mtu "$RIG_MTU" type veth peer name dpdk0p mtu "$RIG_MTU"
		ns ip link set dpdk0p master br0
		for d in br0 dpdk0 dpdk0p; do
			ns ip link set "$d" up
			no_offloads "$d"
		done
	fi
	for v in $(vms); do
		ns ip link show "tap$v" >/dev/null 2>&1 && continue
		ns ip tuntap add dev "tap$v" mode tap
		ns ip link set "tap$v" mtu "$RIG_MTU" master br0 up
	done
}

# ---- VMs ----------------------------------------------------------------------------------

# The process noted in file $1, if it is there and has word $2 on its command line.
noted_process() {
	local p
	p=$(cat "$1" 2>/dev/null) && tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q -- "$2" && echo "$p"
}
vm_process() { noted_process "$RIG_STATE/vm-$1/pid" "rig.name=$1 "; }

# $1 name, $2 last octet of its MAC address
start_vm() {
	local v=$1 d=$RIG_STATE/vm-$1 args=() offloads="" mac i
	if vm_process "$v" >/dev/null; then
		say "VM $v is up already"
		return
	fi
	rm -rf "$d"
	mkdir -p "$d"
	for ((i = 0; i < RIG_CTL_PORTS; i++)); do
		args+=(-chardev "socket,id=c$i,path=ctl$i.sock,server=on,wait=off"
			-device "virtserialport,chardev=c$i,name=rig.ctl$i")
	done
	if [ "$RIG_OFFLOAD" = off ]; then
		offloads=,csum=off,gso=off,mrg_rxbuf=off
		for i in csum tso4 tso6 ecn ufo; do offloads=$offloads,guest_$i=off; done
		for i in tso4 tso6 ecn ufo; do offloads=$offloads,host_$i=off; done
	fi
	mac=$(printf '52:54:00:77:00:%02x' "$2")
	(
		cd "$d" # the sockets are made here, under short names
		exec ip netns exec "$RIG_NS" setsid timeout -k 5 "$RIG_LIFE" \
			qemu-system-x86_64 -name "rig-$v" -accel "$RIG_ACCEL" -cpu "$RIG_CPU" \
			-machine q35,usb=off,smbus=off,sata=off -m "$RIG_MEM" -smp "$RIG_SMP" \
			-nodefaults -no-user-config -no-reboot -display none \
			-serial file:console.log -monitor none \
			-kernel "$RIG_STATE/kernel/vmlinux" -initrd "$RIG_STATE/initrd.gz" \
			-append "rig.name=$v rig.ip=$(vm_ip "$v") rig.mtu=$RIG_MTU rig.siw=$RIG_SIW rig.siwparam=$RIG_SIW_PARAM console=ttyS0 quiet panic=-1 mitigations=off nokaslr net.ifnames=0 audit=0 $RIG_APPEND" \
			-netdev "tap,id=n0,ifname=tap$v,script=no,downscript=no,vhost=off" \
			-device "virtio-net-pci,netdev=n0,mac=$mac,speed=10000,duplex=full,romfile=$offloads" \
			-device virtio-rng-pci -device virtio-serial-pci,max_ports=16 "${args[@]}" \
			-virtfs "local,path=$RIG_STATE/share,mount_tag=share,security_model=none" \
			</dev/null >qemu.log 2>&1
	) &
	echo $! >"$d/pid"
}

# Until VM $1 answers.
wait_vm() {
	local d=$RIG_STATE/vm-$1 end=$((SECONDS + 120))
	while ! grep -q RIG-READY "$d/console.log" 2>/dev/null; do
		if ! kill -0 "$(cat "$d/pid")" 2>/dev/null; then
			tail -qn 5 "$d/qemu.log" "$d/console.log" >&2 || true
			die "VM $1 ended"
		fi
		[ "$SECONDS" -lt "$end" ] || die "VM $1 is not ready after 120 s: see $d/console.log"
		sleep 0.2
	done
}

# End process $1: politely with signal $2, after 5 s for good.
end_process() {
	local i
	kill "-$2" "$1" 2>/dev/null || return 0
	for ((i = 0; i < 50; i++)); do
		[ -e "/proc/$1" ] || return 0
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null || true
}

# ---- commands -----------------------------------------------------------------------------

prepare() {
	mkdir -p "$RIG_STATE/share"
	check_packages
	kernel
	initramfs
}

up() {
	local v i=11
	[ "$(id -u)" = 0 ] || die "needs root (namespaces, taps)"
	prepare
	echo "$RIG_VMS" >"$RIG_STATE/vms"
	network
	for v in $RIG_VMS; do
		start_vm "$v" "$i"
		i=$((i + 1))
	done
	for v in $RIG_VMS; do
		wait_vm "$v"
		say "VM $v at $(vm_ip "$v"), this machine at $RIG_NET.1 in namespace $RIG_NS"
	done
}

down() {
	local v p
	for v in $(vms); do
		if p=$(vm_process "$v"); then end_process "$p" TERM; fi
		rm -f "$RIG_STATE/vm-$v/pid"
	done
	capture_stop
	if ns_exists; then ip netns del "$RIG_NS"; fi
	rm -f "$RIG_STATE/vms"
}

run() {
	local v=$RIG_VM
	[ -n "$v" ] || v=$(vms | awk '{print $1}')
	vm_process "$v" >/dev/null || die "VM $v does not run"
	/usr/bin/python3 "$here/tools/ctl.py" "$RIG_STATE/vm-$v" "$RIG_TIMEOUT" "$*"
}

status() {
	local v
	for v in $(vms); do
		if vm_process "$v" >/dev/null; then echo "$v up $(vm_ip "$v")"; else echo "$v down"; fi
	done
}

capture_process() { noted_process "$RIG_STATE/capture.pid" tcpdump; }

capture_start() {
	local i
	if capture_process >/dev/null; then die "a capture is running"; fi
	ip netns exec "$RIG_NS" setsid timeout "$RIG_LIFE" tcpdump -Z root -i "${2:-br0}" --immediate-mode -B 16384 -s 0 -U -w "$1" \
		tcp or arp or icmp </dev/null >"$RIG_STATE/capture.log" 2>&1 &
	echo $! >"$RIG_STATE/capture.pid"
	for ((i = 0; i < 50; i++)); do
		grep -q listening "$RIG_STATE/capture.log" && return
		sleep 0.1
	done
	die "tcpdump does not start: $(cat "$RIG_STATE/capture.log")"
}

capture_stop() {
	local p
	if p=$(capture_process); then
		sleep 0.5 # what is still in the kernel's buffer
		end_process "$p" INT
	fi
	rm -f "$RIG_STATE/capture.pid"
}

case ${1:-} in
up | down | status | prepare) "$1" ;;
run | ns)
	command=$1
	shift
	"$command" "$@"
	;;
capture)
	case ${2:-} in
	start) capture_start "${3:?capture start FILE [DEV]}" "${4:-}" ;;
	stop) capture_stop ;;
	*) die "capture start FILE [DEV] | capture stop" ;;
	esac
	;;
-h | --help) help_from_header ;;
*)
	help_from_header >&2
	exit 2
	;;
esac
