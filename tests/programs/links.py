# SPDX-License-Identifier: BSD-3-Clause
"""The links that cases run over. Every case has a server's and a client's place, and a third."""

import os
import shutil
import subprocess
import sys
import tempfile

from harness import ROOT, START, UWARP_RUN, Skipped, check, die_with_parent, need, need_tree, wait_until

INSIDE = "UWARP_PROGRAMS_INSIDE"
TUN = "/dev/net/tun"


def until_isolated(holder, whose):
    """Waits until that process is in a network namespace of its own. This one is (see isolate), so the right is there."""
    here = os.readlink("/proc/self/ns/net")
    up = wait_until(lambda: holder.poll() is not None or os.readlink(f"/proc/{holder.pid}/ns/net") != here, START)
    check(holder.poll() is None, f"no network namespace for {whose}: exit code {holder.poll()}")
    check(up, f"no network namespace for {whose} after {START:g} s")


class Memif:
    """Processes of this machine, each with an address of its own."""

    name = "memif"
    addresses = {
        "server": "127.0.0.2", "client": "127.0.0.3", "third": "127.0.0.4",
        "server6": "fd75:7761:7270::127.0.0.2", "client6": "fd75:7761:7270::127.0.0.3", "local6": "fe80::7577:127.0.0.2%1",
    }  # fmt: skip

    def options(self, role):
        return ["--ip", self.addresses[role]]

    def prefix(self, _role):
        return []

    def close(self):
        pass


class Loop:
    """One process and its own address."""

    name = "loop"
    addresses = {"server": "127.0.0.2"}

    def options(self, _role):
        return ["--link", "loop"]

    def prefix(self, _role):
        return []

    def close(self):
        pass


class Host:
    """The kernel's TCP over its loopback, of which every process has an address of its own."""

    name = "socket"
    addresses = Memif.addresses

    def options(self, role):
        return ["--transport", "socket", "--ip", self.addresses[role]]

    def prefix(self, _role):
        return []

    def close(self):
        pass


class Veth:
    """Two network namespaces with a cable between them; the kernel has no address on it. The first
    namespace is this process's own (see isolate), the second ends with the process that holds it,
    and that ends with this one."""

    name = "af_packet"
    addresses = {
        "server": "10.77.0.1", "client": "10.77.0.2", "third": "10.77.0.3",
        "server6": "fd77::1", "client6": "fd77::2", "third6": "fd77::3",
        "local6": "fe80::7577:10.77.0.1%veth-b",
    }  # fmt: skip
    silent, kernel = "10.77.0.8", "10.77.0.9"
    ends = {"server": "veth-a", "client": "veth-b", "third": "veth-b"}
    unavailable = None  # why there can be none here

    def __init__(self):
        if self.unavailable:
            raise Skipped(self.unavailable)
        self.ip = need("ip")
        need("nsenter")
        self.holder = subprocess.Popen(["unshare", "--net", "--", "sleep", "3600"], preexec_fn=die_with_parent)
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    def build(self):
        until_isolated(self.holder, "the second end")
        self.cable()
        for where, end in (([], "veth-a"), (self.inside(), "veth-b")):
            self.do(where, "link set lo up")
            # no frames but those of the programs
            for name in ("all", end):
                quiet = f"echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
                subprocess.run([*where, "sh", "-c", quiet], check=False, stderr=subprocess.DEVNULL)
            self.do(where, f"link set {end} up")

    def cable(self):
        self.ip_do("server", "link add veth-a type veth peer name veth-b netns", str(self.holder.pid))

    def inside(self):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]

    def do(self, where, words):
        subprocess.run([*where, self.ip, *words.split()], check=True, stderr=subprocess.DEVNULL)

    def there(self, role, argv, check=True):
        return subprocess.run([*self.prefix(role), *argv], check=check, stderr=subprocess.DEVNULL)

    def ip_do(self, role, words, *more):
        self.there(role, [self.ip, *words.split(), *more])

    def give_kernel_an_address(self):
        """For cases whose peer is an ordinary TCP program."""
        self.ip_do("client", f"address replace {self.kernel}/24 dev veth-b")

    def options(self, role):
        return ["--link", f"af_packet:{self.ends[role]}", "--ip", f"{self.addresses[role]}/24,{self.addresses[role + '6']}/64"]

    def inside_of(self, role):
        """In front of what has our own rights, at that end."""
        return [] if self.ends[role] == "veth-a" else self.inside()

    def prefix(self, role):
        return self.inside_of(role)

    def close(self):
        # else it goes with the other namespace, some time later, and is in the next link's way
        self.there("server", [self.ip, "link", "del", "veth-a"], check=False)
        self.holder.kill()
        self.holder.wait()


