/* cpu.c — chooses the CPU to which a proxy's thread is pinned, from the node's CPU list and the caller's affinity. */
#include "proxy/proxy_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_proxies[CPU_SETSIZE]; /* for each CPU, the number of proxies of this process that are pinned to it; protected by lock */

/* Parse a number and advance *text past it.  Returns false if there is no digit. */
static bool parse_number(const char **text, unsigned long *out)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*out = strtoul(*text, &end, 10);
	*text = end;
	return true;
}

bool gpul_cpu_parse_list(const char *text, cpu_set_t *out)
{
	unsigned long from, to;

	CPU_ZERO(out);
	for (; *text && *text != '\n'; text += *text == ',') {
		if (!parse_number(&text, &from))
			return false;
		to = from;
		if (*text == '-' && (text++, !parse_number(&text, &to)))
			return false;
		if (*text && *text != ',' && *text != '\n')
			return false;
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, out);
	}
	return true;
}

static bool read_cpu_list(const char *path, cpu_set_t *out)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return gpul_cpu_parse_list(text, out);
}

int gpul_cpu_choose(const cpu_set_t *may, const cpu_set_t *beside, const unsigned *proxies, int caller)
{
	unsigned least = ~0u;
	int best = -1;

	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, may) || (int)cpu == caller)
			continue;
		const unsigned cost = 2 * proxies[cpu] + (CPU_ISSET(cpu, beside) ? 1 : 0);

		if (cost <= least) {
			least = cost;
			best = (int)cpu;
		}
	}
	return best;
}

/* Find the CPUs of a node that this thread is allowed to use. */
static gpul_status cpus_of_node(int node, cpu_set_t *out, gpul_error *err)
{
	char path[64];
	cpu_set_t of_node, allowed;
	int failed = pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed);

	if (failed)
		return gpul_fail(err, GPUL_ESYS, failed, "sched_getaffinity: %s", strerror(failed));
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
	if (read_cpu_list(path, &of_node))
		CPU_AND(out, &of_node, &allowed);
	else if (node == 0) /* a system without NUMA or without /sys has one node */
		*out = allowed;
	else
		return gpul_fail(err, GPUL_EINVAL, node, "NUMA node %d does not exist: cannot read %s", node, path);
	if (!CPU_COUNT(out))
		return gpul_fail(err, GPUL_EINVAL, node,
				 "no CPU of NUMA node %d (%s) is allowed for this thread: widen its affinity or cpuset, or "
				 "choose another value of gpul_proxy_pin",
				 node, path);
	return GPUL_OK;
}

static gpul_status reserve_on_node(int node, int *cpu, gpul_error *err)
{
	const int caller = sched_getcpu();
	char path[80];
	cpu_set_t may, beside;
	gpul_status st = cpus_of_node(node, &may, err);

	if (st)
		return st;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", caller);
	if (!read_cpu_list(path, &beside))
		CPU_ZERO(&beside);
	pthread_mutex_lock(&lock);
	*cpu = gpul_cpu_choose(&may, &beside, n_proxies, caller);
	if (*cpu >= 0)
		n_proxies[*cpu]++;
	pthread_mutex_unlock(&lock);
	if (*cpu < 0)
		gpul_log(GPUL_LOG_INFO, "proxy",
			 "this thread runs on CPU %d, the only allowed CPU of node %d: the proxy is not pinned and may "
			 "share that CPU",
			 caller, node);
	else
		gpul_log(GPUL_LOG_DEBUG, "proxy", "the proxy is pinned to CPU %d of NUMA node %d", *cpu, node);
	return GPUL_OK;
}

/* The number is not compared with the caller's affinity mask, because the cpuset may have more CPUs; pthread_create() fails if the
 * system does not allow the CPU. */
static gpul_status reserve_number(int number, int *cpu, gpul_error *err)
{
	if (number < 0 || number >= CPU_SETSIZE)
		return gpul_fail(err, GPUL_EINVAL, number, "CPU %d does not exist: expected 0 to %d", number, CPU_SETSIZE - 1);
	if (number == sched_getcpu())
		gpul_log(GPUL_LOG_INFO, "proxy", "the proxy is pinned to CPU %d, on which the calling thread runs: both may share that CPU",
			 number);
	pthread_mutex_lock(&lock);
	n_proxies[number]++;
	pthread_mutex_unlock(&lock);
	*cpu = number;
	return GPUL_OK;
}

gpul_status gpul_cpu_reserve(gpul_proxy_pin pin, int number, int *cpu, gpul_error *err)
{
	gpul_error ignored = { 0 };

	*cpu = -1;
	switch (pin) {
	case GPUL_PROXY_PIN_NONE:
		return GPUL_OK;
	case GPUL_PROXY_PIN_CPU:
		return reserve_number(number, cpu, err);
	case GPUL_PROXY_PIN_NODE:
		return reserve_on_node(number, cpu, err);
	case GPUL_PROXY_PIN_AUTO:
		if (number >= 0 && reserve_on_node(number, cpu, &ignored))
			gpul_log(GPUL_LOG_INFO, "proxy", "the proxy is not pinned to a CPU: %s", ignored.text);
		return GPUL_OK;
	}
	return gpul_fail(err, GPUL_EINVAL, (int)pin, "unknown CPU pinning %d: expected a value of gpul_proxy_pin", (int)pin);
}

void gpul_cpu_unreserve(int cpu)
{
	if (cpu < 0)
		return;
	pthread_mutex_lock(&lock);
	n_proxies[cpu]--;
	pthread_mutex_unlock(&lock);
}
