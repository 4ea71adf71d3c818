/* own_kernel.cu — the same kernel in an object of its own, for a program whose main() is C. */
#include "own.cuh"
