/* cpu_internal.h — chooses the CPU to which a proxy's thread is pinned. */
#ifndef GPULOAD_PROXY_CPU_INTERNAL_H
#define GPULOAD_PROXY_CPU_INTERNAL_H

#include <sched.h>
#include <stdbool.h>

#include "proxy/proxy.h"

/** Choose a CPU and count the proxy that will run on it.
 *
 * @pin     how to choose
 * @number  number of the node or of the CPU, as pin requires; for AUTO the node of the memory, -1: not known
 * @cpu     the CPU, reserved until gpul_cpu_unreserve(); -1: do not pin
 * Errors  GPUL_EINVAL no such node, none of its CPUs is allowed for the caller, or no such CPU number
 * Source  Linux Documentation/ABI/stable/sysfs-devices-node: cpulist */
gpul_status gpul_cpu_reserve(gpul_proxy_pin pin, int number, int *cpu, gpul_error *err);
void gpul_cpu_unreserve(int cpu);  /* -1 is fine */

/* Parse a CPU list such as "0-3,8\n".  Returns false on a syntax error.  Numbers that do not fit into a set are skipped. */
bool gpul_cpu_parse_list(const char *text, cpu_set_t *out);

/* Choose the CPU in may, other than caller, on which the fewest proxies run.  Among equals it prefers a CPU that is not in
 * beside (those of the caller's core), then the highest number, because interrupts tend to go to low ones.  -1: none. */
int gpul_cpu_choose(const cpu_set_t *may, const cpu_set_t *beside, const unsigned *n_proxies, int caller);

#endif
