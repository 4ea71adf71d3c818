/* support.c — helpers for the tests of rdma/oob. */
#include "tests/rdma/oob/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"

gpul_rdma_hello good_hello(void)
{
	gpul_rdma_hello h = { .version = GPUL_RDMA_WIRE_VERSION,
			      .n_qps = 4,
			      .depth = 256,
			      .segment_bytes = 1 << 20,
			      .stripe_bytes = 4096,
			      .striping = 1,
			      .qp_type = 1,
			      .flags = 3,
			      .lease_ms = 5000,
			      .notice_ms = 7500,
			      .pid = 4711,
			      .description_bytes = 5,
			      .slots = { 4096, 77, GPUL_RDMA_SLOTS * sizeof(gpul_rdma_slot) },
			      .backend = "verbs",
			      .host = "n1" };

	memcpy(h.description, "\0\1\xff q", 5);
	return h;
}

gpul_rdma_failure good_failure(void)
{
	return (gpul_rdma_failure){ .status = GPUL_EVERBS,
				    .native = 12,
				    .vendor = 0x81,
				    .after_ns = 7520000000,
				    .call = "completion",
				    .what = "IBV_WC_RETRY_EXC_ERR",
				    .peer = "10.9.0.1:1",
				    .advice = "check" };
}

gpul_rdma_address loopback(void)
{
	return (gpul_rdma_address){ .host = "127.0.0.1" };
}

gpul_rdma_address unix_path(char path[64])
{
	gpul_rdma_address a = { 0 };
	char folder[] = "/tmp/gpuload-oob-XXXXXX";

	assert_non_null(mkdtemp(folder));
	snprintf(path, 64, "%s/s", folder);
	snprintf(a.path, sizeof a.path, "%s", path);
	return a;
}

static gpul_rdma_channel *channel_of(int fd)
{
	gpul_rdma_channel *c = NULL;
	gpul_error err = { 0 };

	if (gpul_rdma_channel_create(fd, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

void make_pair(gpul_rdma_channel *ends[2])
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	ends[0] = channel_of(fds[0]);
	ends[1] = channel_of(fds[1]);
}

gpul_rdma_channel *make_half(int *raw)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*raw = fds[1];
	return channel_of(fds[0]);
}

int connect_raw(unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

void reset_socket(int fd)
{
	struct linger now = { .l_onoff = 1 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
	close(fd);
}

size_t frame_bytes(gpul_rdma_frame_type type, unsigned char out[GPUL_RDMA_FRAME_BYTES])
{
	gpul_rdma_frame f = { .type = type };

	if (type == GPUL_RDMA_HELLO || type == GPUL_RDMA_WELCOME)
		f.hello = good_hello();
	else if (type == GPUL_RDMA_BYE)
		f.totals = (gpul_rdma_totals){ .received = 0x01020304, .sent = UINT32_MAX };
	else
		f.failure = good_failure();
	return gpul_rdma_frame_encode(&f, out);
}

void send_raw(int fd, const void *bytes, size_t n_bytes)
{
	assert_int_equal(send(fd, bytes, n_bytes, MSG_NOSIGNAL), n_bytes);
}

void send_frame(int fd, gpul_rdma_frame_type type)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];

	send_raw(fd, bytes, frame_bytes(type, bytes));
}

uint64_t in_a_minute(void)
{
	return gpul_clock_ns() + 60000000000;
}

void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}
