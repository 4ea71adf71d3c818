/* cu_event_node.c — nodes that record events, or wait for them; stream/cu_stream_event_node.c implements their work. */
#include "softcuda/api/graph/cu_graph_calls_internal.h"

static CUresult find_event(const void *handle, struct event **out)
{
	*out = soft_handle_find(HANDLE_EVENT, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult soft_make_record(const void *handle, CUcontext ctx, struct op **out)
{
	struct event *e;
	CUresult r = find_event(handle, &e);

	(void)ctx;
	return r ? r : soft_event_record_work(e, out);
}

CUresult soft_make_wait(const void *handle, CUcontext ctx, struct op **out)
{
	struct event *e;
	CUresult r = find_event(handle, &e);

	(void)ctx;
	return r ? r : soft_event_wait_work(e, out);
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *out)
{
	struct node *n;
	CUresult r = out ? soft_enter_node_of(handle, type, &n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = soft_event_of_work(n->work)->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, CUevent event)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, soft_make_record, event, NULL);
}

EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}

EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, soft_make_record, event, NULL);
}

EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, soft_make_record, event, NULL);
}

EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *waits_for, size_t n, CUevent event)
{
	return soft_add_node(out, graph, waits_for, NULL, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, soft_make_wait, event, NULL);
}

EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}

EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return soft_set_node(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, soft_make_wait, event, NULL);
}

EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return soft_set_exec_node(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, soft_make_wait, event, NULL);
}
