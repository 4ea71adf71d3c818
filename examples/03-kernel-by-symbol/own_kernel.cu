/* own_kernel.cu — the kernel of own.cuh in a separate object, for a program whose main() is C. */
#include "own.cuh"
