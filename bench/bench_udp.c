/* bench_udp.c — plain UDP with the system calls of reliable-udp, without retransmissions: what a reliable transport adds to the kernel's work.
 *
 *     bench_udp PORT                              receive until the sender ends
 *     bench_udp HOST PORT DATAGRAM_BYTES SECONDS  send, and print the rate of the payload
 *
 * Both ends use the headers' size, the batches (UDP_SEGMENT) and the buffers (recvmmsg, UDP_GRO) of rdma/udp.  The receiver copies each payload to its place,
 * and sends how many datagrams have come, so that the sender never has more than WINDOW under way.  A datagram that is lost ends the measurement. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"

enum { LINUX_UDP_SEGMENT = 103, LINUX_UDP_GRO = 104, HEADER = 64, SEGMENTS = 63, BATCH_BYTES = 64000, BUFFERS = 8, BUFFER_BYTES = 1 << 16 };
enum { WINDOW = 2048, COUNT_EVERY = 64, MEMORY = 4 << 20, LOST_MS = 2000, SOCKET_BYTES = 8 << 20 };

static unsigned char memory[MEMORY], buffers[BUFFERS][BUFFER_BYTES];

static void must(int result, const char *call)
{
	if (result >= 0)
		return;
	fprintf(stderr, "bench_udp: %s: %s\n", call, strerror(errno));
	exit(1);
}

static int open_socket(void)
{
	const int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = SOCKET_BYTES;

	must(fd, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	return fd;
}

/* The place of a datagram's payload, which wraps around at the end of the memory. */
static unsigned char *place_of(uint64_t number, uint32_t payload)
{
	return memory + number % (MEMORY / payload) * payload;
}

/* ---- receive --------------------------------------------------------------------------------------------------------- */

/* The size of the datagrams that the kernel has joined to one. */
static uint32_t segment_bytes(struct msghdr *m, uint32_t n_bytes)
{
	int size = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == LINUX_UDP_GRO)
			memcpy(&size, CMSG_DATA(c), sizeof size);
	return size > 0 ? (uint32_t)size : n_bytes;
}

/* Copy the payloads of a buffer; returns their number, or UINT32_MAX at the end. */
static uint32_t copy_payloads(const unsigned char *from, uint32_t n_bytes, uint32_t segment)
{
	uint32_t n = 0;
	uint64_t number;

	for (uint32_t at = 0; at + HEADER <= n_bytes; at += segment, n++) {
		const uint32_t bytes = n_bytes - at < segment ? n_bytes - at : segment;

		memcpy(&number, from + at, sizeof number);
		if (number == UINT64_MAX)
			return UINT32_MAX;
		if (bytes > HEADER)
			memcpy(place_of(number, bytes - HEADER), from + at + HEADER, bytes - HEADER);
	}
	return n;
}

static int receive(uint16_t port)
{
	const struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(port) };
	_Alignas(struct cmsghdr) static unsigned char control[BUFFERS][CMSG_SPACE(sizeof(int))];
	const int fd = open_socket(), on = 1;
	uint64_t n_received = 0, n_told = 0;
	struct mmsghdr messages[BUFFERS];
	struct iovec pieces[BUFFERS];
	struct sockaddr_in peer;

	must(bind(fd, (const struct sockaddr *)&own, sizeof own), "bind");
	must(setsockopt(fd, IPPROTO_UDP, LINUX_UDP_GRO, &on, sizeof on), "UDP_GRO");
	for (;;) {
		int n;

		for (unsigned i = 0; i < BUFFERS; i++) {
			pieces[i] = (struct iovec){ .iov_base = buffers[i], .iov_len = BUFFER_BYTES };
			messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &peer,
								     .msg_namelen = sizeof peer,
								     .msg_iov = &pieces[i],
								     .msg_iovlen = 1,
								     .msg_control = control[i],
								     .msg_controllen = sizeof control[i] } };
		}
		n = recvmmsg(fd, messages, BUFFERS, MSG_WAITFORONE, NULL);
		must(n, "recvmmsg");
		for (int i = 0; i < n; i++) {
			const uint32_t got = copy_payloads(buffers[i], messages[i].msg_len,
							   segment_bytes(&messages[i].msg_hdr, messages[i].msg_len));

			if (got == UINT32_MAX)
				return 0;
			n_received += got;
		}
		if (n_received - n_told >= COUNT_EVERY) {
			n_told = n_received;
			must((int)sendto(fd, &n_told, sizeof n_told, 0, (const struct sockaddr *)&peer, sizeof peer), "sendto");
		}
	}
}

