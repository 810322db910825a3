# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest without KVM: an initramfs of busybox and modules, and a root file system that it has
read-only over 9p. Commands go through virtio-serial, as in tests/interop/rig."""

import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RIG = os.path.join(ROOT, "tests", "interop", "rig")
sys.path.insert(0, os.path.join(RIG, "tools"))
import ctl  # noqa: E402
import qemu  # noqa: E402

# Seconds that a guest lives if nobody ends it, and that it may take to start.
LIFE, START = 1200, 120
CTL_PORTS = 3
SCRIPTS = [os.path.join(RIG, "guest", s) for s in ("agent", "job", "waitport")]
SCRIPTS += [os.path.join(os.path.dirname(HERE), "guest", s) for s in ("inroot", "bindnic", "state")]
INIT = os.path.join(os.path.dirname(HERE), "guest", "init")
BASE_MODULES = ["virtio_pci", "virtio_net", "virtio_console", "9pnet_virtio", "9p"]


class Broken(Exception):
    """The guest or its network, not the test, does not work."""


def quietly(command, **more):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if r.returncode:
        raise Broken(f"{' '.join(command)}: {(r.stderr or r.stdout).strip()[-400:]}")
    return r.stdout


class Net:
    """A namespace with a bridge, and a tap for each of the guest's cards."""

    def __init__(self, name, prefix):
        self.name, self.prefix = name, prefix

    def ip(self, *words):
        return quietly(["ip", "-n", self.name, *words])

    def up(self, mtu, taps, mq=()):
        quietly(["ip", "netns", "add", self.name])
        self.run(["sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"])
        self.ip("link", "set", "lo", "up")
        self.ip("link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        self.ip("link", "add", "host0", "mtu", str(mtu), "type", "veth", "peer", "name", "host0p", "mtu", str(mtu))
        self.ip("link", "set", "br0", "mtu", str(mtu), "up")
        self.ip("addr", "add", f"{self.prefix}.1/24", "dev", "host0")
        for tap in taps:
            self.ip("tuntap", "add", "dev", tap, "mode", "tap", *(["multi_queue"] if tap in mq else []))
        for port in ["host0p", *taps]:
            self.ip("link", "set", port, "mtu", str(mtu), "master", "br0")
        for port in ["host0", "host0p", *taps]:
            self.ip("link", "set", port, "up")

    def down(self):
        subprocess.run(["ip", "netns", "del", self.name], stdin=subprocess.DEVNULL, capture_output=True)

    def command(self, words):
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, words):
        return quietly(self.command(words))


class Kernel:
    """A kernel image with its modules, and a static busybox for its processor. extra: {name: file} of
    modules that are not below tree."""

    def __init__(self, image, tree, busybox, extra=None):
        self.image, self.tree, self.busybox, self.extra = image, tree, busybox, dict(extra or {})
        self.release = os.path.basename(sorted(os.listdir(os.path.join(tree, "lib", "modules")))[-1])

    def module_files(self, names):
        """What these and what they need are in, without what is built in."""
        found = []
        for name in names:
            r = subprocess.run(
                ["modprobe", "-d", self.tree, "-S", self.release, "--show-depends", name], capture_output=True, text=True
            )
            if r.returncode:
                raise Broken(f"kernel {self.release} has no module {name}")
            found += [words[1] for words in map(str.split, r.stdout.splitlines()) if words and words[0] == "insmod"]
        return list(dict.fromkeys(found))

    def initramfs(self, place, modules):
        root, out = os.path.join(place, "initrd"), os.path.join(place, "initrd.gz")
        lib = os.path.join(root, "lib", "modules", self.release)
        for d in ("bin", "sbin", "rig", lib):
            os.makedirs(os.path.join(root, d), exist_ok=True)
        shutil.copy(self.busybox, os.path.join(root, "bin", "busybox"))
        for script in SCRIPTS:
            shutil.copy(script, os.path.join(root, "rig"))
        shutil.copy(INIT, os.path.join(root, "init"))
        for path in self.module_files([*BASE_MODULES, *modules]):
            to = os.path.join(root, os.path.relpath(path, self.tree))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
        for name, path in self.extra.items():
            shutil.copy(path, os.path.join(lib, name + ".ko"))
        for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
            shutil.copy(os.path.join(self.tree, "lib", "modules", self.release, name), lib)
        quietly(["depmod", "-b", root, self.release])
        quietly(["sh", "-c", f"cd {root} && find . -print0 | cpio --null -o -H newc --quiet | gzip -1 >{out}"])
        shutil.rmtree(root)
        return out


