#!/usr/bin/env python3
"""follow.py CALLS TRACE — what NCCL's kernels moved, by a trace of their loads and stores and the log of the calls that made the memory.

CALLS is a log of `gpuload soft --calls`, TRACE a text of `--tools trace` with the filter of README.md.  The ranks map one allocation at different
addresses (cuMemMap), so an access is shown by its allocation: the array of a rank, or the buffer of a connection, whose
first word is a counter.  The trace has the loaded values only; a stored value is seen where the other rank loads it.  Of each access lane 0 is shown:
4 floats, which is all if a program reduces 4 elements for each rank.
"""
import bisect, re, struct, sys

CALL = re.compile(r"^\d+(?:/\d+)? ([\d.]+) +(cuMem\w+)\((.*)\) = CUDA_SUCCESS", re.M)
ACCESS = re.compile(r"^#\d+ .*?: (ld|st)\.(\S+) .*?;(.*?)  (?:reads|writes) \d+ bytes of global at (.*)$", re.M)
# The buffer of a connection consists of a page with the counter, the buffers of LL and LL128, and the buffer of Simple with 8 slots.
SLOTS_AT, SLOT = 0x1000 + 0x80000 + 0x4b0000, 0x400000 // 8


class Memory:
    """The allocations, from the log of calls; find() returns (kind, rank, offset) of an address."""

    def __init__(self, log, n_ranks):
        self.ranges, owner, arrays = {}, {}, []
        for _, call, text in sorted(((float(at), call, text) for at, call, text in CALL.findall(log)), key=lambda row: row[0]):
            args = {k: int(v, 0) for k, v in re.findall(r"(\w+)=(0x[0-9a-f]+|\d+)", text)}
            if call == "cuMemCreate" and "id" in args:
                owner[args["handle"]] = args["id"]   # the GPU that has the memory
            elif call == "cuMemMap" and args["handle"] in owner:
                self.ranges[args["ptr"]] = (args["size"], "buffer", owner[args["handle"]])
            elif call == "cuMemAlloc_v2":
                arrays.append((args["dptr"], args["bytesize"]))
        for rank, (at, n_bytes) in enumerate(arrays[-n_ranks:]):   # the program allocates them in the order of the ranks
            self.ranges[at] = (n_bytes, "array", rank)
        self.starts = sorted(self.ranges)

    def find(self, address):
        start = self.starts[bisect.bisect_right(self.starts, address) - 1]
        n_bytes, kind, rank = self.ranges[start]
        return (kind, rank, address - start) if address < start + n_bytes else ("other", None, 0)

    def is_receive_buffer(self, address):
        """True for the receiver's buffer, with the counter and the slots; the sender's buffer, of 2 MiB, contains only a counter."""
        return self.ranges[self.starts[bisect.bisect_right(self.starts, address) - 1]][0] > 4 << 20


def numbers(text):
    """Return the floats in 64-bit registers, as text."""
    words = [int(word, 0) for word in re.findall(r"= (\w+)", text)]
    return " ".join(f"{f:g}" for word in words for f in struct.unpack("<2f", struct.pack("<Q", word)))


def primitive(loads, stores):
    received, sent = any(kind == "buffer" for kind, *_ in loads), any(kind == "buffer" for kind, *_ in stores)
    reduced, copied = received and len(loads) > 1, any(kind == "array" for kind, *_ in stores)
    words = [word for word, is_so in (("recv", received), ("reduce", reduced), ("copy", copied and sent), ("send", sent)) if is_so]
    return words[0] + "".join(word.capitalize() for word in words[1:])


def show(place):
    kind, rank, offset = place[:3]
    return f"array[{offset // 4}]" if kind == "array" else f"buffer of rank {rank}, slot {(offset - SLOTS_AT) // SLOT}"


def print_move(loads, stores):
    rank = next(rank for kind, rank, *_ in loads + stores if kind == "array")
    values = " + ".join(value for *_, value in loads)
    print(f"rank {rank}  {primitive(loads, stores):18}  {values}  ->  {', '.join(map(show, stores))}")


def follow(memory, trace):
    loads, stores, seen = [], [], {}
    for how, form, values, places in ACCESS.findall(trace):
        if how == "ld" and "volatile" not in form:
            continue   # a load from the kernel's own tables, not from a buffer
        addresses = [int(a, 16) for a in re.findall(r"0x[0-9a-f]+", places)]
        if "v2" in form:
            if how == "ld" and stores:
                print_move(loads, stores)
                loads, stores = [], []
            (loads if how == "ld" else stores).append((*memory.find(addresses[0]), numbers(values)))
        elif how == "ld":
            counts = [int(v, 0) for v in re.findall(r"0x[0-9a-f]+|\d+", values.split("=")[1])]   # of each lane, or one for all
            for k, address in enumerate(addresses):
                count = counts[k if len(counts) > 1 else 0]
                kind, rank, offset = memory.find(address)
                if kind == "buffer" and offset == 0 and count != seen.get(address, 0):
                    seen[address] = count
                    print(f"rank {rank}  sees {'tail' if memory.is_receive_buffer(address) else 'head'} {count}")
    if stores:
        print_move(loads, stores)


def main():
    with open(sys.argv[1], encoding="utf-8") as f, open(sys.argv[2], encoding="utf-8") as g:
        calls, trace = f.read(), g.read()
    follow(Memory(calls, len(re.findall(r"^launch \d+ of ", trace, re.M))), trace)


if __name__ == "__main__":
    main()