class Packet(Veth):
    """The same cable by the packet link, its interfaces' addresses shared with the kernel."""

    name = "packet"

    def build(self):
        super().build()
        for role in ("server", "client"):
            self.ip_do(role, f"address add {self.addresses[role]}/24 dev {self.ends[role]}")

    def options(self, role):
        return ["--link", self.ends[role]]


class PacketSix(Packet):
    """The same where the kernel has IPv6 addresses as well."""

    name = "packet-ip6"
    local = {"server": "fe80::a", "client": "fe80::b"}
    addresses = {**Veth.addresses, "local6": "fe80::a%veth-b"}
    four = True  # has an IPv4 address, too

    def build(self):
        Veth.build(self)
        for role, end in [(role, self.ends[role]) for role in ("server", "client")]:
            for name in ("all", end):
                self.there(role, ["sh", "-c", f"echo 0 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6"])
            self.ip_do(role, f"link set dev {end} addrgenmode none")
            self.ip_do(role, f"address replace {self.local[role]}/64 dev {end} nodad")
            self.ip_do(role, f"address replace {self.addresses[role + '6']}/64 dev {end} nodad")
            if self.four:
                self.ip_do(role, f"address replace {self.addresses[role]}/24 dev {end}")


class PacketSixAlone(PacketSix):
    """The same, and none of IPv4."""

    name = "packet-ip6-alone"
    four = False


class PacketFixed(PacketSix):
    """The same where nobody is asked or answers: the administrators have fixed the neighbours' MAC addresses."""

    name = "packet-fixed"
    macs = {"server": "02:00:00:00:0a:01", "client": "02:00:00:00:0a:02"}

    def build(self):
        super().build()
        for role in ("server", "client"):
            self.ip_do(role, f"link set dev {self.ends[role]} arp off address {self.macs[role]}")
        for role, peer in (("server", "client"), ("client", "server")):
            for name in (peer, peer + "6"):
                self.ip_do(role, f"neighbour replace {self.addresses[name]} lladdr {self.macs[peer]} dev {self.ends[role]} nud permanent")


class LocalSix(PacketSix):
    """Two programs of one host, which share its IPv6 addresses."""

    name = "local-ip6"
    addresses = {**PacketSix.addresses, "client6": "fd77::1", "local6": "fe80::a%veth-a"}
    ends = {"server": "veth-a", "client": "veth-a", "third": "veth-a"}
    local = {"server": "fe80::a", "client": "fe80::a"}


class Local(Packet):
    """Two programs of one host, which share the host's address: what they send each other goes over lo."""

    name = "local"
    addresses = {**Veth.addresses, "client": "10.77.0.1", "third": "10.77.0.1"}
    ends = {"server": "veth-a", "client": "veth-a", "third": "veth-a"}

    def build(self):
        Veth.build(self)
        self.ip_do("server", f"address add {self.addresses['server']}/24 dev veth-a")


class PacketOwn(Veth):
    """The same with addresses that the kernel does not have."""

    name = "packet-own"

    def options(self, role):
        return ["--link", f"packet:{self.ends[role]}", *super().options(role)[-2:]]


class LocalOwn(PacketOwn):
    """Two programs of one host, each with an address of its own on one interface."""

    name = "local-own"
    ends = {"server": "veth-a", "client": "veth-a", "third": "veth-a"}


class LocalMixed(LocalOwn):
    """The same, and one of them has the addresses that the kernel has."""

    name = "local-mixed"
    sharing = "server"

    def build(self):
        super().build()
        for name in ("all", "veth-a"):
            self.there("server", ["sh", "-c", f"echo 0 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6"])
        self.ip_do("server", "link set dev veth-a addrgenmode none")
        self.ip_do("server", f"address add {self.addresses[self.sharing]}/24 dev veth-a")
        for address in ("fe80::a", self.addresses[self.sharing + "6"]):
            self.ip_do("server", f"address replace {address}/64 dev veth-a nodad")

    def options(self, role):
        return super().options(role)[:2] if role == self.sharing else super().options(role)


class LocalMixedBack(LocalMixed):
    """The same, the other way about."""

    name, sharing = "local-mixed-back", "client"


class Vlan(PacketOwn):
    """The same cable in a VLAN of it: both ends tag what they send. Without a tag the client's kernel has the server's
    address, and nobody hears of it."""

    name = "vlan"

    def build(self):
        super().build()
        self.ip_do("client", f"address add {self.addresses['server']}/24 dev veth-b")

    def options(self, role):
        return [*super().options(role), "--vlan", "7"]


class LocalVlan(LocalOwn):
    """Two programs of one host in that VLAN."""

    name = "local-vlan"

    def options(self, role):
        return [*super().options(role), "--vlan", "7"]


