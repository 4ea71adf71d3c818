/* offer.c — builds the server's OFFER message once; it is sent to every peer. */
#include "ipc/server_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "ipc/control.h"

static gpul_status check_size(const gpul_mem_info *about, const gpul_ipc_server_options *o, gpul_error *err)
{
	size_t offset = o->control ? GPUL_IPC_CONTROL_BYTES : 0;

	if (!about->exportable)
		return gpul_fail(err, GPUL_EINVAL, 0, "this %s memory cannot be shared: create it with gpul_mem_desc.exportable",
				 gpul_mem_kind_name(about->kind));
	if (about->bytes <= offset || o->bytes > about->bytes - offset)
		return gpul_fail(err, GPUL_EINVAL, 0, "the memory has %zu bytes, which is too small to share %zu bytes%s", about->bytes,
				 o->bytes ? o->bytes : 1, o->control ? " and a control page of 4096 bytes before them" : "");
	return GPUL_OK;
}

static gpul_status export_memory(gpul_ipc_server *s, bool fabric, gpul_error *err)
{
	bool by_handle = fabric || gpul_mem_about(s->mem)->kind == GPUL_MEM_DEVICE_IPC;
	gpul_mem_handle handle;
	gpul_status st;

	s->fd = -1;
	s->offer.share.via = !by_handle ? WIRE_VIA_FD : fabric ? WIRE_VIA_FABRIC : WIRE_VIA_CUDA_IPC;
	if (!by_handle)
		return gpul_mem_export_fd(s->mem, &s->fd, err);
	st = gpul_mem_export_handle(s->mem, &handle, err);
	if (!st)
		memcpy(s->offer.handle, handle.bytes, sizeof s->offer.handle);
	return st;
}

static gpul_status create_event(gpul_ipc_server *s, gpul_error *err)
{
	const gpul_driver *drv = s->drv;
	CUipcEventHandle handle;
	CUevent event;
	gpul_status st = gpul_cu(drv, err, cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));

	if (st)
		return st;
	st = gpul_cu(drv, err, cuIpcGetEventHandle(&handle, event));
	if (st) {
		drv->cuEventDestroy(event);
		return st;
	}
	_Static_assert(sizeof handle == WIRE_HANDLE_BYTES, "the handle has the size of its field in the message");
	memcpy(s->offer.event, &handle, sizeof handle);
	s->offer.share.flags |= WIRE_HAS_EVENT;
	s->event = event;
	return GPUL_OK;
}

static gpul_status fill_share(gpul_ipc_server *s, const gpul_ipc_server_options *o, gpul_error *err)
{
	const gpul_mem_info *about = gpul_mem_about(s->mem);
	struct wire_share *share = &s->offer.share;
	struct gpul_ipc_here here;
	gpul_status st = gpul_ipc_here_get(s->drv, &here, err);

	if (st)
		return st;
	if (getrandom(share->id, sizeof share->id, 0) != (ssize_t)sizeof share->id)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	s->offer.head = gpul_ipc_wire_head(WIRE_OFFER);
	share->generation = gpul_clock_ns();
	share->mapped_bytes = about->mapped_bytes;
	share->bytes = o->bytes ? o->bytes : about->bytes - gpul_ipc_wire_data_offset(share);
	share->granularity_bytes = about->granularity_bytes;
	share->kind = (uint32_t)about->kind;
	share->node = about->node;
	share->n_dims = o->shape.n_dims;
	memcpy(share->dtype, o->shape.dtype, sizeof share->dtype);
	memcpy(share->dim, o->shape.dim, sizeof share->dim);
	memcpy(share->boot_id, here.boot_id, sizeof share->boot_id);
	memcpy(share->driver, here.driver, sizeof share->driver);
	share->driver_version = (uint32_t)s->drv->version;
	if (about->device >= 0 && (unsigned)about->device < here.n_gpus)
		memcpy(share->gpu, here.gpu[about->device], sizeof share->gpu);
	return GPUL_OK;
}

/* Check the offer with the function that peers use, so that wrong options are reported once to the owner, and not to each peer. */
static gpul_status check_offer(const gpul_ipc_server *s, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_ipc_message m;

	if (gpul_ipc_wire_parse(&s->offer, sizeof s->offer, &m, &why) == GPUL_OK)
		return GPUL_OK;
	return gpul_fail(err, GPUL_EINVAL, 0, "the options for sharing memory are invalid: %s", why.text);
}

static gpul_status reset_control(gpul_ipc_server *s, gpul_error *err)
{
	struct gpul_ipc_control page;

	if (!s->view.control_gpu)
		return GPUL_OK;
	if (s->view.control) {
		gpul_ipc_control_reset(s->view.control, s->offer.share.generation);
		return GPUL_OK;
	}
	gpul_ipc_control_reset(&page, s->offer.share.generation);
	return gpul_cu(s->drv, err, cuMemcpyHtoD(s->view.control_gpu, &page, sizeof page));
}

gpul_status gpul_ipc_offer_make(gpul_ipc_server *s, const gpul_ipc_server_options *o, gpul_error *err)
{
	gpul_status st = check_size(gpul_mem_about(s->mem), o, err);

	if (st)
		return st;
	s->offer.share.flags = (o->control ? WIRE_HAS_CONTROL : 0) | (o->read_only ? WIRE_IS_READ_ONLY : 0);
	st = fill_share(s, o, err);
	if (!st)
		st = export_memory(s, o->fabric, err);
	if (!st && o->gpu_event)
		st = create_event(s, err);
	if (!st)
		st = check_offer(s, err);
	if (st)
		return st;
	s->view = gpul_ipc_view_of(s->drv, s->mem, &s->offer.share, false);
	return reset_control(s, err);
}
