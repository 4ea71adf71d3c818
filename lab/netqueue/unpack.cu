/* unpack.cu — the entry point of the kernel in unpack.cuh. */
#include "lab/netqueue/unpack.cuh"

extern "C" __global__ void __launch_bounds__(768, 1) gpul_netqueue_unpack(gpul_netqueue_view queue)
{
	gpul_netqueue_unpack_block(&queue);
}
