"""aten_on_cpu — computes PyTorch's operators on CUDA tensors by the CPU, because PyTorch's own kernels cannot run.

PyTorch's CUDA library contains machine code only (`gpuload ls --images libtorch_cuda.so`), which the software driver refuses.  Its
memory, streams, events and copies are calls of the driver, which work.  After enable(), the CPU computes each of PyTorch's operators in
the memory of the CUDA tensors, which is possible because CPU and software driver share one address space.  Kernels of other packages,
such as Triton's, run on the software driver, on the same tensors.  This module is also a plug-in of pytest: -p aten_on_cpu.
"""
import ctypes

import torch, torch._tensor_str
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten
AS_BEFORE = {aten.empty.memory_format, aten.empty_strided.default, aten.record_stream.default, aten.set_.source_Storage, aten.is_pinned.default}


def is_cuda(x):
    return isinstance(x, torch.Tensor) and x.is_cuda


def on_cpu(t):
    """Return a CPU tensor that uses the memory of the CUDA tensor t."""
    storage = t.untyped_storage()
    if not storage.nbytes():
        return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    view = torch.empty(0, dtype=t.dtype)
    view.set_(torch.frombuffer(memory, dtype=torch.uint8).untyped_storage(), t.storage_offset(), t.size(), t.stride())
    view = view.conj() if t.is_conj() else view
    return view._neg_view() if t.is_neg() else view


def is_view(op):
    """True if op returns a view of its argument's memory and computes nothing."""
    returns = op._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


class AtenOnCpu(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        given = {}   # {id of a CPU tensor: (the CPU tensor, the CUDA tensor whose memory it uses)}

        def borrow(x):
            if not is_cuda(x):
                return x
            t = on_cpu(x)
            given[id(t)] = (t, x)
            return t

        device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        if op in AS_BEFORE or is_view(op):
            return op(*args, **kwargs)
        cpu_args, cpu_kwargs = tree_map(borrow, (list(args), kwargs))
        wanted = device if device is not None else next((x.device for _, x in given.values()), None)
        if wanted is None or (wanted.type != "cuda" and not given):
            return op(*args, **kwargs)
        torch.cuda.synchronize()   # wait for kernels that still use the tensors
        if device is not None:
            cpu_kwargs["device"] = torch.device("cpu")
        if getattr(kwargs.get("generator"), "device", torch.device("cpu")).type == "cuda":
            cpu_kwargs["generator"] = None   # use the CPU's generator, which torch.manual_seed() also seeds

        def give_back(x):
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) in given:
                return given[id(x)][1]
            if wanted.type != "cuda":
                return x
            result = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=wanted)
            on_cpu(result).copy_(x)
            return result

        return tree_map(give_back, op(*cpu_args, **cpu_kwargs))


print_tensor = torch._tensor_str._str


def print_from_cpu(t, *, tensor_contents=None):
    """Replaces torch._tensor_str._str(), which disables dispatch modes such as AtenOnCpu."""
    if is_cuda(t) and tensor_contents is None and not t.is_meta:
        torch.cuda.synchronize()
        tensor_contents = torch._tensor_str._tensor_str(on_cpu(t.detach()), len("tensor("))
    return print_tensor(t, tensor_contents=tensor_contents)


def enable():
    torch._tensor_str._str = print_from_cpu
    AtenOnCpu().__enter__()


def pytest_configure(config):
    del config
    enable()
