"""fifo.py — the steps of `run` that are about the queue from GPU threads to a CPU thread.

Each takes the suite (run's Suite)."""
import json


def millions(per_s):
    return f"{per_s['median'] / 1e6:.3g}"


def fifo_bench(s):
    """gpuload fifo bench: nothing is lost, and the figures."""
    status, out, err = s.run(s.tool("gpuload"), "fifo", "bench", "--json", "--driver", s.args.driver)
    s.check("gpuload fifo bench", status == 0, f"exit status {status}: {err}")
    if status:
        return
    told = json.loads(out)
    for r in told["rows"]:
        p, latency = r["per_s"], r["latency"]
        s.figures.append((
            f"`fifo bench`: {r['mode']}, {r['size']} slots, {r['parallel']} threads",
            f"push {millions(p['push'])}, release {millions(p['push_release'])}; + sync {millions(p['push_sync'])}, "
            f"release {millions(p['push_release_sync'])} M/s; median to pop {latency['push_to_pop_ns']['p50'] / 1000:.2f} us, "
            f"to sync {latency['push_to_sync_ns']['p50'] / 1000:.2f} us"))
    for r in told["warp_push"]:
        s.figures.append((f"`fifo bench`: warp push, {r['mode']}, {r['warps']} warps", f"{millions(r['per_s'])} M slots/s"))


STEPS = [fifo_bench]
