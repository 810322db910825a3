#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-layers and check-sizes: each rule finds what it is for, where it is for it, and nothing
that a comment or a string merely mentions."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTOCOL = ("wire", "mpa", "ddp", "rdmap", "mem", "qp", "cm")
CLEAN = '/* x */\n#include <stdint.h>\n#include "base/status.h"\n\nint f(int a)\n{\n\treturn a;\n}\n'


class Tree(unittest.TestCase):
    tool = None

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, self.root)
        for d in PROTOCOL:
            self.put(f"stack/{d}/clean.c", CLEAN)
        self.put("stack/base/status.h", "\n")

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def check(self, env=None):
        r = subprocess.run(
            [os.path.join(ROOT, "tools", self.tool), self.root], capture_output=True, text=True, timeout=60, env=env
        )
        hits = [line for line in r.stdout.splitlines() if not line.startswith(self.tool)]
        return r.returncode, hits, r

    def assert_clean(self):
        code, hits, r = self.check()
        self.assertEqual((code, hits), (0, []), r.stderr)

    def assert_hits(self, *starts):
        code, hits, r = self.check()
        self.assertEqual(code, 1, r.stdout + r.stderr)
        self.assertEqual([h[: len(s)] for h, s in zip(hits, starts)], list(starts))
        self.assertEqual(len(hits), len(starts), hits)


