/* ofi.c — the table of the functions of the libfabric backend. */
#include "rdma/backend/backend.h"

#if GPUL_HAVE_LIBFABRIC

#include "rdma/ofi/ofi_internal.h"

const gpul_rdma_backend gpul_rdma_libfabric = {
	.name = "libfabric",
	.open = gpul_ofi_device_open,
	.close = gpul_ofi_device_close,
	.about = gpul_ofi_device_about,
	.reg = gpul_ofi_reg,
	.dereg = gpul_ofi_dereg,
	.create_path = gpul_ofi_path_create,
	.describe = gpul_ofi_path_describe,
	.connect_path = gpul_ofi_path_connect,
	.post = gpul_ofi_post,
	.poll = gpul_ofi_poll,
	.break_path = gpul_ofi_path_break,
	.destroy_path = gpul_ofi_path_destroy,
};

#else

#include "rdma/ofi/ofi_lib.h"

static gpul_status no_headers(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	const struct gpul_ofi *ofi;

	(void)desc, (void)device;
	return gpul_ofi_open(&ofi, err);
}

const gpul_rdma_backend gpul_rdma_libfabric = { .name = "libfabric", .open = no_headers };

#endif
