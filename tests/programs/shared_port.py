# SPDX-License-Identifier: BSD-3-Clause
"""Many processes without rights behind a uwarpd: all pairs, kills, and a client that means harm."""

import json
import os
import random
import signal
import socket
import subprocess
import time

import hostile_client
from harness import ROOT, Failed, Skipped, check, kernel_listens, made
from bench.process import die_with_parent, wait_until
from lifecycle import until_busy_client

MESH = made("UWARP_PROGRAMS_MESH", "programs-mesh")
SERVER, CLIENT = "rping -s -P -p {port} -V -S 2000", "rping -c -a {{server}} -p {port} -V -S 2000"
# What a connection's end may take to be noticed, on a busy machine; what a new one may take.
NOTICED, AGAIN = 8.0, 15.0


def mesh(stage, n, messages):
    """n processes at each end, each connected with all n of the other end at the same time."""
    if not MESH:
        raise Skipped("UWARP_PROGRAMS_MESH does not name the program that mesh.c makes")
    servers = [stage.start("server", f"{MESH} serve {7400 + i} {n} {messages}") for i in range(n)]
    clients = [stage.start("client", f"{MESH} call {{server}} 7400 {n} {messages}") for i in range(n)]
    for program in clients:
        rc = program.wait(60)
        check(rc == 0 and "all came back" in program.out, f"a client ended with exit code {rc}")
    for program in servers:
        rc = program.wait(20)
        check(rc == 0, f"a server ended with exit code {rc}")
    for program in servers + clients:
        check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")


class Mesh:
    program, needs = "mesh", []

    def __init__(self, n, messages):
        self.n, self.messages, self.flags = n, messages, f"{n} by {n} processes"

    def __call__(self, stage):
        mesh(stage, self.n, self.messages)
        wait_until(lambda: not stage.link.clients("server") + stage.link.clients("client"), 5)
        for role in ("server", "client"):
            check(not stage.link.clients(role), f"the uwarpd of the {role} still has clients")


class Refused:
    """Nobody has the port of the shared address: that is said at once, and not after a timeout."""

    program, needs = "rping", ["rping"]

    def __init__(self, to="{server}"):
        self.to, self.flags = to, f"to a port of {to} that no client has"

    def __call__(self, stage):
        program = stage.run("client", f"rping -c -a {self.to} -p 7299 -C 1", 20)
        check(program.poll() != 0 and program.seconds() < 5, "a connection to nobody is not refused at once")
        check("REJECTED" in program.err or "refused" in program.err or "error" in program.err, f"it says {program.err}")


class SlowAnswer:
    """The uwarpd stands still for a second while a program claims a QP of datagrams, which it does in ibv_modify_qp to
    RTR. The test is the client, as far as that."""

    program, flags, needs = "ibv_ud_pingpong", "its uwarpd is stopped for a second", ["ibv_ud_pingpong"]
    port, greeting = 7390, b"0001:000123:000456:00000000000000000000ffff0a4d0001\0"

    def reach(self, stage):
        return socket.create_connection((stage.link.addresses["server"], self.port), 10)

    def __call__(self, stage):
        server = stage.start("server", f"ibv_ud_pingpong -p {self.port} -g 0")
        check(wait_until(lambda: kernel_listens(self.port) or server.poll() is not None, 20), "the server does not listen")
        with self.reach(stage) as peer:
            daemon = stage.link.daemons[stage.link.end("server")]
            daemon.send_signal(signal.SIGSTOP)
            try:
                peer.sendall(self.greeting)
                time.sleep(1)
            finally:
                daemon.send_signal(signal.SIGCONT)
            peer.settimeout(10)
            check(peer.recv(200), "the server does not get its QP")
        server.stop()