class Layers(Tree):
    tool = "check-layers"

    def test_clean(self):
        self.assert_clean()

    def test_every_forbidden_word_in_every_protocol_folder(self):
        words = (
            "rte_mbuf_refcnt", "RTE_MAX", "pbuf", "struct tcp_pcb", "lwip_htons", "ibv_post_send", "IBV_WC_SEND",
            "malloc(1)", "calloc(1, 1)", "realloc(p, 1)", "free(p)", "strdup(p)", "socket(1, 2, 3)",
            "struct sockaddr_in", "sendmsg", "clock_gettime(0, 0)", "CLOCK_MONOTONIC", "time(0)", "gettimeofday",
            "pthread_mutex_lock", "stack_lock(e)", "spinlock", "futex", "printf(p)", "fprintf", "snprintf", "puts",
            "stderr",
        )  # fmt: skip
        for d in PROTOCOL:
            self.put(f"stack/{d}/dirty.h", "".join(f"{w};\n" for w in words))
        code, hits, _ = self.check()
        self.assertEqual(code, 1)
        for d in PROTOCOL:
            for line, w in enumerate(words, 1):
                start = f"stack/{d}/dirty.h:{line}: names "
                self.assertTrue(any(h.startswith(start) for h in hits), f"{d}: {w}")

    def test_forbidden_includes(self):
        names = (
            "<rte_ring.h>", "<lwip/tcp.h>", '"lwip/tcp.h"', "<infiniband/verbs.h>", "<sys/socket.h>", "<stdio.h>",
            '"stdio.h"', "<stdlib.h>", "<time.h>", "<pthread.h>", "<unistd.h>", '"io/io.h"', '"../engine/engine.h"',
        )  # fmt: skip
        for there in ("io/io.h", "engine/engine.h"):
            self.put(f"stack/{there}", "\n")
        self.put("stack/qp/dirty.c", "/* a\n b */\n" + "".join(f"#  include {n}\n" for n in names))
        self.assert_hits(*(f"stack/qp/dirty.c:{line}: includes {n}:" for line, n in enumerate(names, 3)))

    def test_comments_and_strings_do_not_count(self):
        self.put(
            "stack/qp/talk.c",
            "/* malloc() and\n * rte_mbuf */ int a; // free(x) \\\n   pbuf\n"
            'const char *s = "printf(\\"malloc\\") /* ";\nconst char *t = "*/ ibv_x"; char c = \'"\'; /* " */ int b;\n'
            '/* #include <stdio.h> */\n// #include <stdlib.h>\n',
        )
        self.assert_clean()

    def test_code_after_a_comment_or_string_counts(self):
        self.put("stack/qp/talk.c", '/* x */ malloc(1); // y\nchar *s = "a" "b"; free(s);\nchar c = \'"\'; free(s); /* " */\n')
        self.assert_hits("stack/qp/talk.c:1:", "stack/qp/talk.c:2:", "stack/qp/talk.c:3:")

    def test_names_that_only_look_alike(self):
        self.put(
            "stack/qp/alike.c",
            "int block, unblocked, sq_free, freed, timeout, runtime, cq_poll(void), free_count;\n"
            "int x = q->free + q.time; int clocks, listen_backlog, sprint, uw_send, accepted, blocks_left;\n",
        )
        self.assert_clean()

    def test_edges(self):
        self.put("stack/io/dpdk/a.c", "#include <rte_mbuf.h>\nint a = rte_x();\n")
        self.put("stack/io/lwip/a.c", "struct pbuf *p; void *q = malloc(1);\n")
        self.put("verbs-provider/a.c", "int a = ibv_x; pthread_mutex_t m;\n")
        self.assert_clean()
        self.put("stack/engine/a.c", "int a = rte_x();\nint b = ibv_x();\n")
        self.put("verbs-provider/b.c", "struct pbuf *p;\n")
        self.assert_hits("stack/engine/a.c:1: names DPDK", "stack/engine/a.c:2: names verbs", "verbs-provider/b.c:1: names lwIP")

    def test_lwip_and_dpdk_have_their_edges_in_io(self):
        for room in ("io/dpdk", "io/port", "io/memif"):
            self.put(f"stack/{room}/a.c", "int a = rte_x();\n")
        for room in ("io/lwip/pcb", "io/seq"):
            self.put(f"stack/{room}/a.c", "struct tcp_pcb *p;\n")
        self.assert_clean()
        self.put("stack/io/rendezvous/a.c", "int a = rte_x();\n")
        self.put("stack/io/socket/a.c", "struct pbuf *p;\n")
        self.put("stack/loss/a.c", "struct tcp_pcb *p;\n")
        self.assert_hits("stack/io/rendezvous/a.c:1: names DPDK", "stack/io/socket/a.c:1: names lwIP", "stack/loss/a.c:1: names lwIP")

    def test_rooms_of_io_keep_apart(self):
        for room in ("dpdk/frame.h", "rendezvous/registry.h", "memif/lane.h", "port/port.h"):
            self.put(f"stack/io/{room}", "\n")
        self.put("stack/io/memif/a.c", '#include "io/dpdk/frame.h"\n#include "io/rendezvous/registry.h"\n')
        self.put("stack/io/port/a.c", '#include "io/dpdk/frame.h"\n')
        self.assert_clean()
        self.put("stack/io/memif/a.c", '#include "io/port/port.h"\n')
        self.assert_hits("stack/io/memif/a.c:1: includes")

    def test_what_impairs_has_no_clock(self):
        self.put("stack/io/impair/a.c", "void *p = malloc(1);\nint a = clock_gettime(0, 0);\n")
        self.assert_hits("stack/io/impair/a.c:2: names a clock")

    def test_new_protocol_folders_are_sans_io_too(self):
        self.put("stack/roce/a.c", "int a = clock_gettime(0, 0);\n")
        self.put("stack/loss/a.c", '#include "conn/conn.h"\n')
        self.put("stack/conn/conn.h", "\n")
        self.assert_hits("stack/loss/a.c:1: includes", "stack/roce/a.c:1: names a clock")

    def test_nothing_to_check_is_no_success(self):
        shutil.rmtree(os.path.join(self.root, "stack", "mem"))
        code, _, r = self.check()
        self.assertEqual(code, 1)
        self.assertIn("no source in stack/mem", r.stderr)


