# SPDX-License-Identifier: BSD-3-Clause
"""The applications: key-value store, B-tree, sequencer and message rate over uwarp, beside memcached, Valkey (or Redis)
and calls over the kernel's TCP, with the same keys, values and mix."""

import json
import os
import shutil

from .goals import LEAST, MOST, Goal, judge
from .process import PATH, Failed, Group, Unavailable, need, wait_until
from .rig import HERE, PREFIX, START, THERE, build_dir
from .rounds import probe

SECONDS = "0.5"
VALUE = 1000
WINDOWS = (1, 4, 16, 64)
KV_KEYS = 10_000
TREE_KEYS, TREE_SIZES = 100_000, (10_000, 100_000, 1_000_000)
POST_LISTS = (1, 2, 4, 8, 16, 32, 64)
# Clients of one sequencer, the first one's last octet, and long enough for them to begin one after the other.
CLIENTS, FIRST_CLIENT, MANY_SECONDS = 4, 20, 2
POLL, EVENTS = "polling", "events"
# GETs whose clients keep entries of the index: a table so large that few keys share a place.
CACHED, KV_CACHE = "cached reads", "256Ki"
MEMCACHED, VALKEY = "memcached", "valkey"


def app(name):
    """One of the programs of apps/."""
    for path in (
        os.path.join(build_dir(), "apps", name.removeprefix("uwarp-"), name), os.path.join(build_dir(), "apps", "tcp", name),
        os.path.join(PREFIX, "bin", name), os.path.join(PREFIX, "libexec", "uwarp", name),
    ):  # fmt: skip
        if os.access(path, os.X_OK):
            return path
    raise Unavailable(f"{name} is not built; run ninja -C {build_dir()}")


def words(text):
    """'uwarp-kv run ...' with the program's path."""
    name, *rest = text.split()
    return [app(name), *rest]


def result(client, limit):
    lines = [line for line in client.wait(limit).splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"{client.name()} printed no result")
    return json.loads(lines[-1])


def until_ready(server):
    ready = wait_until(lambda: "ready on port" in server.out() or not server.running(), START)
    if not ready or not server.running():
        raise Failed(f"{server.name()} does not get ready{server.last_words()}")


def measured(server, client, limit):
    """What the client says, and what the server's CPU did meanwhile."""
    before = server.cpu_seconds()
    got = result(client, limit)
    if got.get("misses"):  # a short answer instead of a value
        raise Failed(f"{got['misses']} of {got['operations']} keys were not found")
    got["server_cpu_us"] = (server.cpu_seconds() - before) * 1e6 / max(1, got.get("operations") or got.get("tickets"))
    return got


def numbers_of(path):
    """The rows of a CSV file of two columns."""
    with open(path, encoding="utf-8") as f:
        return [[float(x) for x in line.split(",")] for line in f.read().splitlines()[1:]]


def over_uwarp(rig, serve, run, prepare=None, env=None, watch=measured):
    """A pair of our programs; prepare: a run before the one that counts."""
    with Group() as group:
        server = rig.start_uwarp(group, THERE, words(serve), env=env)
        until_ready(server)
        if prepare:
            result(rig.start_uwarp(group, HERE, [*words(prepare), THERE, "--json", "--quiet"]), rig.limit)
        client = rig.start_uwarp(group, HERE, [*words(run), THERE, "--json", "--quiet"])
        return watch(server, client, rig.limit)


# ---- the peers --------------------------------------------------------------------------


def memcached(rig):
    user = ["-u", "root"] if os.getuid() == 0 else []
    return [need("memcached"), *user, "-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", "256", "-p", rig.new_port()]


