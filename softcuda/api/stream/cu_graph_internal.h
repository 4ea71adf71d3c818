/* cu_graph_internal.h — graphs, which consist of nodes that wait for other nodes, and stream captures, which build graphs.
 *
 *     stream  ── tips ──┐                        a capture adds a node for each operation; the node waits for the
 *     capture ── graph ─┴─ node ── work (op)     stream's tips and becomes its only tip
 *                           └─ waits_for         an event that was recorded in a capture has tips, too
 *
 * The work of a node is an operation that is never queued: a launch of the graph queues copies of it. */
#ifndef GPULOAD_SOFTCUDA_API_STREAM_CU_GRAPH_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_STREAM_CU_GRAPH_INTERNAL_H

#include "softcuda/api/stream/cu_event_internal.h"

struct graph_exec;

/* The condition of conditional nodes.  Its handle is the address of `value`, which kernels set with cudaGraphSetConditional. */
struct condition {
	struct link link;     /* link in graph->conditions, until the graph is destroyed */
	unsigned refs;        /* references: one for the graph, and one for each node and operation that uses the condition */
	uint32_t *value;      /* the value, in memory that kernels may access */
	uint32_t first_value; /* if is_assigned, each launch sets the value to first_value */
	bool is_assigned;
	bool has_node;
};

/* An object of the application that lives as long as graphs use it: cuUserObjectCreate. */
struct user_object {
	void *handle;
	unsigned refs; /* number of references that the application and graphs hold */
	CUhostFn destroy;
	void *user;
};

struct user_objects { /* user objects, with the number of references that a graph or an executable graph holds */
	struct user_reference {
		struct user_object *object;
		unsigned count;
	} *at;
	size_t n;
};

struct graph {
	void *handle;
	struct link nodes; /* the nodes, in the order of their creation */
	size_t n_nodes;
	struct node *owner;   /* the node to which this graph belongs, as child graph or body; NULL: none */
	bool is_captured_now; /* true while a capture adds nodes to the graph */
	bool is_of_program;   /* passed to cuStreamBeginCaptureToGraph, so the graph is not destroyed if the capture fails */
	struct link conditions;
	struct user_objects objects;
	const struct graph_exec *only_exec; /* the only executable graph, if only one may exist; else NULL */
};

struct node {
	struct link link; /* link in graph->nodes */
	void *handle;
	struct graph *graph;
	CUgraphNodeType type;
	uint64_t id;          /* identifies the node in executable graphs */
	uint64_t cloned_from; /* id of the node that cuGraphClone copied; 0: none */
	struct op *work;      /* holds a reference; NULL: an empty node, a child graph or a conditional node */
	struct graph *child;  /* owned; NULL: no child graph */
	struct node_list waits_for;
	size_t n_dependents;           /* number of nodes that wait for this node */
	void **arguments;              /* list of pointers for cuGraphKernelNodeGetParams; NULL: none */
	CUlaunchAttribute *attributes; /* the launch attributes that the application has set; or NULL */
	size_t n_attributes;
	struct condition *condition; /* holds a reference; NULL: not a conditional node */
	CUgraphConditionalNodeType condition_type;
	struct graph **bodies; /* the bodies of a conditional node, owned */
	CUgraph *body_handles;
	unsigned n_bodies;
	size_t first, last; /* for graph/cu_exec.c: the node's first and last step in an executable graph */
	struct node *copy;  /* for soft_graph_clone(): the copy of this node */
	bool is_captured;   /* true: added by a capture; false: added by the application */
	bool is_sorted;     /* for soft_graph_sort(): the node is in the sorted list */
};

struct capture {
	struct link link; /* link in the list of captures in progress */
	unsigned refs;    /* references: one for all streams of the capture, and one for each event recorded in it */
	bool has_ended;
	bool is_invalid; /* a call was refused, so cuStreamEndCapture will fail */
	struct graph *graph;
	struct stream *origin; /* the stream that began the capture */
	struct link streams;
	CUstreamCaptureMode mode;
	uint64_t thread, id;
};

struct capture_point {           /* the point of a capture at which an event was recorded */
	struct capture *capture; /* holds a reference */
	struct node_list nodes;
};

/* ---- cu_stream_graph.c: the caller holds the lock -------------------------------------------------- */

