/* identity.c — finds which ranks share a host, and the name of the host. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gpul_boot_machine(const gpul_comm_job *job, struct boot_machine *out)
{
	FILE *f;

	*out = (struct boot_machine){ 0 };
	if (job->host[0]) {
		memcpy(out->name, job->host, sizeof out->name - 1);
		return;
	}
	if (gethostname(out->name, sizeof out->name - 1) || !out->name[0])
		strcpy(out->name, "?");
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fgets(out->id, sizeof out->id, f))
		out->id[strcspn(out->id, "\n")] = '\0';
	if (!out->id[0])
		strcpy(out->id, "?"); /* a container without /proc; an empty id would mean that only the names are compared */
	if (f)
		fclose(f);
}

bool gpul_boot_same_machine(const struct boot_machine *a, const struct boot_machine *b)
{
	/* a Unix socket connects both ranks, so they are on one machine, although containers may have different host names */
	if (a->id[0] && b->id[0])
		return true;
	return !a->id[0] && !b->id[0] && strcmp(a->name, b->name) == 0;
}

void gpul_boot_number_hosts(gpul_boot *b, const struct boot_machine machines[])
{
	(void)pthread_mutex_lock(&b->lock);
	for (int r = 0; r < b->job.size; r++) {
		int first = 0;

		while (first < r && !gpul_boot_same_machine(&machines[first], &machines[r]))
			first++;
		b->host[r] = first < r ? b->host[first] : b->n_hosts++;
		memcpy(b->host_name[b->host[r]], machines[first].name, GPUL_COMM_HOST_BYTES);
		atomic_store(&b->roster->entry[r].host, b->host[r]);
	}
	memcpy(b->roster->host_name, b->host_name, sizeof b->host_name);
	(void)pthread_mutex_unlock(&b->lock);
}

/* Other processes can write to the roster, so check the numbers and terminate the texts. */
gpul_status gpul_boot_take_hosts(gpul_boot *b, gpul_error *err)
{
	bool malformed = false;

	(void)pthread_mutex_lock(&b->lock);
	memcpy(b->host_name, b->roster->host_name, sizeof b->host_name);
	b->n_hosts = 0;
	for (int r = 0; r < b->job.size; r++) {
		const int host = atomic_load(&b->roster->entry[r].host);

		malformed |= host < 0 || host > b->n_hosts;
		b->host[r] = malformed ? 0 : host;
		b->n_hosts += !malformed && host == b->n_hosts;
		b->host_name[r][GPUL_COMM_HOST_BYTES - 1] = '\0';
	}
	(void)pthread_mutex_unlock(&b->lock);
	return malformed ? gpul_boot_fail_job(b, 0, GPUL_EFORMAT, 0, "rank 0 sent a malformed list of hosts", err) : GPUL_OK;
}

void gpul_boot_use_hosts(gpul_boot *b, const struct boot_hosts *hosts)
{
	const int me = hosts->host[b->job.rank];

	(void)pthread_mutex_lock(&b->lock);
	b->local = 0;
	b->n_hosts = 0;
	for (int r = b->job.size - 1; r >= 0; r--) {
		const int host = hosts->host[r];

		b->host[r] = host;
		b->n_hosts = host >= b->n_hosts ? host + 1 : b->n_hosts;
		memcpy(b->host_name[host], hosts->name[host], GPUL_COMM_HOST_BYTES);
		b->pid[r] = hosts->pid[r];
		b->reach[r] = 0;
		if (host != me)
			continue;
		b->local |= 1u << r;
		b->reach[r] = 1u << r;
		b->leader = r; /* the loop counts down, so the lowest rank of this host remains */
	}
	/* A socket to the leader of another host reaches all ranks of that host. */
	for (int host = 0, leader = 0; host < b->n_hosts; host++) {
		for (leader = 0; hosts->host[leader] != host;)
			leader++;
		for (int r = leader; host != me && r < b->job.size; r++)
			b->reach[leader] |= hosts->host[r] == host ? 1u << r : 0;
	}
	(void)pthread_mutex_unlock(&b->lock);
}

void gpul_boot_write_hosts(gpul_boot *b)
{
	for (int r = 0; r < b->job.size; r++) {
		struct roster_entry *e = &b->roster->entry[r];

		atomic_store(&e->host, b->host[r]);
		if (r != b->job.rank)
			atomic_store(&e->pid, b->pid[r]);
		if (atomic_load(&e->state) == RANK_ABSENT)
			atomic_store(&e->state, RANK_ARRIVED);
	}
	memcpy(b->roster->host_name, b->host_name, sizeof b->host_name);
}

int gpul_boot_n_hosts(const gpul_boot *b)
{
	return b->n_hosts;
}

int gpul_boot_host(const gpul_boot *b, int rank)
{
	return b->host[rank];
}

const char *gpul_boot_host_name(const gpul_boot *b, int rank)
{
	return b->host_name[b->host[rank]];
}
