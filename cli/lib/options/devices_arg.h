/* devices_arg.h — --driver and --devices: parses which driver and which of its GPUs to use, in which order; also --backend and
 * --provider of the network.
 *
 *     --driver soft --devices 1,0 ── devices_arg_parse ─> choice, ordinal[]
 *                                      ── devices_arg_open ──> drv, context[]
 *
 * Parsing and opening are separate, because a process must not fork after it has opened a driver: a command that starts other processes
 * parses first, then forks, and each process opens the devices that it uses. */
#ifndef GPULOAD_CLI_LIB_OPTIONS_DEVICES_ARG_H
#define GPULOAD_CLI_LIB_OPTIONS_DEVICES_ARG_H

#include "core/error.h"
#include "driver/context.h"
#include "memalloc/mem.h"

#define DEVICES_LIST_OPT { "devices", "LIST", "GPUs that can access the memory, such as 0,1 (default: 0)", NULL }

struct devices_arg {
	gpul_driver_choice choice;
	int ordinal[GPUL_MEM_MAX_DEVICES];          /* in the given order; ordinal[0] becomes the current device */
	unsigned n;                                 /* at least 1 */
	const gpul_driver *drv;                     /* NULL before devices_arg_open() */
	gpul_context context[GPUL_MEM_MAX_DEVICES]; /* one for each device; context[0] is current */
};

/** Parse the two options; opens no driver.
 *
 * @driver   "auto", "nvidia" or "soft"; NULL: auto
 * @devices  ordinals separated by commas, "0,1"; NULL: "0"
 * @out      owned by the caller: devices_arg_close(); zeroed on failure
 * Errors  GPUL_EINVAL unknown driver, malformed list, a device listed twice, more than GPUL_MEM_MAX_DEVICES devices */
gpul_status devices_arg_parse(const char *driver, const char *devices, struct devices_arg *out, gpul_error *err);

/** Open the driver and a context of each device; the context of the first becomes current on this thread.
 *
 * A process that uses only some of the devices sets n and ordinal[] before the call.
 *
 * @d  filled by devices_arg_parse(); on failure everything is closed again
 * Errors  as gpul_driver_open() and gpul_context_open()
 * Threads any thread; devices_arg_close() must be called on the same thread
 * Source  CUDA Driver API, Primary Context Management */
gpul_status devices_arg_open(struct devices_arg *d, gpul_error *err);
void devices_arg_close(struct devices_arg *d); /* accepts a *d of zeros; cannot fail */

/** Parse --backend and --provider of the network; a provider selects libfabric.
 *
 * @backend   "auto", "verbs" or "libfabric"; NULL: not given
 * @provider  NULL: not given
 * @out       as in gpul_rdma_desc; NULL: automatic
 * Errors  GPUL_EINVAL */
gpul_status devices_arg_backend(const char *backend, const char *provider, const char **out, gpul_error *err);

#endif
