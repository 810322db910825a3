#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""setup, quickstart and check from outside: their words, their refusals, and how quickstart
reads what the stock programs print."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import check  # noqa: E402
import quickstart  # noqa: E402
import toolsenv  # noqa: E402


def run(tool, *args, env=None):
    command = [os.path.join(ROOT, "tools", tool), *args]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


class Words(unittest.TestCase):
    def test_help(self):
        for tool in ("setup", "quickstart", "check", "check-layers", "check-sizes", "uwarp-run"):
            with self.subTest(tool):
                r = run(tool, "--help")
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                self.assertRegex(r.stdout, rf"(?m)^usage: (tools/)?{tool}")

    def test_scripts_that_take_few_words_refuse_others(self):
        libs = ("arm64-root", "arm64-sysroot", "lwip-source", "rdma-core-source", "valkey-rdma", "newer-qemu", "rdma-core-packages", "rdma-core-pyverbs", "fresh")
        for tool in (*(f"lib/{name}" for name in libs), "../tests/packages/run", "../tests/verbs/run-many", "../tests/conform/run"):
            with self.subTest(tool):
                r = run(tool, "--bogus")
                self.assertEqual((r.returncode, r.stdout), (2, ""))
                self.assertRegex(r.stderr, rf"\A{os.path.basename(tool)}: .*--bogus.*\n\Z")
        r = run("../tests/packages/run", "--wheel-only", "--deb-only")
        self.assertEqual((r.returncode, r.stderr), (2, "run: unknown word '--deb-only' (--help tells more)\n"))

    def test_unknown_words(self):
        for tool, code in (("setup", 1), ("quickstart", 2), ("check", 2)):
            with self.subTest(tool):
                r = run(tool, "nonsense")
                self.assertEqual((r.returncode, r.stdout), (code, ""))
                self.assertRegex(r.stderr, rf"\A{tool}: .*'nonsense'.*\n\Z")


class Parts(unittest.TestCase):
    """tools/check names its parts three times: to choose, to describe, to run."""

    def test_every_part_is_known_everywhere(self):
        with open(os.path.join(ROOT, "tools", "check")) as f:
            text = f.read()
        everything = re.search(r'(?m)^all="(.*)"$', text)[1].split()
        shown = run("check", "--help").stdout
        for part in [*everything, "arm64-guest", "captures", "packages", "fresh"]:
            with self.subTest(part):
                self.assertTrue(part in check.PARTS or part in check.COMMANDS)
                self.assertRegex(shown, rf"(?m)^  {part} ")
        default = re.search(r"With no PART: ([a-z ]+),", shown)[1].split()
        self.assertEqual(default, ["unit", "sim", "programs", "gate"])
        self.assertIn(f"set -- {' '.join(default)}\n", text)
        with open(os.path.join(ROOT, ".ci", "run")) as f:
            self.assertIn("tools/check\" all", f.read())

    def test_what_takes_long_is_not_in_the_default_run(self):
        r = run("check", "unit", "all")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("unknown part 'all'", r.stderr)


