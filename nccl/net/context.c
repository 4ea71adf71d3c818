/* context.c — contexts, and the list of devices of the process. */
#include "nccl/net/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct gpul_net_context {
	atomic_uint held;
	int traffic_class;
	const gpul_net_process *process;
	pthread_mutex_t lock; /* protects `opened` */
	gpul_rdma *opened[GPUL_NET_MAX_DEVICES];
};

gpul_status gpul_net_process_get(const gpul_net_process **out, gpul_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static gpul_net_process process;
	static bool known;
	gpul_status st = GPUL_OK;

	pthread_mutex_lock(&lock);
	if (!known) {
		st = gpul_net_options_read(&process.options, err);
		st = st ? st : gpul_net_devices_read(&process.options, &process.devices, err);
		known = !st;
	}
	pthread_mutex_unlock(&lock);
	if (!st)
		*out = &process;
	return st;
}

gpul_status gpul_net_context_create(int traffic_class, gpul_net_context **out, gpul_error *err)
{
	const gpul_net_process *process;
	const gpul_status st = gpul_net_process_get(&process, err);
	gpul_net_context *c;

	if (st)
		return st;
	c = calloc(1, sizeof *c);
	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the context of the network plug-in");
	c->held = 1;
	c->traffic_class = traffic_class;
	c->process = process;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return GPUL_OK;
}

void gpul_net_context_hold(gpul_net_context *c)
{
	atomic_fetch_add(&c->held, 1);
}

void gpul_net_context_release(gpul_net_context *c)
{
	if (!c || atomic_fetch_sub(&c->held, 1) != 1)
		return;
	for (unsigned i = 0; i < GPUL_NET_MAX_DEVICES; i++)
		gpul_rdma_close(c->opened[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

gpul_status gpul_net_context_device(gpul_net_context *c, int device, gpul_rdma **out, gpul_error *err)
{
	const gpul_net_devices *all = &c->process->devices;
	gpul_status st = GPUL_OK;
	gpul_rdma_desc desc;

	if (device < 0 || (unsigned)device >= all->n)
		return gpul_fail(err, GPUL_EINVAL, 0, "network device %d does not exist: there are %u, numbered from 0", device, all->n);
	desc = gpul_net_device_desc(&all->at[device], &c->process->options, c->traffic_class);
	pthread_mutex_lock(&c->lock);
	if (!c->opened[device])
		st = gpul_rdma_open(&desc, &c->opened[device], err);
	if (!st)
		*out = c->opened[device];
	pthread_mutex_unlock(&c->lock);
	return st;
}
