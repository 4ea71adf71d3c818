#!/usr/bin/env python3
"""bench_nccl_net.py — compares NCCL's all-reduce over gpuload's network plug-in with that over NCCL's own sockets.

    bench/nccl/bench_nccl_net.py --nccl libnccl.so.2 --cudart libcudart.so.13 [-n RANKS] [--sizes 65536:67108864] [--iters 30]

Each rank is a process with a GPU of its own.  It has two communicators that differ in their network only, and calls them alternately, so
that the load of the machine affects both alike.  All data is checked.  busbw is that of nccl-tests: bytes / time * 2 (n - 1) / n.
NCCL's other transports are off: NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1.  On the software driver: gpuload soft --gpus N -- bench/nccl/bench_nccl_net.py ...
"""
import argparse, array, ctypes, os, statistics, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETS = ("gpuload", "Socket")
UNDEFINED = -2**31  # NCCL_CONFIG_UNDEF_INT
FLOAT32, SUM, TO_DEVICE, TO_HOST = 7, 0, 1, 2  # of nccl.h and driver_types.h


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """The fields of ncclConfig_t of NCCL 2.18, which later versions accept."""
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint), ("blocking", ctypes.c_int),
                ("cluster", ctypes.c_int), ("min_ctas", ctypes.c_int), ("max_ctas", ctypes.c_int), ("net", ctypes.c_char_p),
                ("split_share", ctypes.c_int)]


def values(n_bytes, factor, offset):
    """Return an array of f32 whose element i is i % 97 * factor + offset, as bytes."""
    block = array.array("f", [i * factor + offset for i in range(97)]).tobytes()
    return (block * (n_bytes // len(block) + 1))[:n_bytes]


class Rank:
    def __init__(self, args, rank, ids):
        self.rank, self.n = rank, args.n
        self.cuda, self.nccl = ctypes.CDLL(args.cudart), ctypes.CDLL(args.nccl)
        self.nccl.ncclGetErrorString.restype = self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        self.stream = ctypes.c_void_p()
        self.call(self.cuda.cudaSetDevice, rank)
        self.call(self.cuda.cudaStreamCreate, ctypes.byref(self.stream))
        self.comms = []
        for net, comm_id in zip(NETS, ids):
            config = Config(ctypes.sizeof(Config), 0xcafebeef, 21800, *[UNDEFINED] * 4, net.encode(), UNDEFINED)
            comm = ctypes.c_void_p()
            self.call(self.nccl.ncclCommInitRankConfig, ctypes.byref(comm), self.n, comm_id, rank, ctypes.byref(config))
            self.comms.append(comm)

    def call(self, function, *args):
        code = function(*args)
        if code:
            text = self.nccl.ncclGetErrorString(code).decode() if function.__name__.startswith("nccl") else f"CUDA error {code}"
            sys.exit(f"rank {self.rank}: {function.__name__}: {text}")

    def reduce(self, k, send, receive, count):
        """Return the seconds of one all-reduce."""
        self.call(self.cuda.cudaStreamSynchronize, self.stream)
        began = time.perf_counter()
        self.call(self.nccl.ncclAllReduce, send, receive, ctypes.c_size_t(count), FLOAT32, SUM, self.comms[k], self.stream)
        self.call(self.cuda.cudaStreamSynchronize, self.stream)
        return time.perf_counter() - began

    def measure(self, n_bytes, iters):
        """Return the times for each network; end the process if a result is wrong."""
        count = n_bytes // 4
        host = ctypes.create_string_buffer(values(n_bytes, 1, self.rank), n_bytes)
        expected = values(n_bytes, self.n, self.n * (self.n - 1) // 2)
        send, receive = ctypes.c_void_p(), ctypes.c_void_p()
        for pointer in (send, receive):
            self.call(self.cuda.cudaMalloc, ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
        self.call(self.cuda.cudaMemcpy, send, host, ctypes.c_size_t(n_bytes), TO_DEVICE)
        times = ([], [])
        for i in range(iters + 1):  # the first is the warm-up; first and last are checked
            for k in ((0, 1) if i % 2 else (1, 0)):
                if i in (0, iters):
                    self.call(self.cuda.cudaMemset, receive, 0, ctypes.c_size_t(n_bytes))
                times[k].append(self.reduce(k, send, receive, count))
                if i in (0, iters):
                    self.call(self.cuda.cudaMemcpy, host, receive, ctypes.c_size_t(n_bytes), TO_HOST)
                    if host.raw != expected:
                        sys.exit(f"rank {self.rank}: the all-reduce of {n_bytes} bytes over {NETS[k]} is wrong")
        for pointer in (send, receive):
            self.call(self.cuda.cudaFree, pointer)
        return [t[1:] for t in times]

    def close(self):
        for comm in self.comms:
            self.call(self.nccl.ncclCommDestroy, comm)


def run_rank(args, rank, ids):
    r = Rank(args, rank, ids)
    if rank == 0:
        print(f"{'bytes':>10}  {'busbw, GB/s: best':>24}  {'median':>24}\n{'':>10}  {'gpuload  Socket  ratio':>24}  {'gpuload  Socket  ratio':>24}", flush=True)
    n_bytes, most = args.sizes
    while n_bytes <= most:
        times = r.measure(n_bytes, args.iters)
        factor = n_bytes * 2 * (args.n - 1) / args.n / 1e9
        rows = []
        for choose in (min, statistics.median):
            mine, theirs = (factor / choose(t) for t in times)
            rows.append(f"{mine:8.3f} {theirs:7.3f} {mine / theirs:6.2f}")
        if rank == 0:
            print(f"{n_bytes:>10}  {rows[0]:>24}  {rows[1]:>24}", flush=True)
        n_bytes *= 4
    r.close()


def make_ids(args):
    nccl, ids = ctypes.CDLL(args.nccl), [Id(), Id()]
    for i in ids:
        if nccl.ncclGetUniqueId(ctypes.byref(i)):
            sys.exit("ncclGetUniqueId failed")
    return ids


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--nccl", default="libnccl.so.2")
    p.add_argument("--cudart", default="libcudart.so")
    p.add_argument("-n", type=int, default=2, metavar="RANKS")
    p.add_argument("--sizes", type=lambda s: [int(x) for x in s.split(":")], default=[65536, 1 << 26], help="FIRST:LAST, bytes; each is 4 times the one before")
    p.add_argument("--iters", type=int, default=30)
    args = p.parse_args()
    plugin = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", f"{ROOT}/build")), "libnccl-net-gpuload.so")
    os.environ.setdefault("NCCL_NET_PLUGIN", plugin)
    os.environ.update(NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    pipes = [os.pipe() for _ in range(args.n)]
    pids = []
    for rank in range(1, args.n):  # before NCCL is loaded: CUDA does not survive a fork
        pid = os.fork()
        if pid == 0:
            data = os.read(pipes[rank][0], 256)
            run_rank(args, rank, [Id.from_buffer_copy(data, 128 * k) for k in range(2)])
            sys.stdout.flush()
            os._exit(0)
        pids.append(pid)
    ids = make_ids(args)
    for rank in range(1, args.n):
        os.write(pipes[rank][1], b"".join(bytes(i) for i in ids))
    run_rank(args, 0, ids)
    sys.exit(any(os.waitpid(pid, 0)[1] for pid in pids))


if __name__ == "__main__":
    main()
