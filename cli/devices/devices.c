/* devices.c — gpuload devices: prints the driver, why it was chosen, and its GPUs. */
#include "cli/devices/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/json/cli_json.h"
#include "core/log.h"
#include "driver/driver.h"

enum { DEVICES_DRIVER, DEVICES_MEMORY, DEVICES_JSON };

/* clang-format off */
static const struct cli_opt devices_opts[] = {
	[DEVICES_DRIVER] = CLI_DRIVER_OPT,
	[DEVICES_MEMORY] = { "memory", NULL,
		"test each kind of memory on each GPU, and whether other processes can map it", NULL },
	[DEVICES_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char devices_details[] = "With --memory each kind of memory is allocated, written and read by CPU and GPU, exported,\n"
				      "and mapped by another process, which also writes and reads it:\n"
				      "\n"
				      "    host-numa    cuMemCreate on a NUMA node     shm         shm_open, registered\n"
				      "    device       cuMemCreate on the GPU         pinned      cuMemHostAlloc\n"
				      "    memfd        a sealed file, registered      device-ipc  cuMemAlloc and cuIpc calls\n"
				      "    fabric       device memory by fabric handle, for other machines on NVLink\n"
				      "\n"
				      "auto is the kind that commands use without --kind. The other process is gpuload-probe, which\n"
				      "is installed with gpuload; GPULOAD_PROBE names another program.\n";

enum { UUID_TEXT_BYTES = 41 };

struct device {
	int ordinal;
	char name[128], pci[32];
	char uuid[UUID_TEXT_BYTES]; /* in the form that CUDA_VISIBLE_DEVICES accepts */
	int major, minor, sms, clock_khz, threads_per_sm, threads_per_block, warp, shared_per_block, l2_bytes;
	size_t memory_bytes;
	const gpul_mem_probe_report *memory; /* report of --memory; else NULL */
};

/* Holds the library's notice "no GPU, because ...; using the software driver", which is printed as the reason. */
struct reason {
	char text[256];
};

static void keep_notice(void *user, gpul_log_level level, const char *module, const char *line)
{
	struct reason *r = user;

	if (level == GPUL_LOG_NOTICE)
		snprintf(r->text, sizeof r->text, "%s", line);
	else
		fprintf(stderr, "%s: %s\n", module, line);
}

static gpul_status open_driver(const char *wanted, const gpul_driver **out, struct reason *why, gpul_error *err)
{
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	const char *env = secure_getenv("GPULOAD_DRIVER");
	gpul_status st;

	if (wanted && !gpul_driver_choice_parse(wanted, &choice))
		return gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", wanted);
	gpul_log_to(keep_notice, why);
	st = gpul_driver_open(choice, out, err);
	gpul_log_to(NULL, NULL);
	if (st || why->text[0])
		return st;
	if (choice != GPUL_DRIVER_AUTO)
		snprintf(why->text, sizeof why->text, "--driver %s", wanted);
	else if (env && *env && strcmp(env, "auto"))
		snprintf(why->text, sizeof why->text, "GPULOAD_DRIVER=%.40s", env);
	else
		snprintf(why->text, sizeof why->text, "it reports a device");
	return GPUL_OK;
}

static gpul_status read_attributes(const gpul_driver *drv, CUdevice dev, struct device *d, gpul_error *err)
{
	const struct {
		int *to;
		CUdevice_attribute which;
	} rows[] = {
		{ &d->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR },
		{ &d->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR },
		{ &d->sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT },
		{ &d->clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE },
		{ &d->threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR },
		{ &d->threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK },
		{ &d->warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE },
		{ &d->shared_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN },
		{ &d->l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE },
	};
	gpul_status st = GPUL_OK;

	for (size_t i = 0; st == GPUL_OK && i < sizeof rows / sizeof *rows; i++)
		st = gpul_cu(drv, err, cuDeviceGetAttribute(rows[i].to, rows[i].which, dev));
	return st;
}

/* Write a UUID as nvidia-smi -L does: "GPU-5f3a91c2-...". */
static void write_uuid(const CUuuid *uuid, char out[UUID_TEXT_BYTES])
{
	int n = snprintf(out, UUID_TEXT_BYTES, "GPU-");

	for (int i = 0; i < 16; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		n += snprintf(out + n, (size_t)(UUID_TEXT_BYTES - n), "%s%02x", dash, (unsigned char)uuid->bytes[i]);
	}
}

static gpul_status read_device(const gpul_driver *drv, int ordinal, struct device *d, gpul_error *err)
{
	CUdevice dev;
	CUuuid uuid = { { 0 } };
	gpul_status st = gpul_cu(drv, err, cuDeviceGet(&dev, ordinal));

	*d = (struct device){ .ordinal = ordinal };
	if (st == GPUL_OK)
		st = gpul_cu(drv, err, cuDeviceGetName(d->name, sizeof d->name, dev));
	if (st == GPUL_OK)
		st = gpul_cu(drv, err, cuDeviceTotalMem(&d->memory_bytes, dev));
	if (st == GPUL_OK)
		st = gpul_cu(drv, err, cuDeviceGetUuid(&uuid, dev));
	if (st == GPUL_OK)
		st = read_attributes(drv, dev, d, err);
	write_uuid(&uuid, d->uuid);
	/* a device without a PCI address is not an error */
	if (st == GPUL_OK && drv->cuDeviceGetPCIBusId(d->pci, sizeof d->pci, dev) != CUDA_SUCCESS)
		d->pci[0] = '\0';
	return st;
}

static void print_device(const struct device *d)
{
	char sm[16], memory[24], clock[24];

	snprintf(sm, sizeof sm, "%d.%d", d->major, d->minor);
	snprintf(memory, sizeof memory, "%.1f GiB", (double)d->memory_bytes / (1u << 30));
	snprintf(clock, sizeof clock, "%d MHz", d->clock_khz / 1000);
	printf("%-3d %-28s %-6s %-10s %-5d %-9s %4d KiB      %s\n", d->ordinal, d->name, sm, memory, d->sms, clock,
	       d->shared_per_block / 1024, d->uuid);
}

static void print_text(const gpul_driver *drv, const struct reason *why, const struct device *d, int n)
{
	printf("driver  %s, CUDA %d.%d, %s\nwhy     %s\n\n", drv->name, drv->version / 1000, drv->version % 1000 / 10,
	       drv->path ? drv->path : "-", why->text);
	printf("%-3s %-28s %-6s %-10s %-5s %-9s %-13s %s\n", "#", "name", "sm", "memory", "SMs", "clock", "shared/block", "UUID");
	for (int i = 0; i < n; i++)
		print_device(&d[i]);
	for (int i = 0; i < n; i++)
		if (d[i].memory)
			devices_memory_print(d[i].ordinal, d[i].memory);
}

static void add_device(struct json *j, const struct device *d)
{
	char sm[16];

	snprintf(sm, sizeof sm, "%d.%d", d->major, d->minor);
	json_begin(j, NULL, '{');
	json_i64(j, "ordinal", d->ordinal);
	json_text(j, "name", d->name);
	json_text(j, "compute_capability", sm);
	json_text(j, "pci", d->pci);
	json_text(j, "uuid", d->uuid);
	json_u64(j, "memory_bytes", d->memory_bytes);
	json_i64(j, "multiprocessors", d->sms);
	json_i64(j, "clock_khz", d->clock_khz);
	json_i64(j, "warp", d->warp);
	json_i64(j, "threads_per_block", d->threads_per_block);
	json_i64(j, "threads_per_multiprocessor", d->threads_per_sm);
	json_i64(j, "shared_bytes_per_block", d->shared_per_block);
	json_i64(j, "l2_bytes", d->l2_bytes);
	if (d->memory)
		devices_memory_json(j, d->memory);
	json_end(j, '}');
}

static gpul_status print_json(const gpul_driver *drv, const struct reason *why, const struct device *d, int n, gpul_error *err)
{
	struct json j = { 0 };
	char version[16];

	snprintf(version, sizeof version, "%d.%d", drv->version / 1000, drv->version % 1000 / 10);
	json_begin(&j, NULL, '{');
	json_begin(&j, "driver", '{');
	json_text(&j, "name", drv->name);
	json_text(&j, "cuda", version);
	json_text(&j, "path", drv->path ? drv->path : "");
	json_text(&j, "why", why->text);
	json_end(&j, '}');
	json_begin(&j, "devices", '[');
	for (int i = 0; i < n; i++)
		add_device(&j, &d[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	return json_print(&j, err);
}

static int cmd_devices(const struct cli_args *args, gpul_error *err)
{
	const gpul_driver *drv;
	struct reason why = { "" };
	struct device *devices = NULL;
	int n = 0;
	gpul_status st = open_driver(cli_value(args, DEVICES_DRIVER), &drv, &why, err);

	if (st == GPUL_OK)
		st = gpul_cu(drv, err, cuDeviceGetCount(&n));
	if (st)
		return cli_exit_code(st);
	devices = calloc((size_t)n + 1, sizeof *devices);
	if (!devices)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %d devices", n);
	for (int i = 0; st == GPUL_OK && i < n; i++)
		st = read_device(drv, i, &devices[i], err);
	for (int i = 0; st == GPUL_OK && i < n && cli_value(args, DEVICES_MEMORY); i++)
		st = devices_memory_probe(drv, i, &devices[i].memory, err);
	if (st == GPUL_OK && cli_value(args, DEVICES_JSON))
		st = print_json(drv, &why, devices, n, err);
	else if (st == GPUL_OK)
		print_text(drv, &why, devices, n);
	free(devices);
	return cli_exit_code(st);
}

const struct cli_cmd cli_devices = {
	"devices", "", "list the GPUs, the driver, and why this driver was chosen", devices_details, devices_opts, cmd_devices, NULL, NULL,
};