/* ---- send --------------------------------------------------------------------------------------------------------------- */

/* Send n datagrams with one call. */
static void send_batch(int fd, uint64_t first, uint32_t n, uint16_t segment)
{
	static unsigned char headers[SEGMENTS][HEADER];
	_Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof segment)] = { 0 };
	const struct cmsghdr head = { .cmsg_len = CMSG_LEN(sizeof segment), .cmsg_level = IPPROTO_UDP, .cmsg_type = LINUX_UDP_SEGMENT };
	struct iovec pieces[2 * SEGMENTS];
	const struct msghdr m = { .msg_iov = pieces, .msg_iovlen = 2 * n, .msg_control = control, .msg_controllen = sizeof control };

	memcpy(control, &head, sizeof head);
	memcpy(control + CMSG_LEN(0), &segment, sizeof segment);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t number = first + i;
		const uint32_t payload = segment - HEADER;

		memcpy(headers[i], &number, sizeof number);
		pieces[2 * i] = (struct iovec){ .iov_base = headers[i], .iov_len = HEADER };
		pieces[2 * i + 1] = (struct iovec){ .iov_base = place_of(number, payload), .iov_len = payload };
	}
	must((int)sendmsg(fd, &m, 0), "sendmsg");
}

/* Take the receiver's counts, and wait for one if the window is full. */
static uint64_t take_counts(int fd, uint64_t n_sent, uint64_t n_arrived, uint32_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t count;

	for (;;) {
		while (recv(fd, &count, sizeof count, MSG_DONTWAIT) == sizeof count)
			n_arrived = count > n_arrived ? count : n_arrived;
		if (n_sent + n - n_arrived <= WINDOW)
			return n_arrived;
		if (poll(&p, 1, LOST_MS) == 0) {
			fprintf(stderr, "bench_udp: datagrams were lost: of %llu, %llu have arrived\n", (unsigned long long)n_sent,
				(unsigned long long)n_arrived);
			exit(1);
		}
	}
}

static int send_for(const char *host, uint16_t port, uint16_t segment, double seconds)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(port) };
	const uint32_t most = BATCH_BYTES / segment, n = most < SEGMENTS ? most : SEGMENTS;
	unsigned char last[HEADER];
	const int fd = open_socket();
	uint64_t n_sent = 0, n_arrived = 0, begin_ns, ns;

	memset(last, 0xff, sizeof last);
	if (inet_pton(AF_INET, host, &peer.sin_addr) != 1) {
		fprintf(stderr, "bench_udp: '%s' is not an IPv4 address\n", host);
		return 2;
	}
	must(connect(fd, (const struct sockaddr *)&peer, sizeof peer), "connect");
	begin_ns = gpul_clock_ns();
	do {
		n_arrived = take_counts(fd, n_sent, n_arrived, n);
		send_batch(fd, n_sent, n, segment);
		n_sent += n;
		ns = gpul_clock_ns() - begin_ns;
	} while ((double)ns < seconds * 1e9);
	printf("%.3g Gbit/s, datagrams of %u bytes with %u of payload\n", (double)n_arrived * (segment - HEADER) * 8 / (double)ns, segment,
	       segment - HEADER);
	for (int i = 0; i < 3; i++)
		(void)send(fd, last, sizeof last, 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return receive((uint16_t)atoi(argv[1]));
	if (argc == 5 && atoi(argv[3]) > HEADER && atoi(argv[3]) <= BATCH_BYTES)
		return send_for(argv[1], (uint16_t)atoi(argv[2]), (uint16_t)atoi(argv[3]), atof(argv[4]));
	fprintf(stderr, "usage: bench_udp PORT | bench_udp HOST PORT DATAGRAM_BYTES SECONDS\n");
	return 2;
}
