#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-run: what it sets up, what it reserves, and what it refuses. Needs a C compiler but no
build of uwarp: a stand-in build tree with three empty libraries takes its place."""

import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join(ROOT, "tools", "uwarp-run")
CC = os.environ.get("CC", "cc").split()
NOBODY = 65534
# What every program below inherits must come from uwarp-run alone.
OURS = ("LD_PRELOAD", "IBV_DRIVERS", "RDMAV_DRIVERS", "XDG_RUNTIME_DIR")


def compile_c(path, source, *flags):
    subprocess.run([*CC, "-x", "c", "-", "-o", path, *flags], input=source, text=True, check=True)


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="uwarp-test-")
        os.chmod(cls.top, 0o755)
        cls.build = os.path.join(cls.top, "build")
        for part, name in (
            ("verbs-provider", "libuwarp-preload.so"),
            ("verbs-provider", "libuwarp-rdmav34.so"),
            ("stack", "libuwarp.so"),
        ):
            os.makedirs(os.path.join(cls.build, part), exist_ok=True)
            compile_c(os.path.join(cls.build, part, name), "int nothing;\n", "-shared", "-fPIC")
        cls.addClassCleanup(shutil.rmtree, cls.top)

    def setUp(self):
        self.dir = os.path.join(self.top, "run")
        shutil.rmtree(self.dir, ignore_errors=True)
        self.children = []
        self.addCleanup(self.stop_children)

    def stop_children(self):
        for p in self.children:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdout, p.stderr):
                f.close()

    def env(self, **extra):
        env = {k: v for k, v in os.environ.items() if k not in OURS and not k.startswith("UWARP_")}
        env.update({"UWARP_BUILD_DIR": self.build, "UWARP_DIR": self.dir, "UWARPD": "", **extra})
        return {k: v for k, v in env.items() if v is not None}

    def run_it(self, *args, env=None, as_user=None, **kw):
        command = [RUN, *args]
        if as_user is not None:
            kw.update(user=as_user, group=as_user, extra_groups=[])
        return subprocess.run(command, env=env or self.env(), capture_output=True, text=True, timeout=30, **kw)

    def start(self, *args, env=None):
        """Start uwarp-run and return once the program runs (its first line is read)."""
        p = subprocess.Popen(
            [RUN, *args], env=env or self.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.children.append(p)
        self.assertEqual(p.stdout.readline(), "ready\n", "the program did not start")
        return p

    def refused(self, code, pattern, *args, **kw):
        r = self.run_it(*args, **kw)
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertRegex(r.stderr, pattern)
        self.assertRegex(r.stderr, r"\Auwarp-run: [^\n]+\n\Z", "not exactly one line")
        self.assertEqual(r.stdout, "")


WAIT = ("sh", "-c", "echo ready; exec sleep 30")


class Environment(Base):
    def show(self, *args, env=None):
        r = self.run_it(*args, "--", "env", env=env)
        self.assertEqual(r.returncode, 0, r.stderr)
        return dict(line.split("=", 1) for line in r.stdout.splitlines() if "=" in line)

    def test_everything_that_the_libraries_need(self):
        got = self.show()
        at = os.path.join(self.build, "verbs-provider")
        self.assertEqual(got["LD_PRELOAD"], os.path.join(at, "libuwarp-preload.so"))
        self.assertEqual(got["IBV_DRIVERS"], os.path.join(at, "libuwarp"))
        self.assertEqual(got["UWARP_LIB"], os.path.join(self.build, "stack", "libuwarp.so"))
        self.assertEqual(got["UWARP_LINK"], "memif")
        self.assertEqual((got["UWARP_IP"], got["UWARP_IP_AUTO"]), ("127.0.0.2/8", "1"))
        self.assertEqual(got["UWARP_DIR"], self.dir)
        self.assertNotIn("UWARP_MTU", got)
        self.assertNotIn("UWARP_VERBOSE", got)
        self.assertNotIn("UWARP_IDENTITY", got)
        self.assertNotIn("RDMAV_DRIVERS", got)

    def test_the_preload_comes_last(self):
        other = os.path.join(self.top, "other.so")
        compile_c(other, "int other;\n", "-shared", "-fPIC")
        got = self.show(env=self.env(LD_PRELOAD=other, IBV_DRIVERS="siw", RDMAV_DRIVERS="mlx5"))
        at = os.path.join(self.build, "verbs-provider")
        self.assertEqual(got["LD_PRELOAD"], f"{other}:{at}/libuwarp-preload.so")
        self.assertEqual(got["IBV_DRIVERS"], f"siw:{at}/libuwarp")
        self.assertEqual(got["RDMAV_DRIVERS"], f"mlx5:{at}/libuwarp")

    def test_the_loader_really_preloads_it(self):
        r = self.run_it("--quiet", "--", "grep", "-c", "libuwarp-preload.so", "/proc/self/maps")
        self.assertEqual(r.returncode, 0)
        self.assertGreater(int(r.stdout), 0)

    def test_options_reach_the_environment(self):
        got = self.show("--mtu", "9000", "--name", "mlx5_0", "--rate", "2.5G", "--verbose", "--ip", "127.1.2.3", "--threads", "c3", "--tso", "off", "--stacks", "2", "--impair", "drop=1%,seed=7")
        self.assertEqual(got["UWARP_NAME"], "mlx5_0")
        self.assertEqual(self.show("--name", "x" * 63)["UWARP_NAME"], "x" * 63)
        self.assertEqual(got["UWARP_IMPAIR"], "drop=1%,seed=7")
        self.assertEqual(got["UWARP_THREADS"], "c3")
        self.assertEqual((got["UWARP_TSO"], got["UWARP_STACKS"]), ("off", "2"))
        self.assertEqual(got["UWARP_LINK_RATE"], "2.5G")
        self.assertEqual((got["UWARP_MTU"], got["UWARP_VERBOSE"], got["UWARP_IP"]), ("9000", "1", "127.1.2.3/8"))

    def test_a_record_that_could_not_be_written(self):
        """The library would only find out when a QP has failed."""
        gone = os.path.join(self.top, "gone", "file")
        self.refused(1, rf"--record {gone}: .*gone is not there", "--record", gone, "--", "true")
        self.refused(2, "is a directory", "--record", self.top, "--", "true")
        self.assertEqual(self.run_it("--record", os.path.join(self.top, "new"), "--", "true").returncode, 0)

    def test_a_misspelt_variable_is_said(self):
        r = self.run_it("--quiet", "--", "true", env=self.env(UWARP_THREAD="c1", UWARP_RATE="1G", UWARP_SEED="1", uwarp_mtu="9000"))
        said = r.stderr.splitlines()
        self.assertEqual((r.returncode, len(said)), (0, 3), r.stderr)
        for line, (name, meant) in zip(said, (("UWARP_RATE", "UWARP_LINK_RATE"), ("UWARP_THREAD", "UWARP_THREADS"), ("uwarp_mtu", "UWARP_MTU"))):
            self.assertEqual(line, f"uwarp-run: uwarp has no variable {name}; is {meant} meant?")

    def test_env_prints_it_for_programs_that_cannot_be_wrapped(self):
        r = self.run_it("--identity", "roce", "--env", env=self.env(ASAN_OPTIONS="a=1 b=2", TSAN_OPTIONS="c=3"))
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        got = dict(line.split("=", 1) for line in r.stdout.splitlines())
        self.assertEqual(got["UWARP_IDENTITY"], "roce")
        self.assertEqual(got["UWARP_IP_AUTO"], "1")
        self.assertRegex(got["LD_PRELOAD"], r"^/.*/libuwarp-preload.so$")
        self.assertRegex(got["ASAN_OPTIONS"], r"^'a=1 b=2:.*'$")
        self.assertEqual(got["TSAN_OPTIONS"], "c=3:ignore_noninstrumented_modules=1")
        self.assertNotIn("UWARP_ADDR_FD", got)
        self.assertNotIn("PATH", got)
        self.assertEqual(self.run_it("--env", "--", "true").returncode, 2)
        self.assertEqual(self.run_it("--ip", "127.0.0.7", "--env").stdout.count("UWARP_IP=127.0.0.7/8\n"), 1)

    def test_env_takes_back_what_an_earlier_one_set(self):
        """In the same shell: what the second one does not say is empty then, which the library takes for not set."""
        once = 'set -a; eval "$("$RUN" %s --env)"; set +a; '
        script = once % "--link net_tap0,iface=x --ip 10.0.0.2 --mtu 9000 --rate 1G --vlan 7 --gateway 10.0.0.1 --route 10.2.0.0/16=10.0.0.3"
        asked = ("UWARP_IP", "UWARP_IP_AUTO", "UWARP_MTU", "UWARP_LINK_RATE", "UWARP_VLAN", "UWARP_GATEWAY", "UWARP_ROUTES", "UWARP_ADDR_FD")
        show = f"for name in {' '.join(asked)}; do eval echo $name=\\$$name; done; "
        env = self.env(RUN=RUN, UWARP_ADDR_FD="77")
        r = subprocess.run(["sh", "-ec", script + show + once % "" + show + once % "--ip 127.0.0.9" + show], env=env, capture_output=True, text=True, timeout=30)
        self.assertEqual(r.stderr, "")
        lines = [line.partition("=")[2] for line in r.stdout.splitlines()]
        self.assertEqual(lines[:8], ["10.0.0.2/24", "", "9000", "1G", "7", "10.0.0.1", "10.2.0.0/16=10.0.0.3", ""])
        self.assertEqual(lines[8:16], ["127.0.0.2/8", "1"] + [""] * 6)
        self.assertEqual(lines[16:], ["127.0.0.9/8"] + [""] * 7)

    def test_a_stale_setting_of_an_outer_run_is_not_inherited(self):
        for where in (["--link", "loop"], ["--ip", "127.0.0.9"]):
            got = self.show(*where, env=self.env(UWARP_ADDR_FD="77", UWARP_IP_AUTO="1", UWARP_MTU="1234", UWARP_LINK_RATE="1G"))
            self.assertNotEqual(got.get("UWARP_ADDR_FD"), "77")
            self.assertNotIn("UWARP_IP_AUTO", got)
            self.assertNotIn("UWARP_MTU", got)
            self.assertNotIn("UWARP_LINK_RATE", got)

    def test_one_line_says_what_was_chosen(self):
        r = self.run_it("--", "true")
        self.assertEqual(r.stderr, f"uwarp: 127.0.0.2 on memif (run dir {self.dir})\n")
        self.assertEqual(self.run_it("--quiet", "--", "true").stderr, "")

    def test_exit_code_arguments_and_signals_are_the_programs_own(self):
        self.assertEqual(self.run_it("--", "sh", "-c", "exit 37").returncode, 37)
        self.assertEqual(self.run_it("--", "sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)
        r = self.run_it("--quiet", "--", "echo", "--ip", "a b", "--", "-x")
        self.assertEqual(r.stdout, "--ip a b -- -x\n")
        r = self.run_it("--quiet", "echo", "-n", "--", "--list")
        self.assertEqual(r.stdout, "-- --list")
        p = self.start("--", *WAIT)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=10), -signal.SIGINT)

    def test_ignored_signals_are_those_of_the_caller(self):
        """Python ignores two, which a program that it becomes inherits: `yes | head` would print an error."""
        for before in ("", "trap '' PIPE; ", "trap '' XFSZ HUP; "):
            script = before + 'exec "$@" grep SigIgn: /proc/self/status'
            own = subprocess.run(["sh", "-c", script, "sh", "env"], capture_output=True, text=True)
            r = subprocess.run(["sh", "-c", script, "sh", RUN, "--quiet", "--"], env=self.env(), capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, own.stdout, ""))

    def test_the_locale_is_that_of_the_caller(self):
        """In the C locale Python sets LC_CTYPE (PEP 538)."""
        for before in (None, "C", "POSIX", ""):
            env = self.env(LANG="C", LC_ALL=None, LC_CTYPE=before)
            self.assertEqual(self.show(env=env).get("LC_CTYPE"), before)
            self.assertNotIn("LC_CTYPE", self.run_it("--env", env=env).stdout)

    def test_the_shell_in_front_changes_no_variable_of_the_caller(self):
        self.assertEqual(self.show(env=self.env(python="a"))["python"], "a")

    def test_works_from_an_installed_place(self):
        prefix = os.path.join(self.top, "usr")
        where = os.path.join(prefix, "lib", "x86_64-linux-gnu", "uwarp")
        for d in (where, os.path.join(prefix, "bin")):
            os.makedirs(d)
        for part in ("verbs-provider", "stack"):
            for name in os.listdir(os.path.join(self.build, part)):
                shutil.copy(os.path.join(self.build, part, name), where)
        installed = shutil.copy(RUN, os.path.join(prefix, "bin"))
        env = self.env(UWARP_BUILD_DIR=None)
        r = subprocess.run([installed, "--quiet", "--", "env"], env=env, capture_output=True, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, r"\Auwarp-run: its modules are missing; [^\n]+\n\Z")
        modules = shutil.copytree(os.path.join(os.path.dirname(RUN), "run"), os.path.join(prefix, "share", "uwarp", "run"))
        before = sorted(os.listdir(modules))
        r = subprocess.run([installed, "--quiet", "--", "env"], env=env, capture_output=True, text=True)
        self.assertIn(f"LD_PRELOAD={where}/libuwarp-preload.so\n", r.stdout)
        self.assertIn(f"UWARP_LIB={where}/libuwarp.so\n", r.stdout)
        self.assertEqual(sorted(os.listdir(modules)), before)  # nothing is left behind
        os.unlink(os.path.join(where, "libuwarp.so"))
        r = subprocess.run([installed, "--", "env"], env=env, capture_output=True, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, r"\Auwarp-run: uwarp is not built \(libuwarp.so missing\).*install")

    def test_a_missing_build_names_the_command(self):
        empty = os.path.join(self.top, "empty")
        os.makedirs(empty, exist_ok=True)
        env = self.env(UWARP_BUILD_DIR=empty)
        self.refused(1, r"libuwarp-preload\.so.* missing.*tools/quickstart", "--", "true", env=env)
        said = self.run_it("--", "true", env=env).stderr
        meson = re.search(r'&& (\S+ \S+ path\)"/bin/meson) setup', said)[1]  # Debian 12's own is too old
        r = subprocess.run(["sh", "-c", f"echo {meson}"], capture_output=True, text=True, timeout=30)
        self.assertRegex(r.stdout, r"\A/\S+/uwarp/venv-\w+/bin/meson\n\Z")

    def test_a_path_that_cannot_be_preloaded(self):
        bad = os.path.join(self.top, "a b")
        shutil.copytree(self.build, bad)
        self.refused(1, "LD_PRELOAD cannot name", "--", "true", env=self.env(UWARP_BUILD_DIR=bad))


class Addresses(Base):
    def test_every_process_has_its_own(self):
        got = []
        for _ in range(3):
            p = self.start("--", "sh", "-c", "echo ready; echo $UWARP_IP; exec sleep 30")
            got.append(p.stdout.readline().strip())
        self.assertEqual(got, ["127.0.0.2/8", "127.0.0.3/8", "127.0.0.4/8"])

    def test_a_freed_address_is_used_again(self):
        first, second = self.start("--", *WAIT), self.start("--", *WAIT)
        first.kill()
        first.wait()
        r = self.run_it("--quiet", "--", "sh", "-c", "echo $UWARP_IP")
        self.assertEqual(r.stdout, "127.0.0.2/8\n")
        self.assertIsNone(second.poll())

    def test_the_reservation_outlives_the_parent_of_a_fork(self):
        script = "sh -c 'echo ready; read x' <&3 & exit 0"
        read, write = os.pipe()
        p = subprocess.Popen(
            [RUN, "--quiet", "--", "sh", "-c", f"exec 3<&{read}; {script}"],
            env=self.env(), pass_fds=[read], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(read)
        self.children.append(p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertEqual(p.wait(timeout=10), 0)
        self.refused(1, "address 127.0.0.2 is in use by process", "--ip", "127.0.0.2", "--", "true")
        os.close(write)
        p.stdout.read()  # until the child is gone
        for _ in range(100):
            r = self.run_it("--quiet", "--ip", "127.0.0.2", "--", "true")
            if r.returncode == 0:
                return
            time.sleep(0.02)
        self.fail("the address was never given back")

    def test_the_descriptor_is_the_lock(self):
        code = (
            "import os,fcntl;fd=int(os.environ['UWARP_ADDR_FD']);"
            "print(os.readlink(f'/proc/self/fd/{fd}'), os.get_inheritable(fd), oct(os.fstat(fd).st_mode & 0o777))"
        )
        r = self.run_it("--quiet", "--ip", "127.9.8.7", "--", "python3", "-c", code)
        self.assertEqual(r.stdout, f"{self.dir}/ctl/127.9.8.7.lock True 0o600\n")

    def test_low_descriptors_stay_the_programs(self):
        r = self.run_it("--quiet", "--", "python3", "-c", "import os;print(os.open('/dev/null', 0))")
        self.assertEqual(r.stdout, "3\n")

    def test_a_small_descriptor_limit_is_no_obstacle(self):
        r = self.run_it("--quiet", "--", "sh", "-c", "echo $UWARP_ADDR_FD", preexec_fn=lambda: __import__("resource").setrlimit(7, (64, 64)))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertLess(int(r.stdout), 64)

    def test_a_taken_address_names_its_owner(self):
        p = self.start("--ip", "127.0.0.5", "--", *WAIT)
        self.refused(
            1,
            rf"address 127\.0\.0\.5 is in use by process {p.pid} \(sh\); choose another with --ip or omit it",
            "--ip", "127.0.0.5", "--", "true",
        )  # fmt: skip

    def test_a_short_look_at_the_lock_is_not_a_use(self):
        os.makedirs(os.path.join(self.dir, "ctl"), mode=0o700)
        os.chmod(self.dir, 0o700)
        with open(os.path.join(self.dir, "ctl", "127.0.0.5.lock"), "w") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            p = subprocess.Popen([RUN, "--ip", "127.0.0.5", "--", "true"], env=self.env(), stderr=subprocess.PIPE)
            time.sleep(0.1)
        error = p.communicate(timeout=10)[1]
        self.assertEqual(p.returncode, 0, error)

    def test_list_shows_the_living_only(self):
        p = self.start("--", *WAIT)
        q = self.start("--ip", "127.0.1.9", "--", *WAIT)
        self.run_it("--ip", "127.0.0.77", "--", "true")
        r = self.run_it("--list")
        self.assertEqual(r.returncode, 0)
        rows = [line.split() for line in r.stdout.splitlines()]
        self.assertEqual(
            rows, [["ADDRESS", "PID", "PROGRAM"], ["127.0.0.2", str(p.pid), "sh"], ["127.0.1.9", str(q.pid), "sh"]]
        )

    def test_list_knows_processes_that_took_an_address_themselves(self):
        os.makedirs(os.path.join(self.dir, "ctl"), mode=0o700)
        with open(os.path.join(self.dir, "ctl", "127.0.0.9.lock"), "w") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            print(os.getpid(), file=f, flush=True)
            with open("/proc/self/comm") as c:
                expected = ["127.0.0.9", str(os.getpid()), c.read().strip()]
            self.assertEqual(self.run_it("--list").stdout.splitlines()[1].split(), expected)
            self.refused(1, f"in use by process {os.getpid()} ", "--ip", "127.0.0.9", "--", "true")

    def test_list_without_a_run_directory(self):
        r = self.run_it("--list")
        self.assertEqual((r.returncode, len(r.stdout.splitlines()), r.stderr), (0, 1, ""))

    def test_bad_addresses(self):
        for bad in ("300.1.1.1", "1.2.3", "::1", "127.0.0.2/33", "127.0.0.2/", "a", "0.0.0.0", "224.1.1.1", "1.2.3.4/0", "10.9.0.255/24", "10.9.0.0/24"):
            with self.subTest(bad):
                self.refused(2, r"--ip \S*: not an", "--ip", bad, "--", "true")
        self.refused(1, "127.0.0.1: .*none can own it", "--ip", "127.0.0.1", "--", "true")

    def test_the_ends_of_a_network_of_two(self):
        self.assertIn("UWARP_IP=127.9.0.0/31\n", self.run_it("--ip", "127.9.0.0/31", "--env").stdout)

    def test_a_first_line_that_ends_in_cr(self):
        script = os.path.join(self.top, "crlf")
        with open(script, "w") as f:
            f.write("#!/bin/sh\r\ntrue\r\n")
        os.chmod(script, 0o755)
        self.refused(126, "its first line ends with a carriage return", "--", script)

    def test_nothing_is_said_on_stdout_if_stderr_is_closed(self):
        r = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", RUN, "--ip", "127.1.2.4", "--", "echo", "alone"], env=self.env(), stdout=subprocess.PIPE, text=True, timeout=30)
        self.assertEqual((r.returncode, r.stdout), (0, "alone\n"))

    def test_ip6_addresses(self):
        def chosen(*ip, link="memif"):
            options = [x for one in ip for x in ("--ip", one)]
            r = self.run_it("--quiet", "--link", link, *options, "--", "sh", "-c", "echo $UWARP_IP")
            return r.stdout.strip()

        both = "127.0.0.5/8,fd00::7f00:5/64"
        self.assertEqual(chosen("fd00::127.0.0.5"), both)  # the IPv4 one is its end
        self.assertEqual(chosen("fd00::127.0.0.5", "127.0.0.5"), both)
        self.assertEqual(chosen("127.0.0.5/16,fd00::127.0.0.5/48"), "127.0.0.5/16,fd00::7f00:5/48")
        self.assertEqual(chosen("fd00::127.0.0.6", link="loop"), "127.0.0.6/8,fd00::7f00:6/64")
        self.assertEqual(chosen("2001:db8::1", link="net_tap0,iface=x"), "2001:db8::1/64")

    def test_bad_ip6_addresses(self):
        ends = "ends in (the|an) IPv4 one"
        for bad, why in (
            ("fd00::5", ends), ("127.0.0.5,fd00::127.0.0.6", ends), ("fd00::127.0.0.5,fd01::127.0.0.6", ends),
            ("fe80::127.0.0.5", "link-local address of its own"), ("ff02::1", "not an address"),
            ("::ffff:127.0.0.5", "not an address"), ("fd00::127.0.0.5/129", "not an address"), ("fd00::1%lo", "not an address"),
            ("127.0.0.5,127.0.0.6", "at most one IPv4"), (",".join(f"fd0{n}::127.0.0.5" for n in range(5)), "and 4 of IPv6"),
            ("127.0.0.5,", "not an address"),
        ):  # fmt: skip
            with self.subTest(bad):
                self.refused(2, f"--ip \\S*: .*{why}", "--ip", bad, "--", "true")

    def test_a_bad_name_of_the_device_is_refused(self):
        for bad in ("a/b", ".", "..", "x" * 64, "mlx5 0", "é"):
            self.refused(2, "--name .*not a device's name", "--name", bad, "--", "true")
            self.refused(2, "--name .*not a device's name", "--", "true", env=self.env(UWARP_NAME=bad))

    def test_bad_mtu(self):
        for bad in ("0", "575", "65281", "x", "-5", "1e3"):
            with self.subTest(bad):
                self.refused(2, "--mtu .*(from 576 to 65280|expected)", "--mtu", bad, "--", "true")


class RunDirectory(Base):
    def test_the_default_is_the_users_runtime_directory(self):
        xdg = os.path.join(self.top, "xdg")
        os.makedirs(xdg, exist_ok=True)
        r = self.run_it("--", "true", env=self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=xdg))
        self.assertIn(f"(run dir {xdg}/uwarp)", r.stderr)
        self.assertEqual(stat.S_IMODE(os.stat(xdg + "/uwarp").st_mode), 0o700)

    @unittest.skipUnless(os.getuid() == 0, "needs root to make somebody else's directory")
    def test_the_runtime_directory_of_another_user_is_left_alone(self):
        xdg = os.path.join(self.top, "xdg-of-nobody")
        os.mkdir(xdg, mode=0o700)
        os.chown(xdg, NOBODY, NOBODY)
        for place in (xdg, self.top + "/none"):
            r = self.run_it("--list", "--", "true", env=self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=place))
            self.assertEqual((r.returncode, r.stderr), (0, ""))
        r = self.run_it("--env", env=self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=xdg))
        self.assertIn("UWARP_DIR=/tmp/uwarp-0\n", r.stdout)
        self.assertEqual(os.listdir(xdg), [])

    def test_env_for_a_service_touches_no_directory(self):
        place = os.path.join(self.top, "svc")  # short enough in tools/check, too
        for words, ip, auto in ((), "127.0.0.2/8", "1"), (("--ip", "127.0.0.9"), "127.0.0.9/8", None):
            r = self.run_it(*words, "--env", env=self.env(UWARP_DIR=place, LD_PRELOAD="", XDG_RUNTIME_DIR=self.top))
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            got = dict(line.split("=", 1) for line in r.stdout.splitlines())
            self.assertEqual((got["UWARP_DIR"], got["UWARP_IP"], got.get("UWARP_IP_AUTO")), (place, ip, auto))
            again = self.run_it(*words, "--env", env={**self.env(), **got})  # in a shell that has it already
            self.assertEqual(again.stdout, r.stdout)
        self.assertFalse(os.path.lexists(place))
        self.refused(1, "too long a path", "--env", env=self.env(UWARP_DIR=os.path.join(self.top, "x" * 80)))

    def test_env_says_that_it_goes_at_logout(self):
        r = self.run_it("--env", env=self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=self.top))
        self.assertIn(f"UWARP_DIR={self.top}/uwarp\n", r.stdout)
        self.assertRegex(r.stderr, r"\Auwarp-run: .*log out; for a service: UWARP_DIR=/run/NAME uwarp-run --env\n\Z")

    def test_writable_by_others(self):
        os.makedirs(self.dir)
        os.chmod(self.dir, 0o770)
        self.refused(1, "is writable by others .*chmod 700", "--", "true")

    def test_not_a_directory(self):
        os.symlink("/tmp", self.dir)
        self.addCleanup(os.unlink, self.dir)
        self.refused(1, "is not a directory", "--", "true")

    @unittest.skipUnless(os.getuid() == 0, "needs root to make somebody else's directory")
    def test_of_somebody_else(self):
        os.makedirs(self.dir, mode=0o700)
        os.chown(self.dir, NOBODY, NOBODY)
        self.refused(1, f"belongs to user {NOBODY}", "--", "true")

    def test_too_long_for_a_socket(self):
        long = os.path.join(self.top, "x" * 80)
        self.refused(1, "too long a path", "--", "true", env=self.env(UWARP_DIR=long))

    def test_a_name_that_the_link_cannot_use(self):
        self.refused(1, "has one of", "--", "true", env=self.env(UWARP_DIR=os.path.join(self.top, "a,b")))

    def test_no_room_in_it(self):
        os.makedirs(os.path.join(self.dir, "ctl"), mode=0o700)
        unshare = PrivateSysfs.UNSHARE
        for mount, words in (("-o nr_inodes=1", "No space left on device"), ("-o ro", "Read-only file system")):
            script = f'mount -t tmpfs {mount},mode=700 none "$UWARP_DIR"/ctl && exec "$@"'
            if subprocess.run([*unshare, "mount -t tmpfs none /tmp"], capture_output=True).returncode:
                self.skipTest("this system allows no mount namespaces")
            r = subprocess.run([*unshare, script, "sh", RUN, "--", "true"], env=self.env(), capture_output=True, text=True, timeout=30)
            self.assertEqual((r.returncode, r.stderr), (1, f"uwarp-run: run directory {self.dir}: {words}; name another one in UWARP_DIR\n"))

    def test_in_a_directory_that_is_gone(self):
        gone = os.path.join(self.top, "gone")
        script = f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {RUN} --record x -- true"
        r = subprocess.run(["sh", "-c", script], env=self.env(), capture_output=True, text=True, timeout=30)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, r"\nuwarp-run: x: the working directory is not there any more; .*\n\Z")  # the shell's line comes first

    def test_a_parent_that_is_not_there(self):
        self.refused(1, "No such file.*UWARP_DIR", "--", "true", env=self.env(UWARP_DIR=self.top + "/no/where"))


class Links(Base):
    def listen(self, path):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(s.close)
        s.bind(path)
        s.listen()

    def test_uwarpd(self):
        show = ("--", "sh", "-c", "echo $UWARP_LINK $UWARP_IP")
        path = os.path.join(self.top, "d.sock")
        self.addCleanup(os.unlink, path)
        self.listen(path)
        for link in (["--link", "uwarpd"], []):  # the first that there is
            r = self.run_it(*link, *show, env=self.env(UWARPD=path))
            self.assertEqual(r.stdout, f"uwarpd:{path}\n", r.stderr)
            self.assertIn(f"the uwarpd's address on uwarpd:{path}", r.stderr)
        r = self.run_it("--link", f"uwarpd:{path}", "--ip", "10.0.0.1", *show)
        self.assertEqual(r.stdout, f"uwarpd:{path} 10.0.0.1/24\n", r.stderr)
        for others in (["--ip", "127.0.0.9"], ["--link", "memif"]):
            self.assertIn("memif", self.run_it(*others, *show, env=self.env(UWARPD=path)).stdout)
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        self.listen(os.path.join(self.dir, "uwarpd.sock"))
        self.assertEqual(self.run_it(*show, env=self.env(UWARPD=None)).stdout, f"uwarpd:{self.dir}/uwarpd.sock\n")
        self.assertIn("memif", self.run_it(*show).stdout)

    def test_uwarpd_refused(self):
        self.refused(1, "no uwarpd at /nowhere: let root start one", "--link", "uwarpd", "--", "true", env=self.env(UWARPD="/nowhere"))
        self.refused(2, "one IPv4 address", "--link", "uwarpd:/x", "--ip", "fd00::1", "--", "true")
        self.refused(2, "one queue", "--link", "uwarpd:/x", "--stacks", "2", "--", "true")

    def test_unknown(self):
        for bad in ("foo", "net_", "af_packet:", "af_packet", "memif:x", "pci:zz", ""):
            with self.subTest(bad):
                self.refused(1, "unknown link .*known are: memif, uwarpd, the name of an interface, packet:IF, af_packet:IF, af_xdp:IF, loop", "--link", bad, "--", "true")

    def test_loop_needs_no_reservation(self):
        r = self.run_it("--link", "loop", "--", "env")
        self.assertIn("UWARP_LINK=loop\n", r.stdout)
        self.assertIn("UWARP_IP=127.0.0.2/8\n", r.stdout)
        self.assertEqual(r.stderr, f"uwarp: 127.0.0.2 on loop (run dir {self.dir})\n")

    def test_transports(self):
        r = self.run_it("--transport", "socket", "--", "env")
        self.assertIn("UWARP_TRANSPORT=socket\n", r.stdout)
        self.assertIn("UWARP_LINK=host\n", r.stdout)
        self.assertIn("UWARP_IP=127.0.0.2/8\n", r.stdout)
        self.assertEqual(r.stderr, f"uwarp: 127.0.0.2 on host (run dir {self.dir})\n")
        r = self.run_it("--transport", "raw", "--", "env")
        self.assertIn("UWARP_LINK=memif\n", r.stdout)
        self.refused(2, "invalid choice: 'udp'", "--transport", "udp", "--", "true")
        self.refused(2, "--link memif does not go with", "--transport", "socket", "--link", "memif", "--", "true")
        self.refused(2, "--rate does not go with", "--transport", "socket", "--rate", "10G", "--", "true")
        self.refused(2, "--impair does not go with", "--transport", "socket", "--impair", "drop=1%", "--", "true")
        self.refused(1, "192.0.2.1 is none of this host's", "--transport", "socket", "--ip", "192.0.2.1", "--", "true")
        self.refused(1, "unknown link 'host'", "--link", "host", "--", "true")

    def test_devices(self):
        self.refused(1, "has no address of its own; give one with --ip", "--link", "net_tap0,iface=x", "--", "true")
        self.refused(1, "no PCI device ffff:ff:1f.7", "--link", "ffff:ff:1f.7", "--ip", "10.0.0.1", "--", "true")
        self.refused(1, "no PCI device 0000:ff:1f.7", "--link", "pci:ff:1f.7", "--ip", "10.0.0.1", "--", "true")
        r = self.run_it("--link", "net_tap0,iface=x", "--ip", "10.1.2.3/16", "--", "env")
        self.assertIn("UWARP_LINK=net_tap0,iface=x\n", r.stdout)
        self.assertIn("UWARP_IP=10.1.2.3/16\n", r.stdout)

    def test_unknown_option(self):
        self.refused(2, "--ipp", "--ipp", "1.2.3.4", "--", "true")
        self.refused(2, "no program given")
        self.refused(2, "no program given", "--")


class PrivateSysfs(unittest.TestCase):
    """Whose kernel has RDMA: a stand-in /sys/class in a mount namespace takes its place."""

    UNSHARE = ["unshare", *([] if os.getuid() == 0 else ["-Ur"]), "-m", "sh", "-ec"]
    KERNELS = """mount -t tmpfs none /sys/class
        mkdir /sys/class/net /sys/class/infiniband /sys/class/infiniband_verbs
        ln -s ../../devices/pci0/infiniband/mlx5_0 /sys/class/infiniband/mlx5_0
        echo 6 >/sys/class/infiniband_verbs/abi_version
        """
    LAY = """cd "$1" && /usr/bin/python3 -Bc 'from run import private_sysfs; private_sysfs.lay_classes("uwarp0")'
        cd /sys/class && readlink infiniband/* infiniband_verbs/uverbs* && cat infiniband_verbs/abi_version"""

    def test_the_kernels_own_devices_stay_beside_ours(self):
        if subprocess.run([*self.UNSHARE, "mount -t tmpfs none /sys/class"], capture_output=True).returncode:
            self.skipTest("this system allows no mount namespaces")
        r = subprocess.run([*self.UNSHARE, self.KERNELS + self.LAY, "sh", os.path.dirname(RUN)], capture_output=True, text=True, timeout=30)
        ours = "../../devices/platform/uwarp.0/infiniband"
        lines = ["../../devices/pci0/infiniband/mlx5_0", f"{ours}/uwarp0", f"{ours}_verbs/uverbs30071", "6"]
        self.assertEqual((r.stderr, r.stdout.splitlines()), ("", lines))


# root needs no user namespace for it, and may not make one inside a chroot
NETNS = ["unshare", "-n" if os.getuid() == 0 else "-Urn", "--"]


def have_netns():
    return subprocess.run([*NETNS, "true"], capture_output=True).returncode == 0


class Interfaces(Base):
    """Each inside a network namespace of its own, so the machine's interfaces play no part."""

    def inside(self, setup, *args):
        script = f'{setup}\nexec "$@"'
        env = self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=self.top)
        return subprocess.run(
            [*NETNS, "sh", "-ec", script, "sh", RUN, *args], env=env, capture_output=True, text=True, timeout=30
        )

    def setUp(self):
        super().setUp()
        if not have_netns():
            self.skipTest("this system allows no user and network namespaces")
        if not shutil.which("ip"):
            self.skipTest("ip (iproute2) is not installed")
        shutil.rmtree(os.path.join(self.top, "uwarp"), ignore_errors=True)

    VETH = "ip link add v0 type veth peer name v1; "
    UP = VETH + "ip link set v0 up; ip link set v1 up; "

    def expect(self, pattern, setup, *args):
        r = self.inside(setup, *args, "--", "true")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertRegex(r.stderr, rf"\Auwarp-run: [^\n]*{pattern}[^\n]*\n\Z")

    def test_no_such_interface(self):
        self.expect("no network interface 'eth9' here; there are: .*v0", self.UP, "--link", "af_packet:eth9")

    def test_down(self):
        self.expect("v0 is down; .*ip link set v0 up", self.VETH, "--link", "af_packet:v0", "--ip", "10.0.0.1")

    def test_loopback(self):
        self.expect("lo is the loopback", "ip link set lo up", "--link", "af_packet:lo")

    def test_address_of_the_kernel(self):
        setup = self.UP + "ip addr add 10.0.0.1/24 dev v0; ip addr add 10.0.0.2/24 dev v0"
        link = ("--link", "af_packet:v0")
        self.expect("address 10.0.0.1 is configured on v0 in the kernel.*unused one with --ip", setup, *link)
        self.expect("address 10.0.0.2 is configured in the kernel", setup, *link, "--ip", "10.0.0.2")

    def test_no_address(self):
        self.expect("v0 has no IPv4 address; give an unused one", self.UP, "--link", "af_packet:v0")

    SIX = "echo 0 >/proc/sys/net/ipv6/conf/v0/disable_ipv6; ip addr add fd00::1/64 dev v0 nodad; ip addr add fe80::5/64 dev v0 nodad"

    def address(self, setup, *args):
        r = self.inside(self.UP + setup, "--link", "v0", *args, "--", "env")
        self.assertEqual(r.returncode, 0, r.stderr)
        return next(line for line in r.stdout.splitlines() if line.startswith("UWARP_IP="))

    def test_addresses_that_are_shared(self):
        four = "; ip addr add 10.0.0.1/24 dev v0"
        self.assertEqual(self.address(self.SIX), "UWARP_IP=")
        self.assertEqual(self.address(self.SIX + four), "UWARP_IP=10.0.0.1/24")
        self.assertEqual(self.address(self.SIX, "--ip", "fd00::1"), "UWARP_IP=fd00::1/64")
        self.expect("v0 has no address; give it one", self.UP + "ip addr flush dev v0", "--link", "v0")
        self.expect("address fd00::9 is the kernel's, and not one of v0", self.UP + self.SIX + "; ip addr add fd00::9/64 dev v1 nodad", "--link", "v0", "--ip", "fd00::9")

    def test_a_vlan_wants_an_address_of_its_own(self):
        setup = self.UP + "ip addr add 10.0.0.1/24 dev v0"
        self.expect("--vlan 7: the addresses of v0 are those of untagged frames; give an unused one .* with --ip A/N", setup, "--link", "v0", "--vlan", "7")
        r = self.inside(setup, "--link", "v0", "--vlan", "7", "--ip", "10.7.0.1/24", "--", "true")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_mtu_of_the_interface(self):
        self.expect("--mtu 4000 is more than the 1500 of v0", self.UP, "--link", "af_packet:v0", "--mtu", "4000")

    def test_works(self):
        r = self.inside(self.UP, "--link", "af_packet:v0", "--ip", "10.0.0.9", "--", "env")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("UWARP_LINK=af_packet:v0\n", r.stdout)
        self.assertIn("UWARP_IP=10.0.0.9/24\n", r.stdout)
        self.assertNotIn("UWARP_ADDR_FD", r.stdout)
        r = self.inside(self.UP, "--link", "af_xdp:v0", "--ip", "10.0.0.9", "--", "env")
        self.assertIn("UWARP_LINK=af_xdp:v0\n", r.stdout, r.stderr)

    def test_without_the_right(self):
        drop = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
        setup = self.UP
        script = f'{setup}\nexec "$@"'
        env = self.env(UWARP_DIR=None, XDG_RUNTIME_DIR=self.top)
        r = subprocess.run(
            [*NETNS, "sh", "-ec", script, "sh", *drop, RUN, "--link", "af_packet:v0", "--ip", "10.0.0.9", "--", "true"],
            env=env, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertRegex(r.stderr, r"\Auwarp-run: may not open a packet socket on v0 \(CAP_NET_RAW\): be root, run inside unshare -Urn, or let root start it by: setpriv .*\n\Z")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
