/* rt_edges.c — adds, removes and lists dependencies between the nodes of a graph.
 *
 * Since CUDA 12.3 an edge has data (its ports and type); in the older calls of CUDA 12, edges have no data. Compiled for the
 * interfaces of CUDA 12 and of CUDA 13 (rt_abi_internal.h). */
#include "nvidia/cudart/rt_abi_internal.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "the data of an edge is the same in both interfaces");

#define EDGES(data)       ((CUgraphEdgeData *)(void *)(data))
#define CONST_EDGES(data) ((const CUgraphEdgeData *)(const void *)(data))

GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaGraphAddDependencies"), gpul_rt_add_edges,
		   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *data, size_t n),
		   cuGraphAddDependencies_v2(graph, from, to, CONST_EDGES(data), n))
GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaGraphRemoveDependencies"), gpul_rt_remove_edges,
		   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *data, size_t n),
		   cuGraphRemoveDependencies_v2(graph, from, to, CONST_EDGES(data), n))
GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaGraphGetEdges"), gpul_rt_get_edges,
		   (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *n),
		   cuGraphGetEdges_v2(graph, from, to, EDGES(data), n))
GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaGraphNodeGetDependencies"), gpul_rt_get_dependencies,
		   (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *n),
		   cuGraphNodeGetDependencies_v2(node, nodes, EDGES(data), n))
GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaGraphNodeGetDependentNodes"), gpul_rt_get_dependents,
		   (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *n),
		   cuGraphNodeGetDependentNodes_v2(node, nodes, EDGES(data), n))

#if GPUL_RT_ABI < 13
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaGraphAddDependencies"), gpul_rt_add_plain_edges,
		   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t n),
		   cuGraphAddDependencies_v2(graph, from, to, NULL, n))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaGraphRemoveDependencies"), gpul_rt_remove_plain_edges,
		   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t n),
		   cuGraphRemoveDependencies_v2(graph, from, to, NULL, n))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaGraphGetEdges"), gpul_rt_get_plain_edges,
		   (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *n), cuGraphGetEdges_v2(graph, from, to, NULL, n))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaGraphNodeGetDependencies"), gpul_rt_get_plain_dependencies,
		   (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *n), cuGraphNodeGetDependencies_v2(node, nodes, NULL, n))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaGraphNodeGetDependentNodes"), gpul_rt_get_plain_dependents,
		   (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *n), cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n))
#endif