class Rooms(Tree):
    """Each arrow that points up, and each circle, is found; those that point down are not."""

    tool = "check-layers"
    # who, whom, by a header; all are allowed
    DOWN = (
        ("engine", "verbs"), ("engine", "io"), ("verbs", "conn"), ("verbs", "sched"), ("verbs", "qp"), ("conn", "sched"),
        ("conn", "qp"), ("conn", "cm"), ("conn", "roce"), ("sched", "base"), ("io/lwip", "io"), ("io/lwip", "loss"), ("qp", "base"),
    )  # fmt: skip
    UP = (
        ("verbs", "engine"), ("conn", "verbs"), ("conn", "engine"), ("sched", "conn"), ("sched", "verbs"), ("sched", "qp"),
        ("sched", "io"), ("conn", "io"), ("conn", "io/lwip"), ("verbs", "io"), ("base", "qp"), ("base", "sched"), ("io/lwip", "engine"),
        ("io/lwip", "conn"), ("io/memif", "verbs"), ("io/socket", "loss"), ("qp", "conn"), ("cm", "sched"), ("loss", "io"),
    )  # fmt: skip

    def header(self, room, name="a", text="\n"):
        self.put(f"stack/{room}/{name}.h", text)
        return f'#include "{room}/{name}.h"\n'

    def test_arrows_down(self):
        for n, (who, whom) in enumerate(self.DOWN):
            self.put(f"stack/{who}/x{n}.c", "\n" + self.header(whom))
        self.put("stack/conn/tcp.c", self.header("io", "llp"))
        self.put("stack/conn/rc/rc.c", self.header("conn"))
        self.put("stack/sched/api.h", self.header("include/uwarp", "types").replace("include/", ""))
        self.assert_clean()

    def test_arrows_up(self):
        for who, whom in self.UP:
            with self.subTest(f"{who} -> {whom}"):
                self.put(f"stack/{who}/x.c", "\n" + self.header(whom))
                code, hits, _ = self.check()
                self.assertEqual(code, 1)
                self.assertTrue(any(h.startswith(f"stack/{who}/x.c:2: includes") for h in hits), hits)
                os.unlink(os.path.join(self.root, "stack", who, "x.c"))
                os.unlink(os.path.join(self.root, "stack", whom, "a.h"))
        self.assert_clean()

    def test_a_call_without_an_include_is_an_arrow_as_well(self):
        self.put("stack/verbs/cq.c", "int verbs_x(int a,\n\t    int b)\n{\n\treturn a + b;\n}\n")
        self.put("stack/conn/a.c", "int conn_y(void)\n{\n\treturn verbs_x(1, 2);\n}\n")
        self.assert_hits("stack/conn/a.c:3: calls verbs_x of stack/verbs/cq.c: conn may not know verbs")

    def test_a_function_given_away_counts_and_a_call_by_table_does_not(self):
        self.put("stack/verbs/cq.c", "int verbs_x(int a)\n{\n\treturn a;\n}\n")
        self.put("stack/conn/a.c", "int conn_y(struct t *t)\n{\n\treturn t->verbs_x(1) + t.verbs_x(2);\n}\n")
        self.put("stack/conn/b.c", "static int verbs_x(void)\n{\n\treturn 1;\n}\n\nint conn_z(void)\n{\n\treturn verbs_x();\n}\n")
        self.assert_clean()
        self.put("stack/conn/c.c", "static const struct t t = { .x = verbs_x };\n")
        self.assert_hits("stack/conn/c.c:1: calls verbs_x")

    def test_a_circle_of_includes_between_rooms(self):
        self.put("stack/io/loop/a.h", self.header("io/socket"))
        self.put("stack/io/loop/b.h", "\n")
        self.assert_clean()
        self.put("stack/io/socket/b.c", '#include "io/loop/b.h"\n')
        self.assert_hits("stack/io/loop/a.h:1: a circle of includes between rooms: io/loop, io/socket")

    def circle(self, n, room="qp"):
        for i in range(n):
            self.put(f"stack/{room}/c{i}.c", f"int f{i}(int a)\n{{\n\treturn f{(i + 1) % n}(a);\n}}\n")

    def test_a_circle_of_calls_inside_a_room(self):
        self.circle(4)
        self.assert_clean()
        self.circle(5)
        self.assert_hits("stack/qp/c0.c:1: a circle of 5 files in qp, at most 4: c0.c, c1.c, c2.c, c3.c, c4.c")

    def test_a_circle_of_calls_goes_through_the_folders_of_a_room(self):
        self.circle(4, "conn")
        self.put("stack/conn/c3.c", "int f3(int a)\n{\n\treturn g(a);\n}\n")
        self.put("stack/conn/rc/g.c", "int g(int a)\n{\n\treturn f0(a);\n}\n")
        self.assert_hits("stack/conn/c0.c:1: a circle of 5 files in conn")

    def test_a_circle_of_headers_inside_a_room(self):
        for n in (4, 5):
            for i in range(n):
                self.put(f"stack/qp/h{i}.h", f'#include "h{(i + 1) % n}.h"\n')
            if n == 4:
                self.assert_clean()
        self.assert_hits("stack/qp/h0.h:1: a circle of 5 files in qp")


