"""vecadd.py — add two arrays with the kernel of vecadd.ptx: python3 demo/vecadd.py, after pip install gpuload."""
import array, os
import gpuload

a, b = array.array("d", range(1000)), array.array("d", (2 * i for i in range(1000)))  # or NumPy arrays
out = array.array("d", [0]) * 1000
r = gpuload.run(os.path.join(os.path.dirname(__file__), "vecadd.ptx"), a, b, out, len(out))
print(*out[:3], "...", out[-1])
print(f"{r.kernel} on the {r.driver} driver: grid {r.grid}, block {r.block}")