class Meson(unittest.TestCase):
    """Debian 12's is too old, and a bare Debian has none: the commands that a newcomer copies name set-up's own."""

    def meson_after(self, line):
        r = subprocess.run(["sh", "-c", f"{line}\necho $PATH"], cwd=ROOT, env={**os.environ, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
        return os.path.join(r.stdout.split(":")[0], "meson")

    def test_readme_and_setup_put_it_in_the_path(self):
        with open(os.path.join(ROOT, "README.md")) as f:
            block = re.search(r"from the tree:\n\n((?:    .*\n)+)", f.read())[1]
        self.assertEqual(self.meson_after(block[: block.index("meson setup")].replace("tools/setup\n", "")), toolsenv.tool("meson"))
        with open(os.path.join(ROOT, "tools", "setup")) as f:
            said = re.search(r'say (".*toolsenv.py path.*") ;;', f.read())[1]
        r = subprocess.run(["bash", "-c", f"lib={ROOT}/tools/lib; echo {said}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(self.meson_after(r.stdout.partition(": ")[2]), toolsenv.tool("meson"))


class Package(unittest.TestCase):
    """tools/package in an archive that somebody has unpacked: no git there, a build tree maybe."""

    def put(self, path, text, mode=0o755):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, self.top)
        for name in ("package", "packaging", "lib"):
            copy = shutil.copytree if os.path.isdir(f"{ROOT}/tools/{name}") else shutil.copy
            os.makedirs(f"{self.top}/tree/tools", exist_ok=True)
            copy(f"{ROOT}/tools/{name}", f"{self.top}/tree/tools/{name}")
        self.put("tree/tools/lib/lwip-source", "#!/bin/sh\n")
        self.put("tree/meson.build", "  version: '1.2.3',\n")
        for name in ("CHANGELOG.md", "subprojects/lwip-2/lwip.c", "build/junk.o", "packages/old.deb"):
            self.put(f"tree/{name}", "")
        self.put("bin/dpkg-buildpackage", f"#!/bin/sh\nfind . -type f | sort >{self.top}/content\ntouch ../uwarp_1.deb ../uwarp.changes\n")
        for name in ("dh", "lintian"):
            self.put(f"bin/{name}", "#!/bin/sh\n")

    def test_without_git(self):
        env = {**os.environ, "PATH": f"{self.top}/bin:/usr/bin:/bin", "TMPDIR": self.top}
        r = subprocess.run([f"{self.top}/tree/tools/package", "deb", "--out", f"{self.top}/out"], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stdout), (0, f"{self.top}/out/uwarp_1.deb\n"), r.stderr)
        with open(f"{self.top}/content") as f:
            content = f.read().split()
        self.assertIn("./subprojects/lwip-2/lwip.c", content)
        self.assertIn("./debian/control", content)
        self.assertEqual([name for name in content if "junk" in name or "old.deb" in name], [])


class MissingPackages(unittest.TestCase):
    """A stand-in dpkg-query knows nothing of perftest; stand-in id and sudo make us powerless."""

    def setUp(self):
        self.bin = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, self.bin)
        self.put("dpkg-query", 'for a; do :; done; [ "$a" != perftest ] && echo installed')
        self.put("id", "echo 1000")
        self.put("sudo", "exit 1")
        self.put("apt-get", "echo called >&2; exit 1")

    def put(self, name, body):
        path = os.path.join(self.bin, name)
        with open(path, "w") as f:
            f.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o755)

    def test_without_rights_the_command_to_run_is_named(self):
        r = run("setup", "quickstart", env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("run as root:\n    apt-get update && apt-get install --no-install-recommends perftest\n", r.stderr)
        self.assertNotIn("called", r.stderr)

    def test_a_failing_installation_is_shown(self):
        self.put("id", "echo 0")
        r = run("setup", "quickstart", env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})
        self.assertEqual(r.returncode, 1)
        self.assertIn("installing Debian packages", r.stdout)
        self.assertIn("called", r.stderr)


class Interpreter(unittest.TestCase):
    """The python3 that comes first in PATH is somebody else's: nothing that set-up installed is in it."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, folder)
        for name in ("python3", "python"):
            path = os.path.join(folder, name)
            with open(path, "w") as f:
                f.write('#!/bin/sh\necho "the wrong interpreter runs $*" >&2\nexit 99\n')
            os.chmod(path, 0o755)
        self.env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

    @staticmethod
    def scripts():
        for folder in ("tools", "tests"):
            for here, dirs, names in os.walk(os.path.join(ROOT, folder)):
                dirs[:] = [d for d in dirs if not d.startswith(".") and d != "corpus"]
                for name in names:
                    path = os.path.join(here, name)
                    with open(path, "rb") as f:
                        head = f.readline(100)
                    if head.startswith(b"#!") and b"python" in head:
                        yield os.path.relpath(path, ROOT), head.split()[0].decode()[2:]

    def test_every_script_names_the_distributions_interpreter(self):
        found = dict(self.scripts())
        self.assertIn("tools/uwarp-bench", found)
        self.assertIn("tools/lib/check.py", found)
        self.assertEqual({p: i for p, i in found.items() if i != toolsenv.PYTHON}, {})

    def test_no_tool_runs_the_one_in_path(self):
        for tool in ("uwarp-bench", "uwarp-conform", "uwarp-run", "check", "check-layers", "check-sizes", "rfc-table", "quickstart", "uwarp-impair", "uwarp-stat"):
            with self.subTest(tool):
                r = run(tool, "--help", env=self.env)
                self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_setup_and_check_start_theirs_by_its_path(self):
        for tool in ("setup", "quickstart", "check"):
            with open(os.path.join(ROOT, "tools", tool)) as f:
                code = "".join(line for line in f if not line.startswith("#"))
            self.assertRegex(code, r"/usr/bin/python3 \"\$lib/")
            self.assertNotRegex(code, r"(?m)(?<!/)\bpython3 \"")

    def test_the_environment_is_the_same_whoever_asks(self):
        script = os.path.join(ROOT, "tools", "lib", "toolsenv.py")
        for python in {toolsenv.PYTHON, sys.executable, *self.others()}:
            with self.subTest(python):
                r = subprocess.run([python, script, "path"], capture_output=True, text=True, timeout=60)
                self.assertEqual((r.returncode, r.stdout.strip()), (0, toolsenv.path()), r.stderr)

    def test_another_interpreter_hands_over(self):
        for python in self.others():
            with self.subTest(python):
                r = subprocess.run([python, os.path.join(ROOT, "tools", "check-sizes"), "--help"], capture_output=True, text=True, timeout=60)
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                r = subprocess.run([python, os.path.join(ROOT, "tools", "check-sizes"), "/nowhere"], capture_output=True, text=True, timeout=60)
                self.assertNotIn("run tools/setup", r.stderr)

    @staticmethod
    def others():
        """Interpreters of the machine besides the distribution's, if there are any."""
        found = [os.path.join(d, "python3") for d in os.environ["PATH"].split(":")]
        return [p for p in found if os.access(p, os.X_OK)]

    def test_bench_draws_with_what_setup_installed(self):
        """With set-up's matplotlib there, the plots are drawn whatever python3 is first in PATH."""
        there = subprocess.run([toolsenv.PYTHON, "-c", "import matplotlib"], capture_output=True).returncode == 0
        if not there:
            self.skipTest("tools/setup bench has not been run here")
        head = open(os.path.join(ROOT, "tools", "uwarp-bench")).readline()
        program = os.path.join(tempfile.mkdtemp(prefix="uwarp-test-"), "plot")
        self.addCleanup(shutil.rmtree, os.path.dirname(program))
        with open(program, "w") as f:  # starts as uwarp-bench does, and asks for what draws
            f.write(head + f"import sys\nsys.path.insert(0, {os.path.join(ROOT, 'tools')!r})\n")
            f.write("sys.dont_write_bytecode = True\nfrom bench import plots\nprint(plots.pyplot().__name__)\n")
        os.chmod(program, 0o755)
        r = subprocess.run([program], env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "matplotlib.pyplot\n", ""))