class Guest:
    """machine: QEMU's own words; devices: the cards beside eth0. share: the directory that becomes the
    root file system; tree: (directory, where it is there), one more, or None. prepare: a shell command in it
    when it has started."""

    def __init__(self, qemu, machine, devices, net, place, prepare="true"):
        self.prepare = prepare
        self.qemu, self.machine, self.devices, self.net, self.place = list(qemu), list(machine), list(devices), net, place
        self.ip, self.p = f"{net.prefix}.11", None

    def arguments(self, kernel, initrd, share, tree, append, mtu):
        args = [*self.qemu, *self.machine, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
        args += ["-serial", f"file:{self.place}/console.log", "-monitor", "unix:monitor.sock,server=on,wait=off", "-kernel", kernel.image, "-initrd", initrd]
        words = f"nics.ip={self.ip} nics.mtu={mtu} quiet panic=-1 mitigations=off nokaslr net.ifnames=0 audit=0 {append}"
        args += ["-append", words + (f" nics.tree={tree[1]}" if tree else "")]
        args += ["-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no,vhost=off"]
        offloads = f"host_mtu={mtu},csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"
        args += ["-device", f"virtio-net-pci,netdev=n0,romfile=,mac=52:54:00:79:00:0b,{offloads}"]
        args += ["-device", f"virtio-serial-pci,max_ports={CTL_PORTS + 1}"]
        for i in range(CTL_PORTS):
            args += ["-chardev", f"socket,id=c{i},path=ctl{i}.sock,server=on,wait=off"]
            args += ["-device", f"virtserialport,chardev=c{i},name=rig.ctl{i}"]
        for tag, path in (("root", share), ("tree", tree and tree[0])):
            if path:
                args += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,readonly=on,multidevs=remap"]
        return args + self.devices

    def up(self, kernel, modules, share, tree=None, append="", mtu=1500):
        args = self.arguments(kernel, kernel.initramfs(self.place, modules), share, tree, append, mtu)
        self.start(args)

    def again(self):
        """Another guest in place of this one, which broke."""
        self.down()
        self.start(self.args)

    def start(self, args):
        self.args = args
        for name in ("console.log", "qemu.log"):  # of an earlier one
            open(os.path.join(self.place, name), "w").close()
        log = open(os.path.join(self.place, "qemu.log"), "w")
        command = self.net.command(["nice", "timeout", "-k", "5", str(LIFE), *args])
        self.p = subprocess.Popen(
            command, cwd=self.place, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        patience = ctl.Patience(START)
        while "GUEST-READY" not in self.read("console.log"):
            if self.p.poll() is not None or patience.left <= 0:
                words = (self.read("qemu.log") + self.read("console.log")).strip()[-600:]
                raise Broken(f"the guest does not start: {words}")
            patience.wait(0.1, time.sleep)
        self.must(self.prepare)
        self.must("dmesg -c >/dev/null")  # what it says from now on is of the rows

    def read(self, name):
        try:
            with open(os.path.join(self.place, name), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def run(self, command, limit=60):
        """(exit status, output) of a shell command in the guest."""
        try:
            status, output = ctl.run(self.place, limit, command)
        except ctl.NoAnswer as e:
            raise Broken(f"the guest does not answer: {e}") from None
        return status, output.decode(errors="replace")

    def must(self, command, limit=60):
        status, output = self.run(command, limit)
        if status:
            raise Broken(f"in the guest: {command}: {output.strip()[-400:]}")
        return output

    def down(self):
        if self.p and self.p.poll() is None:
            os.killpg(self.p.pid, signal.SIGTERM)
            try:
                self.p.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.p.pid, signal.SIGKILL)
                self.p.wait()
