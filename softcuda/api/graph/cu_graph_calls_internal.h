/* cu_graph_calls_internal.h — functions shared by the graph calls, and executable graphs. */
#ifndef GPULOAD_SOFTCUDA_API_GRAPH_CU_GRAPH_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_GRAPH_CU_GRAPH_CALLS_INTERNAL_H

#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"
#include "softcuda/api/stream/cu_graph_internal.h"

/* A step is one operation of an executable graph.  Steps are in the order in which a launch queues them: the first one waits for
 * the stream's earlier work, and the stream's later work waits for the last one. */
struct exec_step {
	/* holds a reference; NULL: a marker without work, for an empty or disabled node, a fork or a join */
	struct op *work;
	struct op *disabled; /* work of a disabled node, with a reference; NULL: the node is enabled */
	CUgraphNodeType type;
	uint64_t node_id;     /* id of the step's node; 0: none */
	uint64_t cloned_from; /* id of the original, if the node is a clone; else 0 */
	CUgraphNode node;
};

/* The steps and waits of an executable graph that were made from one graph: ranges of its arrays `steps` and `waits`. */
struct exec_part {
	size_t first_step, end_step, first_wait, end_wait;
};

struct exec_child { /* the steps of a node that contains a child graph */
	uint64_t node_id, cloned_from;
	struct exec_part part;
};

struct graph_exec {
	unsigned refs; /* number of references, which a handle or the operations of a conditional node hold */
	void *handle;
	struct exec_step *steps;
	struct op_wait *waits;
	struct exec_child *children;
	size_t n_steps, steps_room, n_waits, waits_room, n_children, children_room;
	struct exec_part graph; /* the steps of the whole graph, without the steps added before and after them */
	struct op *last;        /* the last operation of the newest launch, which the next launch waits for; holds a reference */
	void *only_of;          /* handle of the source graph if it may have only one executable graph at a time; else NULL */
	cuuint64_t flags;
};

/* The work of a conditional node: runs one of the bodies, or runs the only body repeatedly. */
struct conditional_op {
	struct op op;
	struct condition *condition; /* holds a reference */
	CUgraphConditionalNodeType type;
	struct graph_exec **bodies; /* holds a reference to each */
	unsigned n_bodies;
};
extern const struct op_kind soft_conditional_kind;

CUresult soft_lock_for_type(CUgraphNodeType type);
/* Find the graph of a handle, or return `locked`, the result of taking the lock, if it is an error.  On success, the lock is held. */
CUresult soft_find_graph(CUresult locked, CUgraph handle, struct graph **out);
CUresult soft_find_exec(CUresult locked, CUgraphExec handle, struct graph_exec **out);
/* Begin a call with a graph, a node or an executable graph; on success the lock is held. */
CUresult soft_enter_graph(CUgraph handle, struct graph **out);
CUresult soft_enter_node(CUgraphNode handle, struct node **out);
CUresult soft_enter_exec(CUgraphExec handle, struct graph_exec **out);
/* Like soft_enter_node(), for a node of this type. */
CUresult soft_enter_node_of(CUgraphNode handle, CUgraphNodeType type, struct node **out);
/* Find nodes of a graph; duplicates are refused.  data may be NULL.  The caller holds the lock, and clears *out even on failure. */
CUresult soft_find_nodes(const struct graph *g, const CUgraphNode *handles, const CUgraphEdgeData *data, size_t n, struct node_list *out);
/* Return CUDA_ERROR_INVALID_VALUE if the data of an edge is not supported.  data may be NULL. */
CUresult soft_check_edge_data(const CUgraphEdgeData *data, size_t n);
bool soft_is_plain_edge(const CUgraphEdgeData *data); /* true: all bytes of the edge data are 0 */
bool soft_has_memory_nodes(const struct graph *g);

/* A function that creates a node's work from its parameters.  The caller holds the lock.  ctx NULL: the current context. */
typedef CUresult make_work(const void *params, CUcontext ctx, struct op **out);

make_work soft_make_kernel, soft_make_copy, soft_make_fill, soft_make_host_call, soft_make_record, soft_make_wait, soft_make_values;
/* Add a node, and create its work with `make`; NULL: the node has no work. */
CUresult soft_add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
		       CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx);
CUresult soft_set_node(CUgraphNode handle, CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx);
CUresult soft_set_exec_node(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type, make_work *make, const void *params, CUcontext ctx);
/* Get the current context; if the context has had a fault, return the fault as an error. */
CUresult soft_current_context(struct context **out);

/* ---- node types with their own calls ------------------------------------------------------------------------ */

CUresult soft_add_child(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			CUDA_CHILD_GRAPH_NODE_PARAMS *params);
CUresult soft_add_alloc(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult soft_add_free(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
		       CUdeviceptr address);
CUresult soft_add_conditional(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, const CUgraphEdgeData *data, size_t n,
			      CUDA_CONDITIONAL_NODE_PARAMS *params);

/* ---- executable graphs: the caller holds the lock ---------------------------------------------------------- */

/* Instantiate g.  On failure *bad is a node that is on a cycle, or NULL. */
CUresult soft_exec_new(struct graph *g, cuuint64_t flags, struct graph_exec **out, CUgraphNode *bad); /* the caller creates the handle */
void soft_exec_unref(struct graph_exec *x);
/* Create an operation in stream s for each step; the caller releases them.  room: number of additional elements to allocate in the list. */
CUresult soft_exec_copy_steps(const struct graph_exec *x, struct stream *s, size_t room, struct op ***out);
/* Find the step of a node, also in the bodies of conditional nodes; NULL: the executable graph was not made from the node's graph. */
struct exec_step *soft_exec_find(const struct graph_exec *x, CUgraphNode handle, CUgraphNodeType type);
void soft_exec_set_work(struct exec_step *step, struct op *work); /* takes over the caller's reference */
/* Make room for one more element of a list; false: out of memory. */
bool soft_exec_grow(void **list, size_t n, size_t *room, size_t element_bytes);
/* Append a step with this work; takes over the reference to the work, even on failure.  n NULL: the step has no node. */
CUresult soft_exec_add_work(struct graph_exec *x, const struct node *n, struct op *work, size_t *index);
CUresult soft_exec_add_wait(struct graph_exec *x, size_t later, size_t earlier);
/* Append a step without a node, which waits for the step that was the last one; else like soft_exec_add_work(). */
CUresult soft_exec_append_last(struct graph_exec *x, struct op *work);
/* If the graph has user objects, append a step that holds references to them (cu_exec_keep.c). */
CUresult soft_exec_keep_objects(struct graph_exec *x, const struct graph *g);
/* Replace the user objects of x by those of `from`.  is_part: `from` replaces only a child graph, so x keeps its old objects, too. */
CUresult soft_exec_replace_objects(struct graph_exec *x, const struct graph_exec *from, bool is_part);
const struct user_objects *soft_exec_objects(const struct graph_exec *x);
bool soft_exec_is_keep(const struct exec_step *step);
/* Create the work of a conditional node, without its bodies. */
CUresult soft_conditional_new(const struct node *n, struct conditional_op **out);
/* Create the operation that assigns the initial values of the graph's conditions before the graph runs. */
CUresult soft_assign_work(const struct graph *g, struct op **out); /* *out NULL: there is no value to assign */
/* Returns true if the graph has a condition that no node uses. */
bool soft_has_unused_condition(const struct graph *g);
/* Check whether new work may replace old work of the same type in an executable graph. */
CUgraphExecUpdateResult soft_compare_work(const struct op *old, const struct op *new_work);

#endif
