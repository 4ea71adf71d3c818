/* several.c — jobs over several simulated hosts, on one machine. */
#include "tests/comm/bootstrap/hosts/several.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/job_internal.h"

gpul_comm_job several_job(int rank, int size)
{
	static char address[GPUL_COMM_ADDRESS_BYTES]; /* all jobs use the same address, because its port stays reserved */
	gpul_comm_job job = ranks_job(rank, size);

	if (!address[0])
		assert_int_equal(gpul_comm_reserve_address("127.0.0.1", address, NULL), GPUL_OK);
	memcpy(job.address, address, sizeof address);
	strcpy(job.secret, SEVERAL_SECRET);
	return job;
}

gpul_comm_job several_of(const gpul_comm_job *job, int rank, const char *hosts)
{
	gpul_comm_job other = ranks_of(job, rank);

	other.host[0] = hosts[rank];
	other.host[1] = '\0';
	return other;
}

void several_as_threads(const char *hosts, rank_body *body, void *arg, struct rank_end *ends)
{
	gpul_comm_job jobs[GPUL_COMM_MAX_RANKS];
	const int size = (int)strlen(hosts);
	const gpul_comm_job job = several_job(0, size);

	for (int r = 0; r < size; r++)
		jobs[r] = several_of(&job, r, hosts);
	ranks_run(jobs, size, body, arg, ends);
}

int several_connect(const gpul_comm_job *job)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(strrchr(job->address, ':') + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
			return fd;
		close(fd);
		usleep(1000);
	}
}