class Sleeps:
    """Programs that sleep between messages: the uwarpd wakes the thread that waits, and not another one for it
    (doc/adr/0056)."""

    program, flags, needs = "ib_send_lat", "-e, woken by the uwarpd itself", ["ib_send_lat"]
    stat = os.path.join(ROOT, "tools", "uwarp-stat")

    def waits(self, stage, role, pid):
        env = {**stage.env, "UWARP_DIR": stage.link.run_dir(role)}
        done = subprocess.run([self.stat, "--json", str(pid)], env=env, capture_output=True, text=True, timeout=30)
        stats = json.loads(done.stdout)[0]["counters"] if done.stdout else {}
        return stats.get("wait_sleeps", 0)

    def __call__(self, stage):
        words = "ib_send_lat -R -F -e -s 64 -n 100000"
        server = stage.start("server", words)
        server.until_link_up()
        client = until_busy_client(stage, server, words + " {server}")
        for p in (server, client):
            check(wait_until(lambda p=p: self.waits(stage, p.role, p.pid) > 100, 20), f"the {p.role} does not wait for frames itself")
        for p in (client, server):
            p.kill()
            p.wait(5)


# ---- kills --------------------------------------------------------------------------------------


class Kills:
    """Clients and uwarpds are killed at random; who was not killed goes on, and nothing is left behind."""

    program, needs = "rping", ["rping"]

    def __init__(self, kills, seed=1):
        self.kills, self.seed, self.flags = kills, seed, f"{kills} kills of clients and uwarpds, seed {seed}"

    def serve(self, stage, port):
        server = stage.start("server", SERVER.format(port=port))
        server.until_link_up()
        return server

    def once(self, stage, port):
        """A whole exchange with the server at the port, tried until it can be had."""
        end = time.monotonic() + AGAIN
        while True:
            client = stage.start("client", CLIENT.format(port=port) + " -C 5")
            rc = client.wait(AGAIN)
            if rc == 0:
                stage.forget(client)
                return
            check(time.monotonic() < end, f"no new connection to the server: exit code {rc}")
            stage.forget(client)

    def busy(self, stage, port):
        client = stage.start("client", CLIENT.format(port=port) + " -v")
        client.until_printed(1)
        return client

    def kill_client(self, stage, bystander):
        victim = self.busy(stage, 7201)
        victim.kill()
        victim.wait(5)
        stage.forget(victim)
        before = os.stat(bystander.out_path).st_size
        more = lambda: os.stat(bystander.out_path).st_size > before  # noqa: E731
        check(wait_until(more, NOTICED) and bystander.poll() is None, "a bystander does not go on")
        self.once(stage, 7201)
        return bystander

    def kill_server(self, stage, bystander):
        """The one at port 7201; its port can be had again at once."""
        self.servers[1].kill()
        self.servers[1].wait(5)
        stage.forget(self.servers[1])
        self.servers[1] = self.serve(stage, 7201)
        self.once(stage, 7201)
        check(bystander.poll() is None, "a bystander does not go on")
        return bystander

    def kill_uwarpd(self, stage, bystander):
        """Connections end, processes do not: both servers are the same ones afterwards."""
        role = self.random.choice(("server", "client"))
        stage.link.kill(role)
        if self.random.random() < 0.5:
            time.sleep(0.2)
        stage.link.start_uwarpd(role)
        bystander.wait(NOTICED if role == "client" else 40)
        check("DISCONNECT EVENT" in bystander.err, "the end of the connection is not said")
        stage.forget(bystander)
        for port in (7200, 7201):
            self.once(stage, port)
        return self.busy(stage, 7200)

    def __call__(self, stage):
        self.random = random.Random(self.seed)
        self.servers = [self.serve(stage, port) for port in (7200, 7201)]
        bystander = self.busy(stage, 7200)
        count = {}
        for _ in range(self.kills):
            kill = self.random.choice((self.kill_client, self.kill_client, self.kill_server, self.kill_uwarpd))
            bystander = kill(stage, bystander)
            count[kill.__name__] = count.get(kill.__name__, 0) + 1
            check(all(s.poll() is None for s in self.servers), "a server ended")
        self.flags = f"{self.kills} kills: " + ", ".join(f"{n} {k[5:]}" for k, n in sorted(count.items()))
        for program in (bystander, *self.servers):
            program.kill(signal.SIGTERM)
            program.wait(5)
        for role in ("server", "client"):
            check(wait_until(lambda: not stage.link.clients(role), 3), f"the uwarpd of the {role} still has clients")
            wait_until(lambda: not stage.link.held(role), 3)
            check(not stage.link.held(role), f"ports are still held: {stage.link.held(role)}")


