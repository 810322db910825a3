# SPDX-License-Identifier: BSD-3-Clause
"""What a case works with: connections to the target, and a place for its findings."""

import subprocess
import time

from . import codec, program, stream
from .verdict import FAIL, INCONCLUSIVE, NA, PASS, Check, Failure, Inconclusive, NotApplicable


class Trial:
    def __init__(self, options, case, result):
        self.options, self.case, self.result = options, case, result
        self.program = options.program
        self.open_streams = []
        self.client = None

    def log(self, line):
        self.result.log.append(line)

    # ---- findings -------------------------------------------------------------------------

    def check(self, req, ok, expected, seen):
        self.result.checks.append(Check(req, PASS if ok else FAIL, expected, str(seen)))
        return ok

    def silent(self, req, s, seconds, expected):
        quiet = s.quiet(seconds)
        return self.check(req, quiet, expected, "silence" if quiet else "octets, or the end")

    def doubt(self, req, expected, seen):
        self.result.checks.append(Check(req, INCONCLUSIVE, expected, str(seen)))

    def not_applicable(self, req, why):
        self.result.checks.append(Check(req, NA, "", why))

    def run(self):
        first = self.case.requirements[0]
        start = time.monotonic()
        try:
            self._missing()
            self.case.run(self)
            self._rest()
        except NotApplicable as e:
            self.not_applicable(first, str(e))
        except stream.NotConnected as e:
            self.result.unreachable = True
            self.doubt(first, "a connection", str(e))
        except Inconclusive as e:
            self.doubt(first, "", str(e))
        except Failure as e:
            self.check(first, False, e.expected, e.seen)
        except stream.Ended as e:
            self.check(first, False, "the exchange goes on", f"it ended with {e.how}")
        except codec.Malformed as e:
            self.check(first, False, "well-formed octets", str(e))
        finally:
            self.close()
            self.result.seconds = time.monotonic() - start

    def _rest(self):
        """Requirements of the case that no check of its own named stand or fall with all of it."""
        found = {c.requirement for c in self.result.checks}
        if all(c.verdict == PASS for c in self.result.checks) and found:
            for req in self.case.requirements:
                if req not in found:
                    self.check(req, True, "", "the exchange as a whole")

    def _missing(self):
        p = self.program
        has = {"send": p.good_send is not None, "regions": p.has_regions, "commands": p.has_commands,
               "wish": p.has_wishes and self.options.role == "initiator",
               "atomics": p.has_regions and p.atomics}  # fmt: skip
        lacking = [n for n in self.case.needs if not has[n]]
        if lacking:
            raise NotApplicable(f"the program behind the target ({p.name}) does not offer: {', '.join(lacking)}")

    def settle(self, s):
        """Give the target the moment after start-up that some need before the next thing happens:
        one sees no FPDU in it, one falls over if the connection ends in it."""
        time.sleep(max(0, s.started + self.options.settle - time.monotonic()))

    def close(self):
        for s in self.open_streams:
            self.settle(s)
            s.close()
        self.open_streams = []
        if self.client and self.client.poll() is None:
            self.client.terminate()
        if self.client:
            self.client.wait()
            self.client = None

    # ---- connections ----------------------------------------------------------------------

    def raw(self, **how):
        """A TCP connection on which nothing was said; in the responder's role the target made it."""
        make = self._accept if self.options.role == "responder" else self._connect
        s = make(**how)
        self.open_streams.append(s)
        return s

    def _connect(self, mss=None, rcvbuf=None):
        return stream.connect(self.options.address, self.options.timeout, self.log, mss, rcvbuf)

    def _accept(self, mss=None, rcvbuf=None):
        if self.options.client:
            self.client = subprocess.Popen(self.options.client, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return stream.accept(self.options.listener, self.options.patience, self.options.timeout, self.log)

    def open(self, **how):
        """A stream past start-up, ready for our FPDUs."""
        if self.options.role == "responder":
            return self.answer(**how)
        s = self.request(**how)
        if s.reply.flags & codec.R:
            raise Failure("an accepting Reply", s.reply)
        self.settle(s)
        return s

    def request(self, flags=codec.C, rev=2, ird=8, ord_=8, p2p=False, rtr=0, data=b"", wish=None, **tcp):
        """Send a Request, take the Reply."""
        s = self.raw(**tcp)
        if rev >= 2:
            flags |= codec.S
            data = codec.enhanced(ird, ord_, p2p, rtr) + data
        if wish is not None or (self.program.has_wishes and not data[4:]):
            data += wish or program.wish()
        frame = codec.start_frame(codec.REQUEST_KEY, flags, rev, data)
        s.put(frame, codec.parse_start(frame))
        s.reply = s.take_start()
        self.agreed(s, flags, s.reply)
        return s

    def agreed(self, s, mine, theirs):
        s.agree(mine, theirs.flags)
        self.program = program.advertised(theirs.ulp_data) or self.program

    def answer(self, flags=codec.C, ird=8, ord_=8, rtr=codec.RTR_WRITE, data=b"", first=True, **tcp):
        """Take a Request, send the Reply, and take what opens the stream."""
        s = self.raw(**tcp)
        q = s.request = s.take_start()
        if q.enhanced:
            flags |= codec.S
            pick = next((k for k in (rtr, codec.RTR_WRITE, codec.RTR_READ, codec.RTR_SEND) if q.rtr & k), rtr) if q.p2p else 0
            data = codec.enhanced(ird, ord_, q.p2p, pick) + data
        frame = codec.start_frame(codec.REPLY_KEY, flags, q.rev, data)
        s.put(frame, codec.parse_start(frame))
        self.agreed(s, flags, q)
        if first:
            self.take_first(s)
        return s

    def take_first(self, s):
        """The RTR if there is one, then the program's first message."""
        seg = s.recv()
        if s.request.p2p:
            if seg.op == codec.READ_REQUEST:
                r = codec.parse_read(seg.payload)
                s.send(codec.tagged(codec.READ_RESPONSE, r.sink, r.sink_to))
            if not isinstance(self.program, program.Conform) and self.program.name != "rping":
                return seg
            seg = s.recv()
        while seg.op == codec.WRITE and not seg.payload:  # a nudge
            seg = s.recv()
        return seg

    # ---- the program's answers ------------------------------------------------------------

    def region(self, name):
        return self.program.regions[name]

    def send(self, s, payload, op=codec.SEND, **how):
        s.send(codec.untagged(op, 0, s.next_msn(0), payload, **how))

    def recv(self, s, *ops, timeout=None):
        """The next segment, which must be one of these; zero-length Writes may come between."""
        while True:
            seg = s.recv(timeout)
            if seg.op in ops:
                return seg
            if seg.op != codec.WRITE or seg.payload:
                raise Failure(" or ".join(codec.NAMES[o] for o in ops), seg)

    def echo(self, s, payload=None):
        """A Send that uwarp-conform-target sends back."""
        payload = self.program.good_send if payload is None else payload
        self.send(s, payload)
        seg = self.recv(s, codec.SEND)
        if seg.payload != payload:
            raise Failure(f"the {len(payload)} octets sent come back", f"{len(seg.payload)} octets {seg.payload[:16].hex()}..")
        return seg

    def alive(self, s):
        """Raises unless the stream works in both directions."""
        if isinstance(self.program, program.Conform):
            self.echo(s)
        elif (s.reply or s.request).enhanced:
            self.read(s, 0x77, 0, 0, 1, 0)
        else:  # nobody said that a Read may be asked for
            s.send(codec.tagged(codec.WRITE, 1, 0))
            if not s.quiet(0.2) and not s.alive():
                raise Failure("the stream goes on", "the end")

    def read_request(self, s, sink, sink_to, size, source, source_to, **bits):
        body = codec.read_body(sink, sink_to, size, source, source_to)
        return codec.untagged(codec.READ_REQUEST, 1, s.next_msn(1), body, **bits)

    def take_response(self, s, sink, sink_to, size):
        """All segments of one Read Response, as octets."""
        got = b""
        while True:
            seg = self.recv(s, codec.READ_RESPONSE)
            if (seg.stag, seg.to) != (sink, sink_to + len(got)):
                raise Failure(f"Read Response to STag {sink:#x} TO {sink_to + len(got):#x}", seg)
            got += seg.payload
            if seg.last:
                break
        if len(got) != size:
            raise Failure(f"a Read Response of {size} octets", f"{len(got)} octets")
        return got

    def read(self, s, sink, sink_to, size, source, source_to):
        s.send(self.read_request(s, sink, sink_to, size, source, source_to))
        return self.take_response(s, sink, sink_to, size)

    def read_region(self, s, r, start=0, n=program.REGION_SIZE):
        return self.read(s, 0x5151, 0, n, r.stag, r.to + start)

    def command(self, s, op, **how):
        self.send(s, program.command(op, **how))

    def done(self, s):
        """What the target says when a command is carried out."""
        return program.parse_done(self.recv(s, codec.SEND).payload)

    def sums(self):
        """The target's memory as the connection before left it: name to Region."""
        for s in self.open_streams:
            self.settle(s)
            s.close()
        end = time.monotonic() + self.options.timeout
        while True:
            try:
                s = self.open()
                break
            except (stream.Ended, stream.NotConnected):
                if time.monotonic() > end:
                    raise
        s.close()
        return self.program.regions

    def untouched(self, req, *names):
        """After an error: these regions (and the guards around them) hold what they held."""
        if not self.program.has_regions:
            return
        after = self.sums()
        bad = [n for n in names or after if after[n].sum != after[n].fresh_sum()]
        self.check(req, not bad, "the target's memory is as before", f"changed: {', '.join(bad)}" if bad else "as before")