class Uwarpd(Packet):
    """The same with a uwarpd at either end, and programs that have no rights: of the user nobody where that one may read
    the tree, else without capabilities."""

    name = "uwarpd"
    nobody = 65534

    def build(self):
        self.setpriv = need("setpriv")
        self.uwarpd = os.path.join(os.environ.get("UWARP_BUILD_DIR", os.path.join(ROOT, "build")), "tools", "uwarpd")
        if not os.access(self.uwarpd, os.X_OK):
            raise Skipped(f"{self.uwarpd} is not built")
        super().build()
        self.folder = tempfile.mkdtemp(prefix="uwd-")
        os.chmod(self.folder, 0o711)
        as_nobody = [self.setpriv, f"--reuid={self.nobody}", f"--regid={self.nobody}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
        self.weak = as_nobody
        if subprocess.run([*as_nobody, "test", "-r", UWARP_RUN], stderr=subprocess.DEVNULL).returncode:
            self.weak = [self.setpriv, "--bounding-set=-all", "--inh-caps=-all"]
            need_tree(self.weak)
        self.daemons = {}
        for role in ("server", "client"):
            os.mkdir(self.run_dir(role), 0o700)
            if self.weak is as_nobody:
                os.chown(self.run_dir(role), self.nobody, self.nobody)
            self.start_uwarpd(role)

    def end(self, role):
        return "server" if self.ends[role] == "veth-a" else "client"

    def run_dir(self, role):
        return os.path.join(self.folder, "run-" + self.end(role))

    def path(self, role):
        return os.path.join(self.folder, self.end(role) + ".sock")

    def start_uwarpd(self, role):
        where = super().prefix(role)
        argv = [*where, self.uwarpd, "--link", self.port(role), "--path", self.path(role), *self.more(role)]
        with open(os.path.join(self.folder, self.end(role) + ".log"), "ab") as log:
            daemon = subprocess.Popen(argv, stdout=log, stderr=log, preexec_fn=die_with_parent)
        self.daemons[self.end(role)] = daemon
        up = wait_until(lambda: daemon.poll() is not None or self.status(role), START)
        check(daemon.poll() is None, f"the uwarpd at the {role} has ended: exit code {daemon.poll()}")
        check(up, f"the uwarpd at the {role} is not up after {START:g} s")

    def port(self, role):
        return self.ends[role]

    def more(self, _role):
        return []

    def kill(self, role):
        daemon = self.daemons[self.end(role)]
        daemon.kill()
        daemon.wait()

    def status(self, role):
        """What it says of itself, line by line; empty if it does not."""
        done = subprocess.run([self.uwarpd, "--status", "--path", self.path(role)], capture_output=True, text=True)
        return [] if done.returncode else done.stdout.splitlines()

    def clients(self, role):
        return [line for line in self.status(role) if line.startswith("client ")]

    def held(self, role):
        """TCP ports that a kernel socket listens on at that end."""
        there = subprocess.run([*super().prefix(role), "cat", "/proc/net/tcp"], capture_output=True, text=True).stdout
        return [line.split()[1] for line in there.splitlines()[1:] if line.split()[3] == "0A"]

    def options(self, role):
        return ["--link", "uwarpd:" + self.path(role)]

    def prefix(self, role):
        return [*super().prefix(role), *self.weak, "env", f"UWARP_DIR={self.run_dir(role)}"] if hasattr(self, "daemons") else super().prefix(role)

    def close(self):
        for daemon in getattr(self, "daemons", {}).values():
            daemon.kill()
            daemon.wait()
        self.__dict__.pop("daemons", None)  # what is done now needs rights
        super().close()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder, ignore_errors=True)


class UwarpdLossy(Uwarpd):
    """The same, and something in the cable that loses frames, of which each is one of the wire."""

    name = "uwarpd-lossy"
    impair = os.path.join(ROOT, "tools", "uwarp-impair")
    drop, ends_between = "0.5%", ("veth-ia", "veth-ib")

    def cable(self):
        need("ethtool")
        for end, between, where in zip(("veth-a", "veth-b"), self.ends_between, ("1", str(self.holder.pid))):
            there = [] if where == "1" else ["netns", where]
            self.ip_do("server", f"link add {between} type veth peer name {end}", *there)
            self.do([], f"link set {between} up")
        for role in ("server", "client"):
            subprocess.run([*self.prefix(role), "ethtool", "-K", self.ends[role], "tx", "off", "gso", "off"], check=True, stdout=subprocess.DEVNULL)
        argv = [self.impair, "--seed", "3", "--drop", self.drop, *self.ends_between]
        self.forwarder = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)

    def close(self):
        if hasattr(self, "forwarder"):
            self.forwarder.terminate()
            self.forwarder.wait()
        super().close()


class UwarpdLocal(Uwarpd):
    """Two clients of one uwarpd, which hands frames from one to the other."""

    name = "uwarpd-local"
    addresses = Local.addresses
    ends = Local.ends

    def build(self):
        self.ends, self.addresses = Uwarpd.ends, Uwarpd.addresses
        super().build()
        del self.ends, self.addresses