class Manual(unittest.TestCase):
    def test_every_counter_is_explained(self):
        top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        with open(os.path.join(top, "stack/base/stats.h")) as f:
            names = re.findall(r"\bX\((\w+)\)", f.read())
        with open(os.path.join(top, "doc/man/uwarp-run.1")) as f:
            text = f.read()
        self.assertGreater(len(names), 30)
        self.assertEqual([n for n in names if not re.search(rf"\b{n}\b", text)], [])


class Sizes(Tree):
    tool = "check-sizes"

    @staticmethod
    def function(lines, name="g", args="void"):
        return f"int {name}({args})\n{{\n" + "\tx();\n" * (lines - 4) + "\treturn 0;\n}\n"

    def test_clean(self):
        self.assert_clean()

    def test_function_lines(self):
        self.put("stack/qp/a.c", "\n" + self.function(70))
        self.assert_clean()
        self.put("stack/qp/a.c", "\n" + self.function(71))
        self.assert_hits("stack/qp/a.c:2: function g: lines 71, limit 70")

    def test_file_lines(self):
        self.put("apps/a.c", "\n" * 800)
        self.assert_clean()
        self.put("apps/a.c", "\n" * 801)
        self.assert_hits("apps/a.c:1: file has 801 lines, limit 800")

    def test_parameters(self):
        self.put("verbs-provider/a.c", self.function(5, args="int a, int b, int c, int d, int e, int f"))
        self.assert_clean()
        self.put("verbs-provider/a.c", self.function(5, args="int a, int b, int c, int d, int e, int f, int g"))
        self.assert_hits("verbs-provider/a.c:1: function g: parameters 7, limit 6")

    def test_complexity(self):
        body = "int g(int a)\n{\n" + "\tif (a)\n\t\ta++;\n" * 14 + "%s\treturn a;\n}\n"
        self.put("tools/a.c", body % "")
        self.assert_clean()
        self.put("tools/a.c", body % "\twhile (a && 1)\n\t\ta--;\n")
        self.assert_hits("tools/a.c:1: function g: complexity 17, limit 15")

    def test_tests_may_be_longer(self):
        self.put("tests/unit/a.c", self.function(120, args="int a, int b, int c, int d, int e, int f, int g"))
        self.assert_clean()
        self.put("tests/unit/a.c", self.function(121))
        self.assert_hits("tests/unit/a.c:1: function g: lines 121, limit 120")

    def test_nothing_to_check_is_no_success(self):
        shutil.rmtree(os.path.join(self.root, "stack"))
        code, _, r = self.check()
        self.assertEqual(code, 1)
        self.assertIn("no functions found", r.stderr)

    def test_without_the_measuring_tool_it_fails(self):
        env = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.root, "empty")}
        code, _, r = self.check(env)
        self.assertEqual(code, 1)
        self.assertIn("run tools/setup", r.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
