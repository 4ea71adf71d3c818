/* devices_arg.h — --driver and --devices: which driver, and which of its GPUs, in which order.
 *
 *     --driver soft --devices 1,0 ── devices_arg_parse ─> choice, ordinal[]
 *                                      ── devices_arg_open ──> drv, context[]
 *
 * Two steps, because a process may only fork before a driver is opened: whoever starts others
 * parses, forks, and opens in each process what that one uses. */
#ifndef GPULOAD_CLI_LIB_DEVICES_ARG_H
#define GPULOAD_CLI_LIB_DEVICES_ARG_H

#include "core/error.h"
#include "driver/context.h"
#include "memalloc/mem.h"

#define DEVICES_LIST_OPT { "devices", "LIST", "GPUs that get access, such as 0,1 (default: 0)", NULL }

struct devices_arg {
	gpul_driver_choice choice;
	int ordinal[GPUL_MEM_MAX_DEVICES];  /* as asked for; the first counts most */
	unsigned n;                         /* at least 1 */
	const gpul_driver *drv;             /* NULL before devices_arg_open() */
	gpul_context context[GPUL_MEM_MAX_DEVICES];  /* of each; the first is current */
};

/** Read the two options; no driver is looked at.
 *
 * @driver   "auto", "nvidia" or "soft"; NULL: auto
 * @devices  ordinals with commas between, "0,1"; NULL: "0"
 * @out      filled: devices_arg_close(); zeroed on failure
 * Errors  GPUL_EINVAL no such driver, not such a list, a device twice, more than
 *         GPUL_MEM_MAX_DEVICES
 * Threads any thread may call
 * Source  - */
gpul_status devices_arg_parse(const char *driver, const char *devices, struct devices_arg *out,
			      gpul_error *err);

/** Open the driver and a context of each device; that of the first is current on this thread.
 *
 * A process that is to use some of the devices sets n and ordinal[] before.
 *
 * @d  parsed; on failure nothing is left open
 * Errors  as gpul_driver_open() and gpul_context_open()
 * Threads any thread; the same one until devices_arg_close()
 * Source  CUDA Driver API, Primary Context Management */
gpul_status devices_arg_open(struct devices_arg *d, gpul_error *err);
void devices_arg_close(struct devices_arg *d);  /* a zeroed one is fine; cannot fail */

#endif
