"""triton_tutorial.py FILE — run a tutorial of Triton as it is; PyTorch's operators are computed on the CPU (plugin/aten_on_cpu.py).

Each benchmark at a tutorial's end runs with its first size only, and draws no plot.
"""
import os, runpy, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugin"))
import aten_on_cpu
import triton.testing


def first_of_sweep(mark, **how):
    """Replaces triton.testing.Mark.run(): runs a benchmark with its first size only."""
    del how
    for b in mark.benchmarks if isinstance(mark.benchmarks, list) else [mark.benchmarks]:
        for line in b.line_vals:
            mark.fn(**{x: b.x_vals[0] for x in b.x_names}, **{b.line_arg: line}, **b.args)
            print(f"sweep {b.plot_name}: {line} at {b.x_vals[0]} done", flush=True)


aten_on_cpu.enable()
triton.testing.Mark.run = first_of_sweep
runpy.run_path(sys.argv[1], run_name="__main__")
