"""programs_in_drjit.py — programs in Dr.Jit on its CUDA back end, compared with NumPy.  Run by drjit.py."""
import drjit as dr
import numpy as np
import pytest
from drjit.cuda import PCG32, Array3f, Bool, Float, Float16, Float64, Int, Matrix3f, TensorXf, Texture1f, Texture2f, Texture3f, UInt, UInt64
from drjit.cuda.ad import Float as FloatD

N = 1000


def numbers(n=N, low=-2.0, high=3.0):
    return np.linspace(low, high, n, dtype=np.float32)


def close(found, expected, relative=1e-5, absolute=1e-6):
    np.testing.assert_allclose(np.array(found), expected, rtol=relative, atol=absolute)


def equal(found, expected):
    np.testing.assert_array_equal(np.array(found), expected)


def test_arithmetic_of_floats():
    x = numbers()
    close(dr.sin(Float(x)) * dr.exp(Float(x)) + dr.sqrt(dr.abs(Float(x))), np.sin(x) * np.exp(x) + np.sqrt(np.abs(x)), 1e-4)
    close(dr.fma(Float(x), 3, 1), x * 3 + 1)
    equal(dr.floor(Float(x)), np.floor(x))
    equal(dr.select(Float(x) > 0, Float(x), 0), np.where(x > 0, x, 0))
    close(dr.atan2(Float(x), Float(x + 0.25)), np.arctan2(x, x + np.float32(0.25)), 1e-4)


def test_arithmetic_of_doubles_and_halves():
    x = np.linspace(0.1, 5, N)
    close(dr.log(Float64(x)) / Float64(x), np.log(x) / x, 1e-12)
    h = numbers().astype(np.float16)
    close(Float16(h) * Float16(2) + Float16(1), h * np.float16(2) + np.float16(1), 1e-3, 1e-3)


