#!/usr/bin/env python3
"""bench_textures.py LIBCUDA ... [--rounds N] — counts texture reads per second of CPU time, with one or more builds of libcuda in turn

For example: bench/softcuda/bench_textures.py before.so build/softcuda/libcuda-soft.so

Each kernel has 524,288 threads, which read 8 times each; the best of N rounds counts.  Each library runs in a process of its own.
"""
import argparse, ctypes, json, os, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "gpu", "textures"))
import textures

WIDTH, HEIGHT, READS = 1024, 512, 8
PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 object, .param .u64 out, .param .f32 across, .param .f32 down)
{
.reg .b64 o, d, w; .reg .b32 t, b, n, i, j, k; .reg .f32 x, y, u, v, r0, r1, r2, r3, s; .reg .pred p;
ld.param.u64 o, [object]; ld.param.u64 d, [out]; ld.param.f32 u, [across]; ld.param.f32 v, [down];
mov.u32 t, %tid.x; mov.u32 b, %ctaid.x; mov.u32 n, %ntid.x; mad.lo.u32 i, b, n, t; and.b32 j, i, 1023; shr.u32 k, i, 10;
cvt.rn.f32.u32 x, j; cvt.rn.f32.u32 y, k; add.f32 x, x, 0f3e99999a; add.f32 y, y, 0f3e99999a; mul.f32 x, x, u; mul.f32 y, y, v;
mov.f32 s, 0f00000000; mov.u32 j, 0;
again: BODY
add.f32 s, s, r0; add.u32 j, j, 1; setp.lt.u32 p, j, 8; @p bra again;
mul.wide.u32 w, i, 4; add.u64 d, d, w; st.global.f32 [d], s; ret;
}
"""
#        name: (format, channels, linear, address mode, flags)
CASES = {"nearest f32, clamp": ("f32", 1, 0, 1, 0), "nearest f32, wrap, normalised": ("f32", 1, 0, 0, 2), "nearest u8": ("u8", 1, 0, 1, 0),
         "linear f32, clamp": ("f32", 1, 1, 1, 0), "linear f32, wrap, normalised": ("f32", 1, 1, 0, 2), "linear f32, 4 channels": ("f32", 4, 1, 1, 0),
         "linear u8, 4 channels": ("u8", 4, 1, 1, 0), "linear f16": ("f16", 1, 1, 1, 0)}


def measure(d, case, rounds):
    name, channels, linear, mode, flags = case
    number, element, _ = textures.FORMATS[name]
    array, t, f, module = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
    d("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(textures.ArrayDesc(WIDTH, HEIGHT, 0, number, channels, 0)))
    row = WIDTH * element * channels
    d.fill(array, bytes(k * 37 % 120 for k in range(row)) * HEIGHT, row, HEIGHT, 1)
    sampler = textures.TextureDesc(address=(ctypes.c_int * 3)(mode, mode, mode), filter=linear, flags=flags)
    d("cuTexObjectCreate", ctypes.byref(t), ctypes.byref(textures.ResourceDesc(type=0, handle=array.value)), ctypes.byref(sampler), None)
    d("cuModuleLoadData", ctypes.byref(module), PTX.replace("BODY", "tex.2d.v4.f32.f32 {r0, r1, r2, r3}, [o, {x, y}];").encode())
    d("cuModuleGetFunction", ctypes.byref(f), module, b"k")
    out = d.allocate(4 * WIDTH * HEIGHT)
    arguments = [t, out, ctypes.c_float(1 / WIDTH if flags else 1), ctypes.c_float(1 / HEIGHT if flags else 1)]
    params = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        d("cuLaunchKernel", f, WIDTH * HEIGHT // 256, 1, 1, 256, 1, 1, 0, None, params, None)
        d("cuCtxSynchronize")
        best = min(best, time.process_time() - begin)
    return WIDTH * HEIGHT * READS / best / 1e6


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("libraries", nargs="+", metavar="LIBCUDA")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.json:
        d = textures.Driver(args.libraries[0])
        print(json.dumps({name: measure(d, case, args.rounds) for name, case in CASES.items()}))
        return
    results = [json.loads(subprocess.run([sys.executable, __file__, library, "--json", "--rounds", str(args.rounds)], check=True,
                                         capture_output=True, text=True).stdout) for library in args.libraries]
    print(f"{'million reads per second of CPU time':40}" + "".join(f"{os.path.basename(x):>20}" for x in args.libraries))
    for name in CASES:
        print(f"{name:40}" + "".join(f"{r[name]:20.1f}" for r in results))


if __name__ == "__main__":
    main()
