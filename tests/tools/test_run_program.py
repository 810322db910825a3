#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-run: the program that it becomes, and those that it refuses since the loader would preload nothing into them."""

import ast
import os
import shutil
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from test_uwarp_run import NOBODY, RUN, Base, compile_c  # noqa: E402

sys.path.insert(0, os.path.dirname(RUN))
from run.program import check_program  # noqa: E402


class Programs(Base):
    def test_not_found(self):
        self.refused(127, "no-such-program: not found in PATH", "--", "no-such-program")
        self.refused(127, "/no/such: not found", "--", "/no/such")

    def test_not_executable(self):
        path = os.path.join(self.top, "plain")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n")
        self.refused(126, "not executable", "--", path)
        self.refused(126, "is a directory", "--", self.top)

    def test_static(self):
        path = os.path.join(self.top, "static")
        compile_c(path, "int main(void) { return 0; }\n", "-static")
        self.refused(126, "statically linked", "--", path)

    def test_static_pie(self):
        path = os.path.join(self.top, "static-pie")
        compile_c(path, "int main(void) { return 0; }\n", "-static-pie")
        self.refused(126, "statically linked", "--", path)

    def test_musl(self):
        path = os.path.join(self.top, "musl")
        compile_c(path, "int main(void) { return 0; }\n", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        self.refused(126, "musl: is linked with musl.*glibc", "--", path)

    def test_no_python(self):
        """The shell that begins uwarp-run says so; nothing but shells is in this PATH."""
        bare = os.path.join(self.top, "bare")
        os.makedirs(bare, exist_ok=True)
        copy = os.path.join(self.top, "uwarp-run-copy")
        with open(RUN) as f, open(copy, "w") as g:
            g.write(f.read().replace("/usr/bin/python3", "/nonexistent/python3"))
        r = subprocess.run(["/bin/sh", copy, "--", "true"], env={"PATH": bare}, capture_output=True, text=True, timeout=30)
        self.assertEqual(r.returncode, 1)
        self.assertRegex(r.stderr, r"\Auwarp-run: needs python3, .*apt install[^\n]+\n\Z")

    def test_address_sanitizer(self):
        """Its library wants to come first in a process, and the preloaded one comes before."""
        path = os.path.join(self.top, "sanitized")
        try:
            compile_c(path, "int main(void) { return 0; }\n", "-fsanitize=address")
        except subprocess.CalledProcessError:
            self.skipTest("no AddressSanitizer here")
        r = self.run_it("--quiet", "--", path)
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_another_machine_type(self):
        path = os.path.join(self.top, "foreign")
        with open(os.path.realpath("/bin/true"), "rb") as f:
            data = bytearray(f.read())
        data[18:20] = b"\x08\x00"  # MIPS
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
        self.refused(126, "another machine type", "--", path)

    @unittest.skipUnless(sys.maxsize > 1 << 32 and sys.byteorder == "little", "the layout below is that of 64 bits, little-endian")
    def test_segments_at_the_end(self):
        """As BOLT writes a program: its table of segments lies behind everything else."""
        with open(os.path.realpath("/bin/true"), "rb") as f:
            data = bytearray(f.read())
        at, entry, entries = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        table, old = bytearray(data[at : at + entry * entries]), len(data)
        data += bytes(-old % 4096)
        path = os.path.join(self.top, "bolted")
        for size, expected in (len(table), None), (len(table) - 1, "damaged ELF"):
            new = data[:32] + struct.pack("<Q", len(data)) + data[40:] + table[:size]
            with open(path, "wb") as f:
                f.write(new)
            os.chmod(path, 0o755)
            if expected:
                self.refused(126, expected, "--", path)
            else:
                check_program(path, {"libuwarp-preload.so": os.path.join(self.build, "verbs-provider", "libuwarp-preload.so")})

    def test_damaged(self):
        path = os.path.join(self.top, "damaged")
        with open(path, "wb") as f:
            f.write(b"\x7fELF\x02\x01\x01")
        os.chmod(path, 0o755)
        self.refused(126, "damaged ELF", "--", path)

    def test_neither_elf_nor_script(self):
        path = os.path.join(self.top, "text")
        with open(path, "w") as f:
            f.write("echo hello\n")
        os.chmod(path, 0o755)
        self.refused(126, "neither an ELF", "--", path)

    def script(self, first_line):
        path = os.path.join(self.top, "script")
        with open(path, "w") as f:
            f.write(first_line + "\necho ran\n")
        os.chmod(path, 0o755)
        return path

    def test_scripts(self):
        r = self.run_it("--quiet", "--", self.script("#!/bin/sh"))
        self.assertEqual((r.returncode, r.stdout), (0, "ran\n"))
        self.refused(126, "its interpreter /no/sh cannot be run", "--", self.script("#!/no/sh"))
        static = os.path.join(self.top, "static")
        compile_c(static, "int main(void) { return 0; }\n", "-static")
        self.refused(126, "static: is statically linked", "--", self.script("#!" + static))
        for words in ("", "-S ", "-S -u FOO -v ", "-vS --unset FOO A='b c' D=e ", "--split-string="):
            self.refused(126, "static: is statically linked", "--", self.script(f"#!/usr/bin/env {words}{static}"))

    def test_scripts_whose_env_has_options(self):
        for words in ("-S -u FOO sh", "-S -C / sh", "-S A=\"b c\" sh", "-S -i PATH=/bin sh", "-S PATH=/bin:/usr/bin sh", "-S ${SHELL_OF_TEST}"):
            with self.subTest(words):
                r = self.run_it("--quiet", "--", self.script("#!/usr/bin/env " + words), env=self.env(SHELL_OF_TEST="/bin/sh"))
                self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "ran\n", ""))

    def set_id_copy(self, mode, uid, gid):
        path = os.path.join(self.top, "set-id")
        shutil.copy(os.path.realpath("/bin/true"), path)
        os.chown(path, uid, gid)
        os.chmod(path, mode)
        return path

    @unittest.skipUnless(os.getuid() == 0, "needs root to make a set-id program")
    def test_set_id(self):
        self.refused(126, "is setuid; the loader ignores LD_PRELOAD", "--", self.set_id_copy(0o4755, NOBODY, 0))
        self.refused(126, "is setgid; the loader ignores LD_PRELOAD", "--", self.set_id_copy(0o2755, 0, NOBODY))
        # setuid to the very user who runs it changes nothing
        r = self.run_it("--", self.set_id_copy(0o4755, os.getuid(), os.getgid()))
        self.assertEqual(r.returncode, 0, r.stderr)

    @unittest.skipUnless(os.getuid() == 0, "needs root to give a file capabilities and to drop rights")
    def test_file_capabilities(self):
        path = self.set_id_copy(0o755, 0, 0)
        try:
            # version 2, CAP_NET_RAW permitted and effective
            os.setxattr(path, "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
        except OSError as e:
            self.skipTest(f"no capabilities on this file system: {e}")
        os.makedirs(self.dir, mode=0o700)
        os.chown(self.dir, NOBODY, NOBODY)
        reach = subprocess.run(["test", "-x", RUN], user=NOBODY, group=NOBODY, extra_groups=[])
        if reach.returncode:
            self.skipTest("other users cannot reach the source tree")
        self.refused(126, "has file capabilities", "--", path, as_user=NOBODY)
        self.assertEqual(self.run_it("--", "/bin/true", as_user=NOBODY).returncode, 0)


class OldPython(unittest.TestCase):
    """The wheel is for systems whose /usr/bin/python3 may be 3.6 (EL 8)."""

    LATER = {"isascii", "capture_output=", "text=", "removeprefix", "removesuffix", "dataclass", "cached_property", "annotations", "time_ns"}

    def test_nothing_that_came_later(self):
        tools = os.path.dirname(RUN)
        modules = [os.path.join(tools, "run", name) for name in sorted(os.listdir(os.path.join(tools, "run"))) if name.endswith(".py")]
        for path in [RUN, os.path.join(tools, "uwarp-stat"), *modules]:
            with self.subTest(path), open(path, encoding="utf-8") as f:
                tree = ast.parse(f.read(), path, feature_version=(3, 6))
                words = {getattr(node, kind, None) for node in ast.walk(tree) for kind in ("id", "attr", "name")}
                words |= {f"{node.arg}=" for node in ast.walk(tree) if isinstance(node, ast.keyword)}
                self.assertEqual(words & self.LATER, set())


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