def test_arithmetic_of_integers():
    x = np.arange(N, dtype=np.uint32) * np.uint32(2654435761)
    equal((UInt(x) >> 3) ^ (UInt(x) << 5), (x >> 3) ^ (x << 5))
    equal(dr.popcnt(UInt(x)), [bin(v).count("1") for v in x])
    equal(dr.lzcnt(UInt(x)), [32 - int(v).bit_length() for v in x])
    equal(UInt(x) // 7, x // 7)
    equal(UInt(x) % 1000, x % 1000)
    equal(dr.mul_hi(UInt(x), UInt(x)), (x.astype(np.uint64) * x >> 32).astype(np.uint32))
    s = np.arange(-N, N, dtype=np.int32)
    equal(Int(s) >> 2, s >> 2)
    equal(UInt64(x) * UInt64(x), x.astype(np.uint64) * x)


@pytest.mark.parametrize("n", (1, 31, 1024, 100003))
def test_reductions_and_prefix_sums(n):
    x = np.arange(n, dtype=np.uint32) % 97
    equal(dr.sum(UInt(x))[0], x.sum())
    equal(dr.max(UInt(x))[0], x.max())
    equal(dr.prefix_sum(UInt(x)), np.cumsum(x) - x)
    equal(dr.compress(UInt(x) > 50), np.flatnonzero(x > 50))
    assert dr.any(UInt(x) == x[-1]) and dr.all(UInt(x) < 97)


def test_gather_and_scatter():
    x = numbers()
    index = np.random.default_rng(1).permutation(N).astype(np.uint32)
    equal(dr.gather(Float, Float(x), UInt(index)), x[index])
    target = dr.zeros(Float, N)
    dr.scatter(target, Float(x), UInt(index))
    expected = np.zeros(N, np.float32)
    expected[index] = x
    equal(target, expected)
    histogram = dr.zeros(UInt, 10)
    dr.scatter_reduce(dr.ReduceOp.Add, histogram, 1, UInt(index) % 10)
    equal(histogram, np.bincount(index % 10, minlength=10))


def test_recorded_loops():
    @dr.syntax
    def collatz(n):
        steps = UInt(0)
        while n != 1:
            n = dr.select(n & 1 == 0, n // 2, 3 * n + 1)
            steps += 1
        return steps

    def expected(n):
        steps = 0
        while n != 1:
            n, steps = (3 * n + 1 if n & 1 else n // 2), steps + 1
        return steps
    equal(collatz(dr.arange(UInt, 1, 301)), [expected(n) for n in range(1, 301)])


def test_conditions_in_a_loop():
    @dr.syntax
    def newton(a):
        x, i = Float(a), UInt(0)
        while i < 20:
            if dr.abs(x * x - a) > 1e-6 * a:
                x = 0.5 * (x + a / x)
            i += 1
        return x
    a = numbers(N, 1.0, 90.0)
    close(newton(Float(a)), np.sqrt(a))


def test_switch_calls_functions_by_index():
    index = np.arange(N, dtype=np.uint32) % 3
    x = numbers()
    found = dr.switch(UInt(index), [lambda a: a * 2, lambda a: a + 10, dr.sin], Float(x))
    close(found, np.choose(index, (x * 2, x + 10, np.sin(x))), 1e-4)


def test_switch_with_several_results_and_a_mask():
    index, active = np.arange(N, dtype=np.uint32) % 2, np.arange(N) % 5 != 0
    x = numbers()
    a, b = dr.switch(UInt(index), [lambda v, active: (v, v + 1), lambda v, active: (v * v, -v)], Float(x), Bool(active))
    close(a, np.where(active, np.choose(index, (x, x * x)), 0))
    close(b, np.where(active, np.choose(index, (x + 1, -x)), 0))


def test_local_arrays():
    a = dr.alloc_local(Float, 10, value=dr.zeros(Float))
    i = dr.arange(UInt, 10)
    a[i] = Float(i) * 2
    a[(i + 1) % 10] = a[i] + 1
    equal(a[(i + 1) % 10], np.arange(10) * 2 + 1)
    equal(a[(i + 2) % 10], np.zeros(10))


@dr.syntax
def reversed_by_a_local_array(x, n):
    stack, i, out = dr.alloc_local(Float, n), UInt(0), Float(0)
    while i < n:
        stack[i] = x + Float(i)
        i += 1
    while i > 0:
        i -= 1
        out = out * 2 + stack[i]
    return out


def test_local_arrays_in_loops():
    expected = np.zeros(N, np.float32)
    for i in reversed(range(5)):
        expected = expected * 2 + numbers() + i
    close(reversed_by_a_local_array(Float(numbers()), 5), expected)


def texture_at(data, points):
    """Linear interpolation with clamped edges; the first coordinate is along the last axis."""
    result = np.zeros((len(points), data.shape[-1]))
    dimensions = data.ndim - 1
    sizes = np.array(data.shape[:-1][::-1])
    at = points * sizes - 0.5
    base = np.floor(at).astype(int)
    for corner in range(2 ** dimensions):
        offset = np.array([corner >> k & 1 for k in range(dimensions)])
        weight = np.prod(np.where(offset, at - base, 1 - (at - base)), axis=1)
        index = np.clip(base + offset, 0, sizes - 1)
        result += weight[:, None] * data[tuple(index[:, k] for k in reversed(range(dimensions)))]
    return result


@pytest.mark.parametrize("accelerated", (True, False))
@pytest.mark.parametrize("kind,shape", ((Texture1f, (16, 1)), (Texture2f, (9, 7, 4)), (Texture2f, (8, 8, 2)), (Texture3f, (4, 5, 6, 1))))
def test_textures(kind, shape, accelerated):
    random = np.random.default_rng(7)
    data = random.random(shape, dtype=np.float32)
    points = random.random((200, len(shape) - 1), dtype=np.float32)
    texture = kind(TensorXf(data), use_accel=accelerated, wrap_mode=dr.WrapMode.Clamp, filter_mode=dr.FilterMode.Linear)
    found = np.array(texture.eval([Float(points[:, k]) for k in range(points.shape[1])])).reshape(shape[-1], -1)
    close(found.T, texture_at(data, points), absolute=0.01 if accelerated else 1e-5)   # hardware textures use 8-bit weights


def test_vectors_and_matrices():
    x = numbers(3 * N).reshape(3, N)
    v = Array3f(*(Float(row) for row in x))
    close(dr.norm(v), np.linalg.norm(x, axis=0))
    m = np.array([[1, 2, 3], [0, 1, 4], [5, 6, 0]], np.float32)
    close(np.array(Matrix3f(m) @ v).reshape(3, -1), m @ x, 1e-4, 1e-5)


def test_random_numbers_are_those_of_the_scalar_generator():
    states = [dr.scalar.PCG32(1, initstate=5, initseq=k) for k in range(8)]
    generator = PCG32(1, initstate=5, initseq=dr.arange(UInt64, 8))
    for _ in range(4):
        equal(generator.next_uint32(), [s.next_uint32() for s in states])


def test_derivatives():
    x = FloatD(numbers(N, 0.1, 3.0))
    dr.enable_grad(x)
    dr.backward(dr.sum(dr.sin(x) * x))
    v = numbers(N, 0.1, 3.0)
    close(dr.grad(x), np.cos(v) * v + np.sin(v), 1e-4, 1e-5)


def test_frozen_functions():
    @dr.freeze
    def polynomial(x, factor):
        return x * x * factor + 1
    for factor in (2, 3, 4):
        x = numbers() + factor
        close(polynomial(Float(x), Float(factor)), x * x * factor + 1)


def test_many_variables_in_one_kernel():
    x = Float(numbers())
    total, expected = Float(0), np.zeros(N, np.float32)
    for k in range(200):
        total = dr.fma(x, k % 7, total) * 0.5
        expected = (numbers() * np.float32(k % 7) + expected) * np.float32(0.5)
    close(total, expected, 1e-4)