def valkey(rig):
    program = shutil.which("valkey-server", path=PATH) or need("redis-server")
    return [program, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", rig.folder, "--port", rig.new_port()]


def calls(rig):
    return [*words(f"uwarp-tcp-peer serve --events --bind 127.0.0.1 --keys {TREE_KEYS}"), "-p", rig.new_port()]


def over_tcp(rig, server_words, protocol, run, load=False):
    talk = words(f"uwarp-tcp-peer run 127.0.0.1 --protocol {protocol} --wait 10 --json --quiet")
    with Group() as group:
        server = group.start(server_words, cwd=rig.folder)
        at = ["-p", server_words[-1]]
        if load:
            result(group.start([*talk, *at, "--load", "-n", "1", "--keys", str(KV_KEYS), "--value", str(VALUE)], cwd=rig.folder), rig.limit)
        return measured(server, group.start([*talk, *at, *run.split()], cwd=rig.folder), rig.limit)


# ---- key-value store --------------------------------------------------------------------


def kv_uwarp(rig, get, window, how, more="", **beside):
    more += " --events" if how == EVENTS else ""
    more += f" --cache {KV_CACHE}" if get == CACHED else ""
    same = f"--keys {KV_KEYS} --value {VALUE} --get {'reads' if get == CACHED else get}"
    serve = "uwarp-kv serve" + (" --events" if how == EVENTS else "")
    return over_uwarp(rig, serve, f"uwarp-kv run {same} --mix C -w {window} -s {SECONDS}{more}", f"uwarp-kv run {same} --load -n 1", **beside)


def kv_tcp(rig, peer, window, how, more=""):
    run = f"--keys {KV_KEYS} --value {VALUE} --mix C -w {window} -s {SECONDS}{more}" + (" --events" if how == EVENTS else "")
    return over_tcp(rig, memcached(rig) if peer == MEMCACHED else valkey(rig), peer, run, load=True)


def kv_latency(rig, scheme, get, how):
    def measure():
        path = os.path.join(rig.folder, "cdf.csv")
        more = f" --cdf {path}"
        got = kv_tcp(rig, scheme, 1, how, more) if scheme != "uwarp" else kv_uwarp(rig, get, 1, how, more)
        found = {"value": got.get("get_p50_us", got.get("p50_us")), "p99": got.get("get_p99_us", got.get("p99_us"))}
        return {**found, "cdf": numbers_of(path)}

    return probe("kv-latency", scheme, f"{get}, {how}", VALUE, "us", measure)


def kv_rate(rig, scheme, get, window):
    def measure():
        got = kv_tcp(rig, scheme, window, POLL) if scheme != "uwarp" else kv_uwarp(rig, get, window, POLL)
        p50 = got.get("get_p50_us", got.get("p50_us"))
        return {"value": got["mops"], "p50": p50, "server_cpu_us": got["server_cpu_us"]}

    return probe("kv-rate", scheme, get, VALUE, "M/s", measure, window=window)


def kv_cpu(rig, scheme, get):
    """With a server that sleeps while it has nothing to do, as memcached does."""

    def measure():
        got = kv_tcp(rig, scheme, 16, EVENTS) if scheme != "uwarp" else kv_uwarp(rig, get, 16, EVENTS)
        return {"value": got["server_cpu_us"], "mops": got["mops"]}

    return probe("kv-cpu", scheme, get, VALUE, "us", measure)


def measured_apart(server, client, limit):
    """The same, and what the server's own threads did without the stack's: % of a core. They have the program's name."""
    before = server.threads_seconds(server.name())
    got = measured(server, client, limit)
    got["own_percent"] = 100 * (server.threads_seconds(server.name()) - before) / got["seconds"]
    return got


def kv_own_cpu(rig, get):
    """With thread model c1, in which the stack's own thread does all that a card would, and the program's threads do the rest."""

    def measure():
        got = kv_uwarp(rig, get, 16, EVENTS, env={"UWARP_THREADS": "c1"}, watch=measured_apart)
        return {"value": got["own_percent"], "mops": got["mops"], "server_cpu_us": got["server_cpu_us"]}

    return probe("kv-own-cpu", "uwarp", get, VALUE, "% of a core", measure)


def kv(rig):
    for how in (POLL, EVENTS):
        for get in ("reads", CACHED, "rpc"):
            yield kv_latency(rig, "uwarp", get, how)
        for peer in (MEMCACHED, VALKEY):
            yield kv_latency(rig, peer, "get", how)
    for window in WINDOWS:
        for get in ("reads", CACHED, "rpc", "hybrid"):
            yield kv_rate(rig, "uwarp", get, window)
        for peer in (MEMCACHED, VALKEY):
            yield kv_rate(rig, peer, "get", window)
    for get in ("reads", CACHED, "rpc"):
        yield kv_cpu(rig, "uwarp", get)
    yield kv_cpu(rig, MEMCACHED, "get")
    for get in ("reads", CACHED, "rpc"):
        yield kv_own_cpu(rig, get)


# ---- sequencer --------------------------------------------------------------------------


def seq_one(rig, op, window, what):
    unit, key = ("us", "p50_us") if what == "latency" else ("M/s", "mops")

    def measure():
        if op == "tcp":
            got = over_tcp(rig, calls(rig), "seq", f"-w {window} -s {SECONDS}")
        else:
            mode, _, batch = op.partition(" ")
            got = over_uwarp(rig, "uwarp-seq serve", f"uwarp-seq take --mode {mode} --batch {batch or 1} -w {window} -s {SECONDS}")
        return {"value": got[key], "server_cpu_us": got["server_cpu_us"]}

    return probe(f"seq-{what}", "tcp" if op == "tcp" else "uwarp", op, 0, unit, measure, window=window)


def seq_many(rig, op):
    """Clients that all sleep while they wait, as the server does: then the work that a ticket costs is what limits, not who waits
    for whom."""

    def measure():
        same = f"-w 16 -s {MANY_SECONDS} --events --json --quiet"
        with Group() as group:
            if op == "tcp":
                peer = calls(rig)
                server = group.start(peer, cwd=rig.folder)
                run = words(f"uwarp-tcp-peer run 127.0.0.1 --protocol seq --wait 10 -p {peer[-1]} {same}")
                clients = [group.start(run, cwd=rig.folder) for _ in range(CLIENTS)]
            else:
                server = rig.start_uwarp(group, THERE, words("uwarp-seq serve --events"))
                until_ready(server)
                run = words(f"uwarp-seq take {THERE} --mode {op} {same}")
                clients = [rig.start_uwarp(group, f"127.0.0.{FIRST_CLIENT + n}", run) for n in range(CLIENTS)]
            before = server.cpu_seconds()
            found = [result(client, rig.limit) for client in clients]
            tickets = sum(got.get("tickets") or got["operations"] for got in found)
            return {"value": sum(got["mops"] for got in found), "server_cpu_us": (server.cpu_seconds() - before) * 1e6 / tickets}

    return probe("seq-clients", "tcp" if op == "tcp" else "uwarp", op, 0, "M/s", measure, clients=CLIENTS)


def seq(rig):
    for op in ("faa", "rpc", "tcp"):
        yield seq_one(rig, op, 1, "latency")
        yield seq_many(rig, op)
    for op in ("faa", "rpc", "faa 16", "tcp"):
        yield seq_one(rig, op, 16, "rate")


# ---- B-tree -----------------------------------------------------------------------------


def tree_one(rig, by, keys, page=4096, window=16):
    def measure():
        if by == "tcp":
            got = over_tcp(rig, calls(rig), "btree", f"--keys {keys} --mix C --dist uniform -w {window} -s {SECONDS}")
        else:
            way = by.split()[-1]
            serve = f"uwarp-btree serve --page {page} --keys {keys}" + {"mail": " --mail", "reads": " --events"}.get(way, "")
            more = " --cache 4Ki" if by.startswith("cached") else ""
            got = over_uwarp(rig, serve, f"uwarp-btree run --keys {keys} --by {way} -w {window} -s {SECONDS}{more}")
        return {"value": got["mops"], "p50": got.get("read_p50_us", got.get("p50_us")), "server_cpu_us": got["server_cpu_us"]}

    what = f"{by}, {keys:,} keys, pages of {page}"
    return probe("btree", "tcp" if by == "tcp" else "uwarp", what, 0, "M/s", measure, by=by, keys=keys, page=page)


def btree(rig):
    for by in ("reads", "cached reads", "send", "mail", "tcp"):
        yield tree_one(rig, by, TREE_KEYS)
    for by in ("reads", "cached reads", "send"):
        yield tree_one(rig, by, TREE_KEYS, 1024)
    for keys in TREE_SIZES:
        if keys != TREE_KEYS:
            for by in ("reads", "cached reads", "send"):
                yield tree_one(rig, by, keys)


# ---- rate -------------------------------------------------------------------------------


def rate_one(rig, op, post_list, inline=0, window=128):
    test = "app-inline" if window == 1 else "app-rate"
    key, unit = ("p50_us", "us") if window == 1 else ("mops", "M/s")

    def measure():
        run = f"uwarp-rate run --op {op} --post-list {post_list} --inline {inline} -w {window} --signal {1 if window == 1 else 16} -s {SECONDS}"
        got = over_uwarp(rig, "uwarp-rate serve", run)
        return {"value": got[key], "p99": got["p99_us"]}

    return probe(test, "uwarp", f"{op} inline" if inline else op, 64, unit, measure, post_list=post_list, inline=inline)


def rate(rig):
    for op in ("write", "read", "send", "faa"):
        for n in POST_LISTS if op != "faa" else (1, 32):
            yield rate_one(rig, op, n)
    for inline in (0, 64):
        yield rate_one(rig, "write", 1, inline, window=1)


# ---- host and SoC -----------------------------------------------------------------------

# Both are processes of this machine: a model. Its parameters: the network of the B-tree study has 50 Gb/s, and a BlueField-2
# has up to 36 % less throughput than the plain NIC (the study of DPU paths). Both rates are divided by 500, so that the links
# are what limits and not the cores, of which host, SoC and client have this machine's between them: the ratios are the model's.
# So the client sleeps while it waits. One that polls takes a core from the others, who then stood still for up to half a second.
SOC, HOST_RATE, SOC_RATE = "127.0.0.5", "100M", "64M"
MODEL = "model (links: host 50 Gb/s, SoC 32 Gb/s, both divided by 500)"
ALTERNATIVES = ("A1", "A2", "A3", "A4", "A5", "A5+A4", "A5+A1")
MIGRATION_SECONDS, MIGRATION_KEYS = 6, 2000
# Look-ups under way: enough that neither link is ever idle. Calls travel several in a frame, READs of a page by themselves.
PLACE_SECONDS, PLACE_WINDOWS, PLACE_MORE = 1, {"reads": 64, "send": 1024}, (0, 0.03, 0.06)


def start_soc(rig, group, text):
    server = group.start(rig.uwarp(SOC, words(text), rate=SOC_RATE), env=rig.env, cwd=rig.folder)
    until_ready(server)
    return server


def start_host(rig, group, text):
    server = group.start(rig.uwarp(THERE, words(text), rate=HOST_RATE), env=rig.env, cwd=rig.folder)
    until_ready(server)
    return server


def alternative(rig, name):
    def measure():
        same = f"--keys {KV_KEYS} --value {VALUE} --soc {SOC}"
        with Group() as group:
            start_host(rig, group, f"uwarp-kv serve --bind {THERE} --buckets 4Ki --events")
            result(rig.start_uwarp(group, HERE, words(f"uwarp-kv run {THERE} --keys {KV_KEYS} --value {VALUE} --load -n 1 --json --quiet")), rig.limit)
            front = start_soc(rig, group, f"uwarp-kv front {THERE} --bind {SOC} --events")
            client = rig.start_uwarp(group, HERE, words(f"uwarp-kv run {THERE} {same} --mix C --alternative {name} -w 64 -s {SECONDS} --events --json --quiet"))
            got = measured(front, client, rig.limit)
        return {"value": got["mops"], "p50": got["get_p50_us"], "server_cpu_us": got["server_cpu_us"]}

    return probe("kv-alternatives", "model", name, VALUE, "M/s", measure)


def migration(rig):
    """Throughput while half of the keys move to the SoC and back."""

    def measure():
        path = os.path.join(rig.folder, "series.csv")
        move = f"uwarp-kv move {THERE} --events --keys {MIGRATION_KEYS} --range 0-{MIGRATION_KEYS // 2 - 1}"
        with Group() as group:
            start_soc(rig, group, f"uwarp-kv serve --bind {SOC} --as-soc --events")
            start_host(rig, group, f"uwarp-kv serve --bind {THERE} --soc {SOC} --events")
            client = rig.start_uwarp(group, HERE, words(f"uwarp-kv run {THERE} --soc {SOC} --keys {MIGRATION_KEYS} --load --mix B -w 16 "
                                                        f"-s {MIGRATION_SECONDS} --series {path} --events --json --quiet"))  # fmt: skip
            wait_until(lambda: os.path.exists(path) or not client.running(), START)
            for toward in ("soc", "host"):
                wait_until(lambda: not client.running(), MIGRATION_SECONDS / 3)
                group.start(rig.uwarp("127.0.0.6", words(f"{move} --toward {toward}")), env=rig.env, cwd=rig.folder).wait(rig.limit)
            got = result(client, rig.limit)
        return {"value": got["mops"], "series": numbers_of(path), "at_soc": got["at_soc"], "again": got["again"]}

    return probe("kv-migration", "model", "half of the keys out and in", VALUE, "M/s", measure)


def tree_at(rig, place, by, first):
    """Host and SoC have the keys up to `first` and from there on; one alone has all of them."""
    run = f"uwarp-btree run {SOC if place == 'soc' else THERE} --keys {TREE_KEYS} --by {by} -w {PLACE_WINDOWS[by]} -s {PLACE_SECONDS} --events --json --quiet"
    with Group() as group:
        if place != "soc":
            start_host(rig, group, f"uwarp-btree serve --bind {THERE} --keys {first} --events")
        if place == "soc":
            start_soc(rig, group, f"uwarp-btree serve --bind {SOC} --keys {TREE_KEYS} --events")
        if place == "both":
            start_soc(rig, group, f"uwarp-btree serve --bind {SOC} --first {first} --keys {TREE_KEYS - first} --events")
            run += f" --soc {SOC} --split {first}"
        got = result(rig.start_uwarp(group, HERE, words(run)), rig.limit)
    return {"value": got["mops"], "p50": got["read_p50_us"], "first": first}


def splits(alone):
    """Where to split the keys: in the proportion of what each did alone, and with a little more at the host, as the study's load is
    balanced by trying. The SoC's replies travel fewer in a frame than when it is alone, since half of what the client asks is the host's."""
    if not {"host", "soc"} <= set(alone):
        raise Failed("neither host nor SoC was measured alone")
    share = alone["host"] / (alone["host"] + alone["soc"])
    return [round(TREE_KEYS * min(share + more, 1)) for more in PLACE_MORE]


def tree_place(rig, place, by):
    """The tree at the host, at the SoC, or split between them, by the best of a few splits. By READs a look-up is three pages of 4 KiB."""

    def measure():
        alone = rig.made.setdefault(f"tree alone, {by}", {})
        firsts = splits(alone) if place == "both" else [TREE_KEYS]
        best = max((tree_at(rig, place, by, first) for first in firsts), key=lambda got: got["value"])
        alone[place] = best["value"]
        return best

    return probe("btree-place", "model", f"{place}, by {by}", 0, "M/s", measure)


def cluster(rig):
    for by in ("reads", "send"):
        for place in ("host", "soc", "both"):
            yield tree_place(rig, place, by)
    for name in ALTERNATIVES:
        yield alternative(rig, name)
    yield migration(rig)


PARTS = {"kv": kv, "cluster": cluster, "seq": seq, "btree": btree, "rate": rate}


def apps(rig):
    for part in PARTS.values():
        yield from part(rig)


# ---- what is to be reached --------------------------------------------------------------


def goals():
    lat, cpu = "kv-latency/{}/{}, {}/" + str(VALUE), "kv-cpu/{}/{}/" + str(VALUE)
    yield Goal("GET p50 / memcached's, polling", lat.format("uwarp", "reads", POLL), lat.format(MEMCACHED, "get", POLL), MOST, 1 / 3)
    yield Goal("GET p50 / memcached's, events", lat.format("uwarp", "reads", EVENTS), lat.format(MEMCACHED, "get", EVENTS), MOST, 0.8)
    yield Goal("server CPU of a GET by call / memcached's", cpu.format("uwarp", "rpc"), cpu.format(MEMCACHED, "get"), MOST, 1 / 3)
    yield Goal("server CPU of a GET by one READ, entries kept / memcached's", cpu.format("uwarp", CACHED), cpu.format(MEMCACHED, "get"), MOST, 1 / 3)
    yield Goal("server CPU of a GET by READs / memcached's", cpu.format("uwarp", "reads"), cpu.format(MEMCACHED, "get"), MOST, 1 / 3)
    for get in ("reads", CACHED):
        yield Goal(f"% of a core, the server's own threads, GETs by {get}", f"kv-own-cpu/uwarp/{get}/{VALUE}", None, MOST, 2)
    for other, limit in (("uwarp/rpc", 1.5), ("tcp/tcp", 5)):
        key = f"seq-latency/{other}/0/1"
        yield Goal(f"a ticket by FETCH_ADD / by {other.partition('/')[2]}, one at a time", "seq-latency/uwarp/faa/0/1", key, MOST, 1 / limit)
        yield Goal(f"tickets by FETCH_ADD / by {other.partition('/')[2]}, 16 under way", "seq-rate/uwarp/faa/0/16", f"seq-rate/{other}/0/16", LEAST, limit)
        many = "seq-clients/{}/0/" + str(CLIENTS)
        yield Goal(f"tickets by FETCH_ADD / by {other.partition('/')[2]}, {CLIENTS} clients that sleep", many.format("uwarp/faa"), many.format(other), LEAST, limit)
    yield Goal("look-ups by READs, a page for each level / by calls", tree_key("reads"), tree_key("send"), LEAST, 0.95)
    for page in (4096, 1024):
        yield Goal(f"look-ups by READs, inner pages kept, pages of {page} / by calls", tree_key("cached reads", page), tree_key("send", page), LEAST, 0.95)
    for op in ("read", "write"):
        yield Goal(f"{op.upper()}, post list 32 / 1", f"app-rate/uwarp/{op}/64/32/0", f"app-rate/uwarp/{op}/64/1/0", LEAST, 1.5)


def model_goals():
    """The study's order: A5 > A4 > A1 > A3 > A2."""
    for better, worse in (("A5", "A4"), ("A4", "A1"), ("A1", "A3"), ("A3", "A2")):
        yield Goal(f"{MODEL}: GETs by {better} / by {worse}", f"kv-alternatives/model/{better}/{VALUE}", f"kv-alternatives/model/{worse}/{VALUE}", LEAST, 1.0)


def place_goals():
    for by, how in (("reads", "READs"), ("send", "calls")):
        yield Goal(f"{MODEL}: look-ups by {how} at both / at the host", f"btree-place/model/both, by {by}/0", f"btree-place/model/host, by {by}/0", LEAST, 1.47)
    yield Goal(f"{MODEL}: GETs by A5+A4 / by A5", f"kv-alternatives/model/A5+A4/{VALUE}", f"kv-alternatives/model/A5/{VALUE}", LEAST, 1.0)


def tree_key(by, page=4096):
    return f"btree/uwarp/{by}, {TREE_KEYS:,} keys, pages of {page}/0/{by}/{TREE_KEYS}/{page}"


def verdicts(series):
    """Of what was measured; a part alone has a part of the goals."""
    return [judge(series, g) for g in (*goals(), *model_goals(), *place_goals()) if g.over in series and (g.under is None or g.under in series)]
