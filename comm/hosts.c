/* hosts.c — the order of the ranks by host. */
#include "comm/comm_internal.h"

void gpul_comm_hosts_order(struct comm_hosts *out, const int *host, int n_ranks, int rank)
{
	bool placed[GPUL_COMM_MAX_PEERS] = { false };
	int n = 0, first_n = 0;
	bool even = true;

	*out = (struct comm_hosts){ .n = 0 };
	for (int r = 0; r < n_ranks; r++) {
		const int begin = n;

		if (placed[r])
			continue;
		for (int other = r; other < n_ranks; other++)
			if (host[other] == host[r]) {
				if (other == rank)
					out->place = (unsigned)n;
				placed[other] = true;
				out->order[n++] = other;
			}
		first_n = r == 0 ? n : first_n;
		even = even && n - begin == first_n;
		out->n++;
	}
	out->ranks_per_host = even ? (unsigned)first_n : 0;
}

void gpul_comm_hosts_find(gpul_comm *c)
{
	int host[GPUL_COMM_MAX_PEERS];

	for (int r = 0; r < c->n_ranks; r++)
		host[r] = c->options.ranks_per_host ? r / (int)c->options.ranks_per_host : gpul_boot_host(c->boot, r);
	gpul_comm_hosts_order(&c->hosts, host, c->n_ranks, c->rank);
}