LATENCY = """---
                    RDMA_Write Latency Test
---
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% ...
Conflicting CPU frequency values detected: 1 != 2. CPU Frequency is not max.
 64      5000          2.50           9.00         3.25     \t       3.50        \t0.10\t\t4.00\t\t8.00
---
"""


class Reading(unittest.TestCase):
    def test_perftest(self):
        row = quickstart.perftest_row(LATENCY)
        self.assertEqual((row[0], row[4]), (64.0, 3.25))

    def test_no_result_is_a_failure(self):
        for text in ("", "no heading\n 64 1 2 3 4\n", " #bytes #iterations\n---\n"):
            with self.subTest(text), self.assertRaises(quickstart.Failed):
                quickstart.perftest_row(text)

    def test_a_port_counts_as_listening_while_its_lock_is_held(self):
        run_dir = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, run_dir)
        self.assertFalse(quickstart.listens(run_dir, 7))
        os.mkdir(os.path.join(run_dir, "port"))
        with open(os.path.join(run_dir, "port", "7"), "w") as f:
            self.assertFalse(quickstart.listens(run_dir, 7))
            fcntl.flock(f, fcntl.LOCK_EX)
            self.assertTrue(quickstart.listens(run_dir, 7))

    def test_a_server_that_ends_early_is_reported_with_its_words(self):
        server = quickstart.Process(["sh", "-c", "echo no luck; exit 3"])
        self.addCleanup(server.stop)
        with self.assertRaises(quickstart.Failed) as caught:
            quickstart.wait_until(lambda: False, server, "listen")
        self.assertIn("exit code 3", str(caught.exception))
        self.assertIn("no luck", str(caught.exception))

    def test_a_signal_leaves_nothing_behind(self):
        place = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, place)
        # it tells of itself when its parent has long known of it, too
        server = ["sh", "-c", f'sleep 1; echo "$UWARP_DIR" $$ >{place}/new && mv {place}/new {place}/told; exec sleep 60']
        script = f"""
import sys
sys.path.insert(0, {os.path.dirname(quickstart.__file__)!r})
sys.dont_write_bytecode = True
import quickstart
quickstart.house.configure = quickstart.house.build = lambda tree: None
quickstart.UWARP_RUN = "env"
quickstart.EXCHANGES = [("test", "sleep", lambda: quickstart.over_uwarp({server!r}, ["true"]), None, None)]
quickstart.main()
"""
        for number in (signal.SIGTERM, signal.SIGHUP):
            p = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self.addCleanup(p.kill)
            while not os.path.exists(f"{place}/told"):
                self.assertIsNone(p.poll())
                time.sleep(0.01)
            with open(f"{place}/told") as f:
                run_dir, pid = f.read().split()
            os.unlink(f"{place}/told")
            self.assertTrue(os.path.isdir(run_dir))
            p.send_signal(number)
            self.assertEqual(p.wait(10), 128 + number)
            self.assertFalse(os.path.exists(run_dir))
            self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_a_failing_client_fails_the_exchange(self):
        good, bad = quickstart.Process(["true"]), quickstart.Process(["sh", "-c", "echo refused; exit 1"])
        for p in (good, bad):
            self.addCleanup(p.stop)
        with self.assertRaises(quickstart.Failed) as caught:
            quickstart.finish(("client", bad), ("server", good))
        self.assertIn("refused", str(caught.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
