// graphs.cu — graphs made by calls and by capture; copies of variables, host functions and updates in graphs.
#include "tests/nvidia/cudart/check.h"

enum { N = 256 };

__device__ int variable[N];

__global__ void add(int *x, int plus)
{
	x[threadIdx.x] += plus;
}

__global__ void add_variable(int *x)
{
	x[threadIdx.x] += variable[threadIdx.x];
}

static void CUDART_CB count(void *user)
{
	++*(int *)user;
}

static cudaKernelNodeParams kernel_node(int **x, int *plus, void *args[2])
{
	cudaKernelNodeParams p = {};

	args[0] = x;
	args[1] = plus;
	p.func = (void *)add;
	p.gridDim = dim3(1);
	p.blockDim = dim3(N);
	p.kernelParams = args;
	return p;
}

// fill ─> add ─> copy ─> host function
static void runs_nodes_in_the_order_of_their_edges(void)
{
	int *d, h[N], plus = 5, called = 0;
	void *args[2];
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node[4];
	cudaMemsetParams fill = {};
	cudaHostNodeParams host = { count, &called };
	size_t n = 0;

	CUDA(cudaMalloc(&d, sizeof h));
	cudaKernelNodeParams kernel = kernel_node(&d, &plus, args), back;
	fill.dst = d;
	fill.value = 1;
	fill.elementSize = 4;
	fill.width = N;
	fill.height = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemsetNode(&node[0], graph, NULL, 0, &fill));
	CUDA(cudaGraphAddKernelNode(&node[1], graph, &node[0], 1, &kernel));
	CUDA(cudaGraphAddMemcpyNode1D(&node[2], graph, &node[1], 1, h, d, sizeof h, cudaMemcpyDeviceToHost));
	CUDA(cudaGraphAddHostNode(&node[3], graph, &node[2], 1, &host));
	CUDA(cudaGraphGetNodes(graph, NULL, &n));
	CHECK(n == 4);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 1; i <= 2; i++) {
		CUDA(cudaGraphLaunch(exec, 0));
		CUDA(cudaStreamSynchronize(0));
		CHECK(h[0] == 6 && h[N - 1] == 6 && called == i);
	}
	CUDA(cudaGraphKernelNodeGetParams(node[1], &back));
	CHECK(back.func == (void *)add && back.blockDim.x == N);
	plus = 7; /* the node has copied the argument */
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaStreamSynchronize(0));
	CHECK(h[0] == 6);
	CUDA(cudaGraphExecKernelNodeSetParams(exec, node[1], &kernel));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaStreamSynchronize(0));
	CHECK(h[0] == 8);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(d));
}

static void copies_from_and_to_variables(void)
{
	int *d, h[N], from[N], to[N];
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node[4];
	void *args[1] = { &d };
	cudaKernelNodeParams kernel = {};

	for (int i = 0; i < N; i++)
		from[i] = 10 * i;
	CUDA(cudaMalloc(&d, sizeof h));
	CUDA(cudaMemset(d, 0, sizeof h));
	kernel.func = (void *)add_variable;
	kernel.gridDim = dim3(1);
	kernel.blockDim = dim3(N);
	kernel.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemcpyNodeToSymbol(&node[0], graph, NULL, 0, variable, from, sizeof from, 0, cudaMemcpyHostToDevice));
	CUDA(cudaGraphAddKernelNode(&node[1], graph, &node[0], 1, &kernel));
	CUDA(cudaGraphAddMemcpyNode1D(&node[2], graph, &node[1], 1, h, d, sizeof h, cudaMemcpyDeviceToHost));
	CUDA(cudaGraphAddMemcpyNodeFromSymbol(&node[3], graph, &node[0], 1, to, variable, sizeof to, 0, cudaMemcpyDeviceToHost));
	FAILS(cudaErrorInvalidValue,
	      cudaGraphAddMemcpyNodeFromSymbol(&node[3], graph, NULL, 0, to, variable, sizeof to, 4, cudaMemcpyDeviceToHost));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK(h[i] == 10 * i && to[i] == 10 * i);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(d));
}

static void captures_a_stream_and_one_that_waits_for_it(void)
{
	int *a, *b, h[2 * N];
	cudaStream_t s, other;
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStreamCaptureStatus status;
	size_t n = 0;

	CUDA(cudaMalloc(&a, N * sizeof *a));
	CUDA(cudaMalloc(&b, N * sizeof *b));
	CUDA(cudaMemset(a, 0, N * sizeof *a));
	CUDA(cudaMemset(b, 0, N * sizeof *b));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamCreate(&s));
	CUDA(cudaStreamCreate(&other));
	CUDA(cudaEventCreate(&fork));
	CUDA(cudaEventCreate(&join));
	CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CUDA(cudaEventRecord(fork, s));
	CUDA(cudaStreamWaitEvent(other, fork, 0));
	add<<<1, N, 0, s>>>(a, 1);
	add<<<1, N, 0, other>>>(b, 2);
	CUDA(cudaEventRecord(join, other));
	CUDA(cudaStreamWaitEvent(s, join, 0));
	CUDA(cudaMemcpyAsync(h, a, N * sizeof *a, cudaMemcpyDeviceToHost, s));
	CUDA(cudaMemcpyAsync(h + N, b, N * sizeof *b, cudaMemcpyDeviceToHost, s));
	CUDA(cudaStreamIsCapturing(s, &status));
	CHECK(status == cudaStreamCaptureStatusActive);
	CUDA(cudaStreamEndCapture(s, &graph));
	CUDA(cudaStreamIsCapturing(s, &status));
	CHECK(status == cudaStreamCaptureStatusNone);
	CUDA(cudaGraphGetNodes(graph, NULL, &n));
	CHECK(n == 4);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 1; i <= 3; i++) {
		CUDA(cudaGraphLaunch(exec, s));
		CUDA(cudaStreamSynchronize(s));
		CHECK(h[0] == i && h[N] == 2 * i);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
	CUDA(cudaStreamDestroy(s));
	CUDA(cudaStreamDestroy(other));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

int main(void)
{
	runs_nodes_in_the_order_of_their_edges();
	copies_from_and_to_variables();
	captures_a_stream_and_one_that_waits_for_it();
	puts("graphs: passed");
	return 0;
}
