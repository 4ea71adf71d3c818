/* cpu_internal.h — which CPU a proxy is pinned to. */
#ifndef GPULOAD_PROXY_CPU_INTERNAL_H
#define GPULOAD_PROXY_CPU_INTERNAL_H

#include <sched.h>
#include <stdbool.h>

#include "proxy/proxy.h"

/** Choose a CPU and note that a proxy has it.
 *
 * @pin     how
 * @number  of the node or the CPU, by pin; for AUTO the node of the memory, -1: not known
 * @cpu     -1: it is not to be pinned; else until gpul_cpu_unreserve()
 * Errors  GPUL_EINVAL no such node, or the caller may use none of its CPUs; no number of a CPU
 * Threads any thread may call
 * Source  Linux Documentation/ABI/stable/sysfs-devices-node: cpulist */
gpul_status gpul_cpu_reserve(gpul_proxy_pin pin, int number, int *cpu, gpul_error *err);
void gpul_cpu_unreserve(int cpu);  /* -1 is fine */

/* "0-3,8\n" as a set.  False: no such text; what does not fit into a set is left out. */
bool gpul_cpu_parse_list(const char *text, cpu_set_t *out);

/* One of may but caller, that the fewest proxies have; of equal ones one that is not beside (shares the caller's
 * core), then the highest: interrupts tend to come to the low ones.  -1: none. */
int gpul_cpu_choose(const cpu_set_t *may, const cpu_set_t *beside, const unsigned *n_proxies, int caller);

#endif