/* Add a node to the list, unless it is in the list.  data NULL: all bytes of its edge data are 0.  Returns false if out of memory. */
bool soft_nodes_add(struct node_list *list, struct node *node, const CUgraphEdgeData *data);
bool soft_nodes_have(const struct node_list *list, const struct node *node);
void soft_nodes_remove(struct node_list *list, size_t index);
void soft_nodes_clear(struct node_list *list);

CUresult soft_graph_new(struct graph **out);
struct graph *soft_graph_parent(const struct graph *g); /* the graph whose node owns g; NULL: none */
void soft_graph_free(struct graph *g);
/* Copy a graph.  CUDA_ERROR_NOT_SUPPORTED: it has nodes that cannot be copied. */
CUresult soft_graph_clone(const struct graph *g, struct graph **out);
/* Returns true if the graph, or a graph in its nodes, has a node of this type. */
bool soft_graph_has(const struct graph *g, CUgraphNodeType type);
/* Add a node to a graph, which takes over the caller's references to work and child, even on failure. */
CUresult soft_node_new(struct graph *g, CUgraphNodeType type, struct op *work, struct graph *child, const struct node_list *waits_for,
		       struct node **out);
void soft_node_free(struct node *n);
bool soft_node_wait(struct node *n, struct node *for_node, const CUgraphEdgeData *data); /* n waits for for_node; false: out of memory */
void soft_node_set_work(struct node *n, struct op *work);                                /* takes over the caller's reference */
/* List all nodes in topological order, predecessors first; the caller frees the list.  CUDA_ERROR_INVALID_VALUE: a cycle. */
CUresult soft_graph_sort(const struct graph *g, struct node ***out);

/* ---- cu_graph_own.c: resources of graphs other than nodes; the caller holds the lock -------- */

CUresult soft_condition_new(struct graph *g, uint32_t first_value, bool is_assigned, struct condition **out);
struct condition *soft_condition_find(const struct graph *g, CUgraphConditionalHandle handle); /* NULL: not a condition of this graph */
void soft_condition_release(struct condition *c);                                              /* accepts NULL */
/* Add `count` references to an object; on failure (false: out of memory), nothing is added. */
bool soft_user_objects_add(struct user_objects *list, struct user_object *o, unsigned count);
bool soft_user_objects_copy(struct user_objects *to, const struct user_objects *from); /* adds one reference to each object */
void soft_user_objects_clear(struct user_objects *list);
/* Drop references.  If none is left, the callback thread calls the application's destructor. */
void soft_user_object_release(struct user_object *o, unsigned count);

/* ---- cu_capture.c: the caller holds the lock ------------------------------------------------ */

/* Begin a capture.  to NULL: create a graph; else add the captured nodes to *to, where the first ones wait for `after`. */
CUresult soft_capture_begin(struct stream *s, CUstreamCaptureMode mode, struct graph *to, const struct node_list *after);
CUresult soft_capture_end(struct stream *s, struct graph **out);
/* Record the event in the capture of s. */
CUresult soft_capture_record(struct stream *s, struct event *e);
/* Make s wait for the event.  s is capturing, or joins the capture in which the event was recorded. */
CUresult soft_capture_wait(struct stream *s, struct event *e);
/* Change the nodes for which the next captured operation of s will wait. */
CUresult soft_capture_set_tips(struct stream *s, const struct node_list *nodes, bool add);
/* If the event was last recorded in a capture, it never completes: invalidate the capture, and return CUDA_ERROR_CAPTURED_EVENT. */
CUresult soft_capture_check_event(struct event *e);
void soft_capture_forget(struct event *e); /* called when the event is destroyed, or recorded in a stream that is not capturing */
/* Set the calling thread's capture mode, and return the previous mode. */
CUstreamCaptureMode soft_capture_exchange_mode(CUstreamCaptureMode mode);

/* ---- cu_stream_event_node.c: the caller holds the lock --------------------------------------------- */

/* Create the work of a node that records an event, or waits for one; the work holds a reference to the event. */
CUresult soft_event_record_work(struct event *e, struct op **out);
CUresult soft_event_wait_work(struct event *e, struct op **out);
struct event *soft_event_of_work(const struct op *work);

#endif