# ---- a client that means harm ---------------------------------------------------------------------


class Hostile:
    """It forges, floods and writes nonsense; all of it is refused and counted, and others go on."""

    program, flags, needs = "hostile client", "forged, flooded, nonsense", []

    def counts(self, stage):
        return " ".join(stage.link.status("client"))

    def forge(self, stage, c):
        other = socket.inet_aton("10.77.0.77")
        to = stage.address("server")
        check(c.claim(7300) == 0, "it gets no port")
        check(c.claim(80) != 0, "it gets a port below 1024")
        check(c.claim(self.taken) != 0, "it gets another one's port")
        frames = [
            (hostile_client.segment(c, self.taken, 7200, to), "source_port"),
            (hostile_client.segment(c, 22, 7200, to), "source_port"),
            (hostile_client.segment(c, 7300, 7200, to, source=other), "source_addr"),
            (hostile_client.segment(c, 7300, 7200, to, mac=b"\x02\0\0\0\0\x07"), "source_mac"),
            (hostile_client.segment(c, 7300, 7200, to, to=b"\xff" * 6), "target"),
            (b"\xff" * 6 + c.mac + b"\x08\x06" + bytes([0, 1, 8, 0, 6, 4, 0, 2]) + c.mac + other + bytes(10), "protocol"),
            (hostile_client.segment(c, 7300, 7200, to)[:40], "length"),
            (hostile_client.datagram(c, 0x123456, to), "source_qp"),
        ]
        for frame, _ in frames:
            c.put(frame)
        c.put(hostile_client.segment(c, 7300, 7200, to, payload=b"x" * 1000), gso=1, sums=1)
        names = {name for _, name in frames} | {"merge"}
        done = wait_until(lambda: all(f" {name} " in self.counts(stage) for name in names), 3)
        check(done, f"not all was counted: {self.counts(stage)}")

    def flood(self, stage, c):
        """As much as fits for half a second, and claims."""
        end = time.monotonic() + 0.5
        frame = hostile_client.segment(c, 7300, 9, stage.address("server"), payload=b"x" * 1400)
        while time.monotonic() < end:
            if c.room() > 4096:
                c.put(frame)
        for port in range(20000, 20500):
            c.claim(port)

    def nonsense(self, stage):
        """Each of these ends the client that did it."""
        path = stage.link.path("client")
        for what in ("head", "length", "tail", "message", "region"):
            try:
                c = hostile_client.Client(path)
                if what == "head":
                    c.head(0x80000001)
                elif what == "length":
                    c.put(b"x" * 100)
                    c.ours[hostile_client.PAGE : hostile_client.PAGE + 4] = b"\xff\xff\xff\x7f"
                    c.head(1 << 20)
                elif what == "message":
                    c.s.send(b"nonsense")
                elif what == "region":
                    c.s.sendmsg([hostile_client.message(hostile_client.READY)])
                if what == "tail":
                    c.ours[64:68] = b"\xff\xff\xff\x7f"  # seen when something is sent to it, and harms nobody else
                else:
                    c.ring()
                    check(not c.is_alive(3), f"{what}: the uwarpd keeps it")
                c.close()
            except ConnectionError as e:
                raise Failed(f"{what}: {e}") from None

    def strangers(self, stage):
        """They connect and say nothing, or what no client says."""
        path, all_of_them = stage.link.path("client"), []
        for data in (b"", b"x", hostile_client.message(hostile_client.CLAIM), hostile_client.message(99), hostile_client.message(1, version=9)):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(path)
            if data:
                s.send(data)
            all_of_them.append(s)
        for s in all_of_them[1:]:
            s.settimeout(3)
            check(len(s.recv(100)) in (0, hostile_client.MESSAGE.size), "it is not hung up on")
        for _ in range(300):  # more than may join; who speaks is heard nevertheless
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(path)
            all_of_them.append(s)
        if os.getuid() == 0:
            self.join_as_other(path)
        for s in all_of_them:
            s.close()

    def join_as_other(self, path):
        child = os.fork()
        if not child:
            try:
                os.setuid(4243)
            except OSError:  # there is no such user here
                os._exit(0)
            try:
                hostile_client.Client(path).close()
            except OSError:
                os._exit(1)
            os._exit(0)
        check(os.waitpid(child, 0)[1] == 0, "silent connections of one user keep another one out")

    def __call__(self, stage):
        server = stage.start("server", SERVER.format(port=7200))
        server.until_link_up()
        listener = stage.start("client", SERVER.format(port=7250))
        listener.until_link_up()
        check(wait_until(lambda: "ports 1" in self.counts(stage), 3), "a port is not held")
        self.taken = 7250
        good = stage.start("client", CLIENT.format(port=7200) + " -v")
        good.until_printed(1)
        c = hostile_client.Client(stage.link.path("client"))
        self.forge(stage, c)
        self.flood(stage, c)
        before = os.stat(good.out_path).st_size
        self.nonsense(stage)
        self.strangers(stage)
        check(wait_until(lambda: os.stat(good.out_path).st_size > before, NOTICED), "an honest client does not go on")
        c.close()
        check(" faults " in self.counts(stage) and " faults 0 " not in self.counts(stage), "no fault was counted")
        for program in (good, listener, server):
            check(program.poll() is None, f"the {program.role} ended")
            program.stop()


