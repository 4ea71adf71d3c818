/* cu_attribute.c — the launch attributes of kernel nodes.
 *
 * Attributes that change how a kernel runs are stored in the node's work. Hints are only stored for queries. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

#include <stdlib.h>
#include <string.h>

static CUlaunchAttribute *find_attribute(const struct node *n, CUkernelNodeAttrID id)
{
	for (size_t i = 0; i < n->n_attributes; i++)
		if (n->attributes[i].id == id)
			return &n->attributes[i];
	return NULL;
}

static CUresult store_attribute(struct node *n, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	CUlaunchAttribute *a = find_attribute(n, id), *list;

	if (!a) {
		list = realloc(n->attributes, (n->n_attributes + 1) * sizeof *list);
		if (!list)
			return CUDA_ERROR_OUT_OF_MEMORY;
		n->attributes = list;
		a = &list[n->n_attributes++];
	}
	*a = (CUlaunchAttribute){ .id = id, .value = *value };
	return CUDA_SUCCESS;
}

/* Give the node its own copy of its work before a change, because other nodes and executable graphs may share the work. */
static struct gpul_exec_launch_config *own_config(struct node *n)
{
	struct op *work = soft_op_copy(n->work, NULL);

	if (!work)
		return NULL;
	soft_node_set_work(n, work);
	return &CONTAINER(work, struct launch_op, op)->config;
}

static CUresult set_attribute(struct node *n, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	gpul_exec_launch_config *c;

	switch ((int)id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		c = own_config(n);
		if (!c)
			return CUDA_ERROR_OUT_OF_MEMORY;
		c->cooperative = value->cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		if (value->clusterDim.x > 1 || value->clusterDim.y > 1 || value->clusterDim.z > 1)
			return soft_refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE, "clusters of more than one block are not supported in graphs");
		return store_attribute(n, id, value);
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case 14: /* preferred shared memory carveout, since CUDA 12.5 */
	case 16: /* NVLink-centric scheduling, since CUDA 13.0 */
		return store_attribute(n, id, value);
	case 13: /* a device-updatable node, since CUDA 12.4 */
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "device-updatable nodes are not supported");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult get_attribute(const struct node *n, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out)
{
	const CUlaunchAttribute *a = find_attribute(n, id);

	memset(out, 0, sizeof *out);
	if (a) {
		*out = a->value;
		return CUDA_SUCCESS;
	}
	switch ((int)id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		out->cooperative = CONTAINER(n->work, const struct launch_op, op)->config.cooperative;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		out->memSyncDomainMap.remote = 1; /* the default of cudaLaunchMemSyncDomainMap */
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case 13:
	case 14:
	case 16:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = get_attribute(n, id, out);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	struct node *n;
	CUresult r = value ? soft_enter_node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = set_attribute(n, id, value);
	soft_unlock();
	return r;
}

EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct node *to, *from;
	CUkernelNodeAttrValue cooperative;
	CUresult r = soft_enter_node_of(dst, CU_GRAPH_NODE_TYPE_KERNEL, &to);

	if (r)
		return r;
	from = soft_handle_find(HANDLE_NODE, src);
	if (!from || from->type != CU_GRAPH_NODE_TYPE_KERNEL)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = get_attribute(from, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
	if (!r)
		r = set_attribute(to, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative);
	for (size_t i = 0; !r && i < from->n_attributes; i++)
		r = set_attribute(to, from->attributes[i].id, &from->attributes[i].value);
	soft_unlock();
	return r;
}
