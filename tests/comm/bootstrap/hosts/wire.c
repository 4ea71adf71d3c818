/* wire.c — a wire between two network namespaces that loses, delays and reorders packets.  Not every kernel has tc-netem(8).
 *
 *     wire NAMESPACE-A NAMESPACE-B [SEED]
 *
 *     namespace a: tap device "wire" ──read── lost? ─ delayed? ──write── tap device "wire" of namespace b, and the same way back
 *
 * The namespaces are those of ip-netns(8).  The program prints "ready", then reads commands from standard input, prints "set" after
 * each, and ends at the end of the input.  "a LOSS DELAY REORDER": of the packets that host a sends, LOSS % are lost; the others arrive
 * DELAY ms later, but REORDER % of them immediately.  "spare PORT" exempts the packets of one TCP port, over IPv4. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"

enum { PACKET_BYTES = 2048, N_PACKETS = 8192, BURST = 64 };

struct packet {
	uint64_t due_ns;
	size_t n_bytes;
	unsigned char bytes[PACKET_BYTES];
};

/* One direction: the packets that a host sends. */
struct side {
	int tap;
	double loss, reorder; /* probabilities, 0 to 1 */
	uint64_t delay_ns;
	struct packet *queue; /* ring of N_PACKETS, the oldest at tail */
	uint32_t head, tail;
};

static double chance(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 33) / (double)(1u << 31);
}

/* Open the tap device of a namespace; this process returns to its own namespace. */
static int open_tap(const char *name, int home)
{
	struct ifreq request = { .ifr_name = "wire", .ifr_flags = IFF_TAP | IFF_NO_PI };
	char path[128];
	int space, tap;

	(void)snprintf(path, sizeof path, "/run/netns/%s", name);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET)) {
		(void)fprintf(stderr, "wire: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	(void)close(space);
	tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (tap < 0 || ioctl(tap, TUNSETIFF, &request)) {
		(void)fprintf(stderr, "wire: /dev/net/tun: %s\n", strerror(errno));
		exit(1);
	}
	if (setns(home, CLONE_NEWNET))
		exit(1);
	return tap;
}

static unsigned spared_port; /* port from "spare PORT"; 0: none */

static unsigned be16(const unsigned char *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* True for a packet of the exempted TCP port.  Source: IEEE 802.3 (Ethernet), RFC 791 (IPv4), RFC 9293 (TCP). */
static bool is_spared(const unsigned char *packet, size_t n_bytes)
{
	const unsigned char *v4 = packet + 14, *tcp;

	if (!spared_port || n_bytes < 14 + 20 || be16(packet + 12) != 0x0800 || v4[9] != 6)
		return false;
	tcp = v4 + (size_t)(v4[0] & 0xf) * 4;
	return tcp + 4 <= packet + n_bytes && (be16(tcp) == spared_port || be16(tcp + 2) == spared_port);
}

/* Forward the packets that a host has sent; packets that do not fit into the queue are lost. */
static void carry_packets(struct side *from, int to, uint64_t *random, uint64_t now)
{
	static unsigned char bytes[PACKET_BYTES];

	for (int i = 0; i < BURST; i++) {
		const ssize_t n = read(from->tap, bytes, sizeof bytes);
		struct packet *p;

		if (n <= 0)
			return;
		if (is_spared(bytes, (size_t)n)) {
			(void)!write(to, bytes, (size_t)n);
			continue;
		}
		if (from->loss > 0 && chance(random) < from->loss)
			continue;
		if (from->delay_ns == 0 || (from->reorder > 0 && chance(random) < from->reorder)) {
			(void)!write(to, bytes, (size_t)n);
			continue;
		}
		if (from->head - from->tail == N_PACKETS)
			continue;
		p = &from->queue[from->head++ % N_PACKETS];
		*p = (struct packet){ .due_ns = now + from->delay_ns, .n_bytes = (size_t)n };
		memcpy(p->bytes, bytes, (size_t)n);
	}
}

/* Deliver the packets whose delay is over; returns the time in ms until the next packet is due, or -1 if the queue is empty. */
static int deliver_packets(struct side *from, int to, uint64_t now)
{
	while (from->head != from->tail) {
		const struct packet *p = &from->queue[from->tail % N_PACKETS];

		if (p->due_ns > now)
			return (int)((p->due_ns - now + 999999) / 1000000);
		(void)!write(to, p->bytes, p->n_bytes);
		from->tail++;
	}
	return -1;
}

static bool read_command(struct side *sides)
{
	char line[128], host;
	double loss, delay_ms, reorder;
	const ssize_t n = read(0, line, sizeof line - 1);

	if (n <= 0)
		return false;
	line[n] = '\0';
	if (sscanf(line, "spare %u", &spared_port) == 1) {
		(void)puts("set");
		(void)fflush(stdout);
		return true;
	}
	if (sscanf(line, "%c %lf %lf %lf", &host, &loss, &delay_ms, &reorder) != 4 || (host != 'a' && host != 'b')) {
		(void)fprintf(stderr, "wire: expected 'a LOSS DELAY REORDER' or 'b ...', not '%s'\n", line);
		return false;
	}
	sides[host - 'a'].loss = loss / 100;
	sides[host - 'a'].delay_ns = (uint64_t)(delay_ms * 1e6);
	sides[host - 'a'].reorder = reorder / 100;
	(void)puts("set");
	(void)fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	struct side sides[2];
	const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	uint64_t random = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: wire NAMESPACE-A NAMESPACE-B [SEED]\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){ .tap = open_tap(argv[1 + i], home), .queue = calloc(N_PACKETS, sizeof *sides[i].queue) };
		if (!sides[i].queue)
			return 1;
	}
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		struct pollfd fds[] = { { .fd = 0, .events = POLLIN },
					{ .fd = sides[0].tap, .events = POLLIN },
					{ .fd = sides[1].tap, .events = POLLIN } };
		const uint64_t now = gpul_clock_ns();
		const int a_ms = deliver_packets(&sides[0], sides[1].tap, now), b_ms = deliver_packets(&sides[1], sides[0].tap, now);

		if (poll(fds, 3, a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms) < 0 && errno != EINTR)
			break;
		if (fds[0].revents && !read_command(sides))
			break;
		for (int i = 0; i < 2; i++)
			if (fds[1 + i].revents)
				carry_packets(&sides[i], sides[!i].tap, &random, gpul_clock_ns());
	}
	for (int i = 0; i < 2; i++)
		free(sides[i].queue);
	return 0;
}
