/* rdma_devices.c — defines the command gpuload rdma devices and its options. */
#include "cli/rdma/devices/rdma_devices.h"

enum { DEVICES_ALL, DEVICES_DRIVER, DEVICES_SYSFS, DEVICES_JSON };

/* clang-format off */
static const struct cli_opt devices_opts[] = {
	[DEVICES_ALL] = { "all", NULL, "print all attributes, GIDs and reasons", NULL },
	[DEVICES_DRIVER] = CLI_DRIVER_OPT,
	[DEVICES_SYSFS] = { "sysfs", "DIR",
		"read the NICs and GPUs from a copy of the /sys of another machine", CLI_FILES },
	[DEVICES_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char devices_details[] = "The first table has a line for each port of each RDMA NIC. GID is the address that a connection\n"
				      "uses: its index, and the address. --all prints the whole GID table.\n"
				      "\n"
				      "The second table has a line for each provider of libfabric that messages can go over, with\n"
				      "--provider NAME; --all prints every entry of fi_getinfo(). Remote data is the number of bytes\n"
				      "that a write can deliver to the peer's completion queue: at least 4 are needed.\n"
				      "\n"
				      "The last table shows how near each NIC is to each GPU, and '*' at the NIC that is used for a\n"
				      "GPU. The nearest NIC with an active port is used; of several equal ones, each GPU gets another.\n"
				      "\n"
				      "    PIX   behind one PCIe switch              NODE  on the same NUMA node\n"
				      "    PXB   behind several PCIe switches        SYS   on another NUMA node\n"
				      "    PHB   at the same PCIe host bridge        virtual, unknown  no PCI device\n";

static int cmd_devices(const struct cli_args *args, gpul_error *err)
{
	struct rdma_devices d = { .recorded = cli_value(args, DEVICES_SYSFS) };
	const char *driver = cli_value(args, DEVICES_DRIVER);
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	gpul_status st;

	if (args->n_operands) {
		gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'", args->operands[0]);
		return CLI_USAGE;
	}
	if (driver && !gpul_driver_choice_parse(driver, &choice)) {
		gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", driver);
		return CLI_USAGE;
	}
	st = rdma_devices_collect(&d, choice, err);
	if (!st && cli_value(args, DEVICES_JSON)) {
		struct json j = { 0 };

		rdma_devices_json(&j, &d);
		st = json_print(&j, err);
	} else if (!st) {
		st = rdma_devices_print(&d, cli_value(args, DEVICES_ALL) != NULL, err);
	}
	rdma_devices_free(&d);
	return cli_exit_code(st);
}

/* clang-format off */
const struct cli_cmd cli_rdma_devices = {
	"rdma devices", "", "list the RDMA NICs, libfabric's providers, and how near each NIC is to each GPU",
	devices_details, devices_opts, cmd_devices, NULL, NULL,
};
/* clang-format on */