# ---- a uwarpd's start ---------------------------------------------------------------------------


class Rights:
    """Once it serves, it has no rights but the one that ports of a shared address need, and cannot get any."""

    program, flags, needs = "uwarpd", "rights", []

    def __call__(self, stage):
        with open(f"/proc/{stage.link.daemons['client'].pid}/status", encoding="ascii") as f:
            has = dict(line.split(":", 1) for line in f.read().splitlines())
        for name in ("CapPrm", "CapEff", "CapBnd"):
            check(int(has[name], 16) == 1 << 12, f"{name} is {has[name].strip()}, not CAP_NET_ADMIN alone")
        check(int(has["CapInh"], 16) == 0 and int(has["CapAmb"], 16) == 0, "it hands on rights")
        check(has["NoNewPrivs"].strip() == "1", "it could get rights")
        if os.access(stage.link.path("client"), os.W_OK) and stage.link.weak[1].startswith("--reuid"):
            check(has["Uid"].split() == ["65534"] * 4, f"it is user {has['Uid'].split()}")


class Other:
    """Another uwarpd beside the link's own, for one case, with other options: no port, another socket."""

    needs = []

    def start(self, stage, *more):
        self.path = os.path.join(stage.link.folder, "other", "other.sock")  # a folder that it makes, and may remove from
        argv = [stage.link.uwarpd, "--link", "none", "--ip", "10.9.0.1", "--path", self.path, *more]
        daemon = subprocess.Popen(argv, env=stage.env, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        check(wait_until(self.answers, 5), "it does not serve")
        return daemon

    def answers(self):
        try:
            hostile_client.Client(self.path).close()
        except ConnectionRefusedError as e:
            return "refused" in str(e)
        except OSError:
            return False
        return True

    def end(self, daemon):
        daemon.terminate()
        check(daemon.wait(5) == 0, f"exit code {daemon.returncode}")


class Gone(Other):
    """Its interface is deleted: it ends and says so, and its clients hear of it, instead of being deaf for ever. The
    interface is another than the link's."""

    program, flags, ends = "uwarpd", "its interface is deleted", 3.0

    def __call__(self, stage):
        link = stage.link
        link.do([], "link add veth-gone type veth peer name veth-far")
        try:
            link.do([], "address add 10.78.0.1/24 dev veth-gone")
            for end in ("veth-gone", "veth-far"):
                link.do([], f"link set {end} up")
            self.lose(stage)
        finally:
            subprocess.run([link.ip, "link", "del", "veth-gone"], stderr=subprocess.DEVNULL, check=False)

    def lose(self, stage):
        self.path = os.path.join(stage.link.folder, "gone.sock")
        argv = [stage.link.uwarpd, "--link", "veth-gone", "--path", self.path]
        with subprocess.Popen(argv, env=stage.env, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent) as daemon:
            try:
                check(wait_until(self.answers, 5), "it does not serve")
                client = hostile_client.Client(self.path)
                stage.link.do([], "link del veth-gone")
                check(wait_until(lambda: daemon.poll() is not None, self.ends), "it goes on without its interface")
                said = daemon.stderr.read()
                check(daemon.returncode == 1, f"exit code {daemon.returncode}")
                check("interface veth-gone is gone; start again when it is there" in said, f"it says {said}")
                check(not client.is_alive(1), "its client is not hung up on")
                client.close()
            finally:
                daemon.kill()


class Activated(Other):
    """systemd's part: it makes the socket, and hears when the uwarpd is ready and when it ends."""

    program, flags = "uwarpd", "socket activation"

    def __call__(self, stage):
        check("--mode" not in self.said(stage), "it speaks of options that were not given")
        for words in (["--mode", "0600"], ["--path", "/run/elsewhere.sock"]):
            said = [line for line in self.said(stage, *words).splitlines() if "SocketMode= and ListenSequentialPacket=" in line]
            check(len(said) == 1, f"{words} is ignored in silence")

    def said(self, stage, *more):
        """What a uwarpd with these options writes from its start to its end."""
        path = os.path.join(stage.link.folder, "activated.sock")  # where a user without rights gets
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
            s.bind(path)
            s.listen()
            os.chmod(path, 0o666)
            heard.bind(path + ".notify")
            os.chmod(path + ".notify", 0o666)
            heard.settimeout(5)
            shell = 'exec 3<&"$0"; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
            argv = ["bash", "-c", shell, str(s.fileno()), stage.link.uwarpd, "--link", "none", "--ip", "10.9.0.1", *more]
            daemon = subprocess.Popen(argv, env={**stage.env, "NOTIFY_SOCKET": path + ".notify"}, pass_fds=[s.fileno()], stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
            check(heard.recv(100) == b"READY=1", "it does not say that it is ready")
            hostile_client.Client(path).close()
            self.end(daemon)
            check(heard.recv(100) == b"STOPPING=1", "it does not say that it ends")
        check(os.path.exists(path), "it removed a socket that is not its own")
        for left in (path, path + ".notify"):
            os.unlink(left)
        with daemon.stderr:
            return daemon.stderr.read()


class Limits(Other):
    """Users, clients of a user, ports of a client."""

    program, flags = "uwarpd", "limits"

    def __call__(self, stage):
        daemon = self.start(stage, "--allow", "4242")
        self.refused("a user that may not join")
        self.end(daemon)
        check(not os.path.exists(self.path), "it leaves its socket")
        daemon = self.start(stage, "--max-clients-per-user", "2", "--max-ports", "3")
        a, b = hostile_client.Client(self.path), hostile_client.Client(self.path)
        self.refused("a third client of a user")
        a.close()
        check(wait_until(lambda: self.joins() is not None, 3), "nobody may come for the one that left")
        check([b.claim(7000 + i) for i in range(4)] == [0, 0, 0, 3], "the ports are not limited")
        b.close()
        self.end(daemon)

    def joins(self):
        try:
            c = hostile_client.Client(self.path)
        except ConnectionRefusedError:
            return None
        c.close()
        return True

    def refused(self, what):
        check(self.joins() is None, f"{what} joins")


class Rate(Other):
    """What a client may send, over a second."""

    program, flags = "uwarpd", "--rate 80M"

    def __call__(self, stage):
        daemon = self.start(stage, "--rate", "80M")
        a, b = hostile_client.Client(self.path), hostile_client.Client(self.path)
        check(a.claim(7000) == 0 and b.claim(7001) == 0, "no ports")
        frame, sent, end = hostile_client.segment(a, 7000, 7001, "10.9.0.1", payload=b"x" * 8000), 0, time.monotonic() + 1
        while time.monotonic() < end:
            if a.room() > 16384:
                a.put(frame)
                sent += len(frame)
        taken = sent - (hostile_client.OCTETS - a.room())
        check(2e6 < taken < 20e6, f"{taken} octets in a second instead of 10,000,000")
        a.close()
        b.close()
        self.end(daemon)


class Refusals:
    """One line that names the mend, and an exit code."""

    program, flags, needs = "uwarpd", "refusals", []
    table = [
        (2, "no port given", []),
        (2, "--ip A/N", ["--link", "none"]),
        (2, "--ip 10.0.0.x: must be an address of IPv4", ["--link", "lo", "--ip", "10.0.0.x"]),
        (2, "--ip fe80::1: must be", ["--link", "lo", "--ip", "fe80::1"]),
        (2, "goes with an unused one of IPv4", ["--link", "lo", "--ip", "fd00::1"]),
        (2, "--mtu 9: must be", ["--link", "lo", "--mtu", "9"]),
        (2, "--rate fast: must be", ["--link", "lo", "--rate", "fast"]),
        (2, "--mode 9: must be", ["--link", "lo", "--mode", "9"]),
        (2, "--allow me: must be", ["--link", "lo", "--allow", "me"]),
        (2, "--max-ports 0: must be", ["--link", "lo", "--max-ports", "0"]),
        (2, "eth7: no such argument", ["--link", "lo", "eth7"]),
        (1, "--link nosuch: no such interface", ["--link", "nosuch"]),
        (1, "--link memif: no port", ["--link", "memif"]),
        (1, "interface lo is no Ethernet", ["--link", "lo"]),
        (1, "no uwarpd at /nowhere", ["--status", "--path", "/nowhere"]),
        (1, "the directory cannot be made", ["--link", "none", "--ip", "10.9.0.1", "--path", "/proc/nowhere/x"]),
        (1, "another uwarpd listens there", ["--link", "none", "--ip", "10.9.0.1", "--path", "{path}"]),
        (1, "there is no such user", ["--link", "none", "--ip", "10.9.0.1", "--path", "{folder}/x", "--user", "nosuchuser"]),
    ]

    def __call__(self, stage):
        for code, text, words in self.table:
            argv = [w.format(path=stage.link.path("client"), folder=stage.folder) for w in words]
            done = subprocess.run([stage.link.uwarpd, *argv], capture_output=True, text=True, timeout=20)
            check(done.returncode == code, f"{words}: exit code {done.returncode}: {done.stderr}")
            check(text in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.stderr}")


START = [Rights(), Activated(), Gone(), Limits(), Rate(), Refusals()]
SHORT = [*START, Sleeps(), Mesh(3, 20), Hostile(), Kills(6)]
MORE = [Mesh(8, 40), Kills(25, seed=2)]
LONG = [Kills(50, seed) for seed in (3, 4, 5, 6)]  # each a few minutes on a busy machine
