/* graph_calls_internal.h — what the calls on graphs share, and executable graphs. */
#ifndef GPULOAD_SOFTCUDA_API_GRAPH_GRAPH_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_GRAPH_GRAPH_CALLS_INTERNAL_H

#include "softcuda/api/code/code_internal.h"
#include "softcuda/api/memory/memory_internal.h"
#include "softcuda/api/stream/graph_internal.h"

/* One operation of an executable graph, in the order in which a launch queues them.  The first step waits for the
 * stream's earlier work; the stream's later work waits for the last step. */
struct exec_step {
	struct op *work;             /* a reference; a marker: an empty or disabled node, or where branches fork and join */
	struct op *disabled;         /* the work of a disabled node, a reference; NULL: enabled */
	CUgraphNodeType type;
	uint64_t node_id;            /* 0: no node */
	uint64_t cloned_from;        /* id of the node that the node is a copy of; 0: none */
};

struct graph_exec {
	void *handle;
	struct exec_step *steps;
	struct op_wait *waits;
	size_t n_steps, steps_room, n_waits, waits_room;
	struct op *last;             /* the end of the newest launch, a reference: launches run one after another */
	cuuint64_t flags;
};

/* Begin a call with a graph, a node or an executable graph; on success the lock is held. */
CUresult soft_enter_graph(CUgraph handle, struct graph **out);
CUresult soft_enter_node(CUgraphNode handle, struct node **out);
CUresult soft_enter_exec(CUgraphExec handle, struct graph_exec **out);
/* Like soft_enter_node(), for a node of this type. */
CUresult soft_enter_node_of(CUgraphNode handle, CUgraphNodeType type, struct node **out);
/* Find nodes of a graph, each once; the caller holds the lock, and clears *out, also on failure. */
CUresult soft_find_nodes(const struct graph *g, const CUgraphNode *handles, size_t n, struct node_list *out);
/* CUDA_ERROR_NOT_SUPPORTED: one of the dependencies is not on all of the earlier node.  data may be NULL. */
CUresult soft_check_edge_data(const CUgraphEdgeData *data, size_t n);
CUresult soft_exec_new(const struct graph *g, cuuint64_t flags, struct graph_exec **out);  /* without a handle */
void soft_exec_free(struct graph_exec *x);
/* Find the step of a node; NULL: the executable graph was made from another graph. */
struct exec_step *soft_exec_find(const struct graph_exec *x, CUgraphNode handle, CUgraphNodeType type);
void soft_exec_set_work(struct exec_step *step, struct op *work);  /* takes over the caller's reference */

#endif
