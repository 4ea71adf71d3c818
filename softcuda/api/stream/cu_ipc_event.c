/* cu_ipc_event.c — cuIpcGetEventHandle and cuIpcOpenEventHandle: share an event with other processes. */
#include "softcuda/api/stream/cu_event_internal.h"

#include <string.h>

/* Move the event's state to a page that other processes can map.  If its newest record has not ended, the record gets ticket 1. */
static CUresult share_event(struct event *e)
{
	struct shared_event *shared;
	struct ipc_file file;
	CUresult r = CUDA_SUCCESS;

	if (e->shared)
		return soft_shared_event_file(e->shared) ? r : CUDA_ERROR_INVALID_HANDLE;
	r = soft_ipc_create(IPC_EVENT, soft_shared_event_bytes, &file);
	if (r)
		return r;
	r = soft_shared_event_attach(&file, true, &shared);
	if (r)
		soft_ipc_close(&file);
	else
		soft_event_share(e, shared);
	return r;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
	struct ipc_handle h;
	struct event *e;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	e = soft_handle_find(HANDLE_EVENT, event);
	if (!e || !(e->flags & CU_EVENT_INTERPROCESS))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!out)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = share_event(e);
	if (!r)
		r = soft_ipc_describe(IPC_EVENT, soft_shared_event_file(e->shared), e->ctx->device, &h);
	if (!r)
		memcpy(out, &h, sizeof h);
	soft_unlock();
	return r;
}

static CUresult open_event_handle(struct context *ctx, const struct ipc_handle *h, CUevent *out)
{
	struct ipc_file file = { .bytes = soft_shared_event_bytes };
	struct event *e;
	CUresult r;

	if (!soft_ipc_is_handle(IPC_EVENT, h) || h->bytes != file.bytes)
		return CUDA_ERROR_MAP_FAILED;
	if (soft_ipc_is_own(h))
		return soft_refuse(CUDA_ERROR_INVALID_CONTEXT,
				   "cuIpcOpenEventHandle: this process created the event: use the event itself");
	file.fd = soft_ipc_open(IPC_EVENT, h);
	if (file.fd < 0)
		return CUDA_ERROR_MAP_FAILED;
	r = soft_event_create(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, &e);
	if (r)
		goto close_file;
	r = soft_shared_event_attach(&file, false, &e->shared);
	if (r)
		goto destroy;
	*out = e->handle;
	return CUDA_SUCCESS;
destroy:
	soft_event_destroy(e);
close_file:
	soft_ipc_close(&file);
	return r;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	struct context *ctx;
	struct ipc_handle h;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	memcpy(&h, &handle, sizeof h);
	r = out ? open_event_handle(ctx, &h, out) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}
