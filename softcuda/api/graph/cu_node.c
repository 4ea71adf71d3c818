/* cu_node.c — adds nodes to graphs, and gets and sets the parameters of nodes and of the steps of executable graphs.
 *
 * For each type of node, one function creates the work from the parameters, and another one restores the parameters from the work. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>

/* ---- the context, the graph and the predecessors of a call ------------------------------------------------ */

CUresult soft_current_context(struct context **out)
{
	CUresult r = soft_find_context(soft_current(), out);

	return r ? r : (*out)->fault;
}

CUresult soft_find_nodes(const struct graph *g, const CUgraphNode *handles, const CUgraphEdgeData *data, size_t n, struct node_list *out)
{
	if (n && !handles)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		struct node *node = soft_handle_find(HANDLE_NODE, handles[i]);

		if (!node || node->graph != g || soft_nodes_have(out, node))
			return CUDA_ERROR_INVALID_VALUE;
		if (!soft_nodes_add(out, node, data ? &data[i] : NULL))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult soft_add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
		       CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx)
{
	struct node_list list = { 0 };
	struct op *work = NULL;
	struct graph *g;
	struct node *node;
	CUresult r = out ? soft_find_graph(soft_lock_for_type(type), graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = soft_find_nodes(g, waits_for, data, n, &list);
	if (!r && make)
		r = params ? make(params, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_node_new(g, type, work, NULL, &list, &node);
	if (!r)
		*out = node->handle;
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

/* Copy those launch attributes that are stored in a node's work from the old to the new work. */
static void keep_attributes(struct op *work, const struct op *old)
{
	if (work->kind == &soft_launch_kind && old->kind == &soft_launch_kind)
		CONTAINER(work, struct launch_op, op)->config.cooperative = CONTAINER(old, const struct launch_op, op)->config.cooperative;
}

CUresult soft_set_node(CUgraphNode handle, CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx)
{
	struct op *work;
	struct node *node;
	CUresult r = params ? soft_enter_node_of(handle, type, &node) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = make(params, ctx, &work);
	if (!r) {
		keep_attributes(work, node->work);
		soft_node_set_work(node, work);
	}
	soft_unlock();
	return r;
}

CUresult soft_set_exec_node(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx)
{
	struct op *work;
	struct graph_exec *x;
	struct exec_step *step;
	CUresult r = params ? soft_find_exec(soft_lock_for_type(type), exec, &x) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	step = soft_exec_find(x, handle, type);
	r = step ? make(params, ctx, &work) : CUDA_ERROR_INVALID_VALUE;
	if (!r) {
		const struct op *old = step->disabled ? step->disabled : step->work;

		keep_attributes(work, old);
		if (soft_compare_work(old, work)) {
			soft_op_release(work);
			r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "graph: an executable graph does not allow this change of a node");
		} else {
			soft_exec_set_work(step, work);
		}
	}
	soft_unlock();
	return r;
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

CUresult soft_make_kernel(const void *params, CUcontext handle, struct op **out)
{
	const CUDA_KERNEL_NODE_PARAMS_v2 *p = params;
	struct context *ctx;
	CUresult r = p->ctx && !p->func ? soft_find_context(p->ctx, &ctx) : soft_current_context(&ctx);
	gpul_exec_launch_config c = {
		.grid = { p->gridDimX, p->gridDimY, p->gridDimZ },
		.block = { p->blockDimX, p->blockDimY, p->blockDimZ },
		.dynamic_shared_bytes = p->sharedMemBytes,
	};

	(void)handle;
	/* the application may pass a CUkernel instead of a CUfunction */
	return r ? r : soft_launch_new(ctx, NULL, p->func ? p->func : (CUfunction)p->kern, &c, p->kernelParams, p->extra, out);
}

static CUDA_KERNEL_NODE_PARAMS_v2 from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){
		.func = p->func,
		.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
					const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_KERNEL, soft_make_kernel, params, NULL);
}

EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
				     const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = from_v1(params);
	return cuGraphAddKernelNode_v2(out, graph, waits_for, n, &p);
}

/* Create a list of pointers to the arguments, which the node owns; the node's work owns the arguments. */
static bool point_to_arguments(struct node *n)
{
	const struct launch_op *l = CONTAINER(n->work, struct launch_op, op);
	const gpul_exec_kernel_info *info = gpul_exec_kernel_info_of(l->config.kernel);

	if (!n->arguments)
		n->arguments = calloc(info->n_params + 1, sizeof *n->arguments);
	for (uint32_t i = 0; n->arguments && i < info->n_params; i++)
		n->arguments[i] = (char *)l->params + info->params[i].offset;
	return n->arguments;
}

EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (point_to_arguments(n)) {
		const struct launch_op *l = CONTAINER(n->work, struct launch_op, op);
		const gpul_exec_launch_config *c = &l->config;

		*out = (CUDA_KERNEL_NODE_PARAMS_v2){
			.func = l->handle,
			.gridDimX = c->grid[0],
			.gridDimY = c->grid[1],
			.gridDimZ = c->grid[2],
			.blockDimX = c->block[0],
			.blockDimY = c->block[1],
			.blockDimZ = c->block[2],
			.sharedMemBytes = c->dynamic_shared_bytes,
			.kernelParams = n->arguments,
		};
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	CUresult r = out ? cuGraphKernelNodeGetParams_v2(node, &p) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*out = (CUDA_KERNEL_NODE_PARAMS_v1){ p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
						     p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra };
	return r;
}

EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_KERNEL, soft_make_kernel, params, NULL);
}

EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = from_v1(params);
	return cuGraphKernelNodeSetParams_v2(node, &p);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, soft_make_kernel, params, NULL);
}

EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = from_v1(params);
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &p);
}

/* ---- copies ----------------------------------------------------------------------------------------------- */

CUresult soft_make_copy(const void *params, CUcontext handle, struct op **out)
{
	struct context *ctx;
	CUresult r = handle ? soft_find_context(handle, &ctx) : CUDA_SUCCESS;

	return r ? r : soft_copy_new(params, out);
}

EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, const CUDA_MEMCPY3D *params,
				     CUcontext ctx)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_MEMCPY, soft_make_copy, params, ctx);
}

/* The memory types that the application passed are not kept: with unified addresses they are not needed. */
EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	const struct copy *c = &CONTAINER(n->work, struct copy_op, op)->copy;

	*out = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (uintptr_t)c->src,
		.srcPitch = c->src_pitch,
		.srcHeight = c->src_pitch ? c->src_slice / c->src_pitch : 0,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (uintptr_t)c->dst,
		.dstPitch = c->dst_pitch,
		.dstHeight = c->dst_pitch ? c->dst_slice / c->dst_pitch : 0,
		.WidthInBytes = c->width_bytes,
		.Height = c->height,
		.Depth = c->depth,
	};
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_MEMCPY, soft_make_copy, params, NULL);
}

EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext ctx)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, soft_make_copy, params, ctx);
}

/* ---- fills ------------------------------------------------------------------------------------------------ */

CUresult soft_make_fill(const void *params, CUcontext handle, struct op **out)
{
	const CUDA_MEMSET_NODE_PARAMS *p = params;
	const struct fill f = { (char *)(uintptr_t)p->dst, 0, p->width, p->height, p->pitch, p->elementSize, p->value, false };
	struct context *ctx;
	CUresult r = handle ? soft_find_context(handle, &ctx) : soft_current_context(&ctx);

	if (!r && p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_fill_new(ctx, NULL, &f, out);
	return !r && !*out ? CUDA_ERROR_INVALID_VALUE : r;
}

EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
				     const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_MEMSET, soft_make_fill, params, ctx);
}

EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	const struct fill *f = &CONTAINER(n->work, struct fill_op, op)->fill;

	*out = (CUDA_MEMSET_NODE_PARAMS){ (uintptr_t)f->dst, f->pitch, f->value, f->element_bytes, f->width, f->height };
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_MEMSET, soft_make_fill, params, NULL);
}

EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, soft_make_fill, params, ctx);
}

/* ---- host functions, and empty nodes ----------------------------------------------------------------------- */

CUresult soft_make_host_call(const void *params, CUcontext handle, struct op **out)
{
	const CUDA_HOST_NODE_PARAMS *p = params;
	struct op *op = p->fn ? soft_op_new(NULL, &soft_host_call_kind) : NULL;

	(void)handle;
	if (!op)
		return p->fn ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	CONTAINER(op, struct host_call, op)->function = p->fn;
	CONTAINER(op, struct host_call, op)->user = p->userData;
	*out = op;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n,
				   const CUDA_HOST_NODE_PARAMS *params)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_HOST, soft_make_host_call, params, NULL);
}

EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_HOST, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	out->fn = CONTAINER(n->work, struct host_call, op)->function;
	out->userData = CONTAINER(n->work, struct host_call, op)->user;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_HOST, soft_make_host_call, params, NULL);
}

EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_HOST, soft_make_host_call, params, NULL);
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_EMPTY, NULL, NULL, NULL);
}

/* Make `original` the child graph of a node in g, or a copy of it, depending on `ownership`. */
static CUresult take_child(const struct graph *g, struct graph *original, CUgraphChildGraphNodeOwnership ownership, struct graph **out)
{
	if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
		return soft_graph_clone(original, out);
	if (ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE || original->owner || original->is_captured_now || original->only_exec)
		return CUDA_ERROR_INVALID_VALUE;
	for (; g; g = soft_graph_parent(g))
		if (g == original)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuGraphAddNode: the child graph contains the graph of the node");
	if (soft_graph_has(original, CU_GRAPH_NODE_TYPE_CONDITIONAL))
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = original;
	return CUDA_SUCCESS;
}

CUresult soft_add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
	struct node_list list = { 0 };
	struct graph *g, *child = NULL, *original;
	struct node *node;
	CUresult r = out ? soft_enter_graph(graph, &g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	original = soft_handle_find(HANDLE_GRAPH, p->graph);
	r = original && original != g ? soft_find_nodes(g, waits_for, data, n, &list) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = take_child(g, original, p->ownership, &child);
	if (!r)
		r = soft_node_new(g, CU_GRAPH_NODE_TYPE_GRAPH, NULL, child, &list, &node);
	if (!r)
		*out = node->handle;
	soft_nodes_clear(&list);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, CUgraph child)
{
	CUDA_CHILD_GRAPH_NODE_PARAMS p = { .graph = child, .ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE };

	return soft_add_child(out, graph, waits_for, NULL, n, &p);
}

EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = n->child->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}
