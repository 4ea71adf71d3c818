/* requests.c — the table of requests, and the plan of a grouped receive. */
#include "nccl/net/requests.h"

gpul_net_request *gpul_net_request_take(gpul_net_requests *table, void *end, unsigned n, bool together)
{
	for (unsigned i = 0; i < GPUL_NET_REQUESTS; i++) {
		gpul_net_request *r = &table->all[(table->next + i) % GPUL_NET_REQUESTS];

		if (r->end)
			continue;
		*r = (gpul_net_request){ .end = end, .n = n, .together = together };
		table->next = (unsigned)(r - table->all) + 1;
		return r;
	}
	return NULL;
}

void gpul_net_request_free(gpul_net_request *r)
{
	r->end = NULL;
}

unsigned gpul_net_request_parts(const gpul_net_request *r)
{
	return r->together ? 1 : r->n;
}

bool gpul_net_request_ended(const gpul_net_request *r)
{
	return r->n_ended == gpul_net_request_parts(r);
}

bool gpul_net_fits_together(const size_t *n_bytes, const int *tags, unsigned n, size_t segment_bytes)
{
	if (n == 1)
		return true;
	for (unsigned i = 0; i < n; i++) {
		if (n_bytes[i] > segment_bytes)
			return false;
		for (unsigned k = 0; k < i; k++)
			if (tags[k] == tags[i])
				return false;
	}
	return true;
}