class UwarpdSix(Uwarpd, PacketSix):
    """A uwarpd at either end where the kernel has IPv6 addresses as well."""

    name = "uwarpd-ip6"


class UwarpdSixLocal(UwarpdSix):
    """Two clients of one such uwarpd."""

    name = "uwarpd-ip6-local"
    addresses = LocalSix.addresses
    ends = LocalSix.ends
    local = LocalSix.local

    def build(self):
        self.ends, self.addresses, self.local = UwarpdSix.ends, UwarpdSix.addresses, UwarpdSix.local
        super().build()
        del self.ends, self.addresses, self.local


class UwarpdSixAlone(UwarpdSix):
    """The same, and none of IPv4."""

    name = "uwarpd-ip6-alone"
    four = False


class UwarpdSixPacket(UwarpdSix):
    """A uwarpd at the server's end, and the packet link at the client's."""

    name = "uwarpd-ip6-packet"

    def options(self, role):
        return super().options(role) if self.end(role) == "server" else PacketSix.options(self, role)

    def prefix(self, role):
        return super().prefix(role) if self.end(role) == "server" else self.inside_of(role)


class UwarpdSixOwn(UwarpdSix):
    """The same with addresses of the uwarpd's own at the server's end: it answers neighbours and refuses connections
    itself."""

    name = "uwarpd-ip6-own"
    addresses = {**UwarpdSix.addresses, "server": "10.77.0.5", "server6": "fd77::5", "local6": "fe80::7577:10.77.0.5%veth-b"}

    def more(self, role):
        return ["--ip", "10.77.0.5/24", "--ip", "fd77::5/64"] if self.end(role) == "server" else []

    def build(self):
        self.addresses = UwarpdSix.addresses
        super().build()
        self.addresses = type(self).addresses


class UwarpdOwn(Uwarpd):
    """The same with an address of the uwarpd's own at the server's end: it answers ARP and refuses connections itself."""

    name = "uwarpd-own"

    def more(self, role):
        return ["--ip", "10.77.0.5/24"] if self.end(role) == "server" else []

    addresses = {**Uwarpd.addresses, "server": "10.77.0.5"}

    def build(self):
        self.addresses = {**self.addresses, "server": "10.77.0.1"}
        super().build()
        self.addresses = type(self).addresses


class UwarpdDpdk(Uwarpd):
    """The same with ports that DPDK drives, and addresses of their own: both uwarpds answer ARP themselves."""

    name = "uwarpd-dpdk"
    addresses = {**Uwarpd.addresses, "server": "10.77.0.5", "client": "10.77.0.6"}

    def port(self, role):
        return "af_packet:" + self.ends[role]

    def more(self, role):
        return ["--ip", type(self).addresses[self.end(role)] + "/24"]

    def build(self):
        self.addresses = Uwarpd.addresses
        super().build()
        self.addresses = type(self).addresses


class Tap(Veth):
    """The same cable with a bridge at either end and a tap port on that, whose driver cuts TCP segments (TSO) with
    DPDK's own library. It counts the Ethernet header as part of the MTU, hence ours is less."""

    name = "tap"
    mtu = 1486
    taps = {"server": "tap-a", "client": "tap-b"}
    # The driver gives the interface the port's address, and a bridge keeps what is sent to that of an interface.
    shim = 'while kill -0 $$ && sleep 0.05; do ip link set "$0" address 02:00:00:00:00:01; done 2>/dev/null & exec "$@"'

    def build(self):
        try:
            os.close(os.open(TUN, os.O_RDWR))
        except OSError as e:
            raise Skipped(f"no tap port can be made here: {TUN}: {e.strerror}") from None
        super().build()
        for role, tap in self.taps.items():
            self.ip_do(role, f"tuntap add {tap} mode tap multi_queue")
            self.ip_do(role, "link add bridge type bridge mcast_snooping 0")
            for end in (tap, self.ends[role]):
                self.ip_do(role, f"link set {end} master bridge")
            self.ip_do(role, f"link set {tap} up")
            self.ip_do(role, "link set bridge up")

    def options(self, role):
        faces = super().options(role)[-1]
        return ["--link", f"net_tap0,iface={self.taps[role]}", "--mtu", str(self.mtu), "--tso", "on", "--ip", faces]

    def wrapper(self, role):
        return ["sh", "-c", self.shim, self.taps[role]]


def isolate():
    """Go on in a network namespace of our own: nothing that happens there touches the machine, and
    it ends with us. Does not return unless we are there."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], capture_output=True)
        return
    how = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if not shutil.which("unshare") or subprocess.run([*how, "true"], capture_output=True).returncode:
        raise Skipped("no network namespace can be made here")
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    os.execvp("unshare", [*how, "--", sys.executable, *sys.argv])
