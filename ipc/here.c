/* here.c — describes this process (machine, driver, GPUs), and checks whether a peer can map an offer. */
#include "ipc/here_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* number of cached descriptions: enough for NVIDIA's driver, the software driver and the drivers of tests */
enum { N_KEPT = 4 };

static struct gpul_ipc_here kept[N_KEPT];
static unsigned n_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parse a boot id such as "7d2c6f0e-...": 32 digits and four dashes. */
static gpul_status read_boot_id(unsigned char out[16], gpul_error *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	unsigned n_digits = 0;

	if (n < 0)
		(void)gpul_fail(err, GPUL_ESYS, errno, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return GPUL_ESYS;
	memset(out, 0, 16);
	for (const char *p = text; *p && n_digits < 32; p++) {
		int digit = hex_digit(*p);

		if (digit >= 0) {
			out[n_digits / 2] = (unsigned char)(out[n_digits / 2] << 4 | digit);
			n_digits++;
		}
	}
	return n_digits == 32 ? GPUL_OK : gpul_fail(err, GPUL_ESYS, EINVAL, "%s does not contain a boot id", path);
}

static uint32_t find_abilities(const gpul_driver *drv)
{
	bool vmm = gpul_driver_has(drv, "cuMemImportFromShareableHandle") && gpul_driver_has(drv, "cuMemMap");
	bool reg = gpul_driver_has(drv, "cuMemHostRegister");
	bool legacy = gpul_driver_has(drv, "cuIpcOpenMemHandle");
	uint32_t can = 0;

	if (vmm)
		can |= 1u << GPUL_MEM_HOST_NUMA | 1u << GPUL_MEM_DEVICE | WIRE_CAN_FABRIC;
	if (reg)
		can |= 1u << GPUL_MEM_MEMFD | 1u << GPUL_MEM_SHM;
	if (legacy)
		can |= 1u << GPUL_MEM_DEVICE_IPC;
	if (gpul_driver_has(drv, "cuIpcOpenEventHandle"))
		can |= WIRE_CAN_EVENT;
	return can;
}

static gpul_status query_driver(const gpul_driver *drv, struct gpul_ipc_here *out, gpul_error *err)
{
	int n_devices = 0;
	gpul_status st = gpul_cu(drv, err, cuDeviceGetCount(&n_devices));

	if (st)
		return st;
	snprintf(out->driver, sizeof out->driver, "%s", drv->name);
	out->can = find_abilities(drv);
	for (int i = 0; i < n_devices && i < WIRE_MAX_GPUS; i++) {
		CUdevice device;
		CUuuid uuid;

		st = gpul_cu(drv, err, cuDeviceGet(&device, i));
		if (!st)
			st = gpul_cu(drv, err, cuDeviceGetUuid(&uuid, device));
		if (st)
			return st;
		memcpy(out->gpu[out->n_gpus++], uuid.bytes, 16);
	}
	return GPUL_OK;
}

static gpul_status query_here(const gpul_driver *drv, struct gpul_ipc_here *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct gpul_ipc_here){ .drv = drv };
	st = read_boot_id(out->boot_id, err);
	return st || !drv ? st : query_driver(drv, out, err);
}

gpul_status gpul_ipc_here_get(const gpul_driver *drv, struct gpul_ipc_here *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	unsigned i = 0;

	if (drv && !drv->path)
		return query_here(drv, out, err); /* a driver table of a test, which may change: do not cache the result */
	pthread_mutex_lock(&kept_lock);
	while (i < n_kept && kept[i].drv != drv)
		i++;
	if (i < n_kept)
		*out = kept[i];
	else
		st = query_here(drv, out, err);
	if (i == n_kept && !st && n_kept < N_KEPT)
		kept[n_kept++] = *out;
	pthread_mutex_unlock(&kept_lock);
	return st;
}

int gpul_ipc_find_gpu(const unsigned char (*gpus)[16], unsigned n_gpus, const unsigned char uuid[16])
{
	for (unsigned i = 0; i < n_gpus; i++)
		if (memcmp(gpus[i], uuid, 16) == 0)
			return (int)i;
	return -1;
}

static gpul_status report_missing_gpu(const unsigned char uuid[16], gpul_error *err)
{
	char text[2 * 16 + 1];

	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "the memory is on GPU-%.8s-%.4s-%.4s-%.4s-%s, which the attaching process cannot "
			 "use: check its CUDA_VISIBLE_DEVICES",
			 text, text + 8, text + 12, text + 16, text + 20);
}

gpul_status gpul_ipc_here_fits(const struct wire_hello *hello, const struct wire_share *share, gpul_error *err)
{
	const char *kind = gpul_mem_kind_name((gpul_mem_kind)share->kind);
	bool by_driver = share->kind == GPUL_MEM_HOST_NUMA || share->kind == GPUL_MEM_DEVICE || share->kind == GPUL_MEM_DEVICE_IPC ||
			 share->flags & WIRE_HAS_EVENT;
	bool on_gpu = share->kind == GPUL_MEM_DEVICE || share->kind == GPUL_MEM_DEVICE_IPC;

	if (memcmp(hello->boot_id, share->boot_id, 16) != 0 && share->via != WIRE_VIA_FABRIC)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the owner of the memory and the attaching process run on different machines (their boot ids "
				 "differ)");
	if (by_driver && strcmp(hello->driver, share->driver) != 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "the owner of the memory uses the %s driver, but the attaching process uses the %s driver: %s "
				 "memory needs the same driver in both (set GPULOAD_DRIVER)",
				 share->driver, hello->driver, kind);
	if (!(hello->can >> share->kind & 1) || (share->via == WIRE_VIA_FABRIC && !(hello->can & WIRE_CAN_FABRIC)))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the driver of the attaching process cannot map %s memory", kind);
	if (share->flags & WIRE_HAS_EVENT && !(hello->can & WIRE_CAN_EVENT))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the driver of the attaching process does not support interprocess events");
	if (on_gpu && share->via != WIRE_VIA_FABRIC && gpul_ipc_find_gpu(hello->gpu, hello->n_gpus, share->gpu) < 0)
		return report_missing_gpu(share->gpu, err);
	return GPUL_OK;
}
