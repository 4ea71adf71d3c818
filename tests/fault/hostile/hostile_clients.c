/* hostile_clients.c — scenario: connections that send false data to an owner, and a bystander that must not be affected.
 *
 * A trick connects to the owner and checks the reaction, usually a refusal with a reason.  At the end the
 * owner counts its descriptors, mappings and the reasons that it reported. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/hostile/raw.h"

enum { STEP_MS = 60, N_AT_ONCE = 32, MOST_TRIES = 10 };

struct trick;

struct liar {
	struct fault *f;
	struct wire_hello hello;
	unsigned round;
	int null; /* a descriptor of /dev/null */
	const struct trick *trick;
};

typedef bool trick_play(struct liar *l, int s);

struct trick {
	const char *what;
	trick_play *play;
	unsigned one_in;                                      /* n: play this slow trick in every n-th round only; 0: in every round */
	void (*change)(struct wire_hello *h, unsigned round); /* used by send_false_hello() */
};

static bool expect_refused(struct liar *l, int s)
{
	struct wire_refused why;

	if (!raw_dropped(s, &why))
		return fault_failed(l->f, "the connection was not dropped");
	if (why.status == 0 || why.text[0] == '\0')
		return fault_failed(l->f, "the connection was dropped without a reason");
	return true;
}

static bool expect_dropped(struct liar *l, int s)
{
	struct wire_refused why;

	return raw_dropped(s, &why) || fault_failed(l->f, "the connection was not dropped");
}

/* Send HELLO with one field changed. */
static bool send_false_hello(struct liar *l, int s)
{
	struct wire_hello hello = l->hello;

	l->trick->change(&hello, l->round);
	return raw_send(s, &hello, sizeof hello, NULL, 0) ? expect_refused(l, s) : fault_failed(l->f, "HELLO: %s", strerror(errno));
}

/* Send a valid HELLO and receive the OFFER. */
static bool get_offer(struct liar *l, int s, struct wire_offer *offer, int *fd)
{
	if (!raw_send(s, &l->hello, sizeof l->hello, NULL, 0))
		return fault_failed(l->f, "HELLO: %s", strerror(errno));
	if (raw_receive(s, offer, sizeof *offer, fd, FAULT_WAIT_MS) != (ssize_t)sizeof *offer)
		return fault_failed(l->f, "no OFFER");
	return true;
}

static bool send_head(int s, enum wire_type type)
{
	struct wire_ready m = { .head = gpul_ipc_wire_head(type) };

	return raw_send(s, &m, type == WIRE_READY ? sizeof m : sizeof m.head, NULL, 0);
}

static bool get_attached(struct liar *l, int s)
{
	struct wire_offer offer;

	return get_offer(l, s, &offer, NULL) && (send_head(s, WIRE_READY) || fault_failed(l->f, "READY: %s", strerror(errno)));
}

/* ---- tricks --------------------------------------------------------------------------------- */

/* Make a valid connection, which must be accepted: this proves that the false data causes the refusals in the other tricks. */
static bool behave_correctly(struct liar *l, int s)
{
	return get_attached(l, s) && send_head(s, WIRE_BYE) && expect_dropped(l, s);
}

static bool leave_at_once(struct liar *l, int s)
{
	(void)l, (void)s;
	return true;
}

static bool leave_after_hello(struct liar *l, int s)
{
	return raw_send(s, &l->hello, sizeof l->hello, NULL, 0) || fault_failed(l->f, "HELLO: %s", strerror(errno));
}

static bool garbage(struct liar *l, int s)
{
	unsigned char bytes[6000];
	size_t n = 1 + (size_t)l->round * 7 % (sizeof bytes - 1);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(i * 31 + l->round);
	return raw_send(s, bytes, n, NULL, 0) ? expect_refused(l, s) : fault_failed(l->f, "garbage: %s", strerror(errno));
}

static bool empty_packet(struct liar *l, int s)
{
	return raw_send(s, NULL, 0, NULL, 0) && expect_dropped(l, s);
}

static bool empty_packet_with_fds(struct liar *l, int s)
{
	int fds[] = { l->null, l->null };

	return raw_send(s, NULL, 0, fds, 2) && expect_dropped(l, s);
}

static bool cut_hello(struct liar *l, int s)
{
	return raw_send(s, &l->hello, 1 + l->round % (sizeof l->hello - 1), NULL, 0) && expect_refused(l, s);
}

static bool long_hello(struct liar *l, int s)
{
	unsigned char bytes[sizeof l->hello + 1] = { 0 };

	memcpy(bytes, &l->hello, sizeof l->hello);
	return raw_send(s, bytes, sizeof bytes, NULL, 0) && expect_refused(l, s);
}

static bool huge_packet(struct liar *l, int s)
{
	static unsigned char bytes[100000];

	memcpy(bytes, &l->hello, sizeof l->hello);
	return raw_send(s, bytes, sizeof bytes, NULL, 0) && expect_refused(l, s);
}

static bool slow_writer(struct liar *l, int s)
{
	const unsigned char *bytes = (const unsigned char *)&l->hello;

	for (size_t i = 0; i < sizeof l->hello; i++)
		if (!raw_send(s, bytes + i, 1, NULL, 0))
			break; /* the owner has already dropped the connection */
	return expect_refused(l, s);
}

static void wrong_magic(struct wire_hello *h, unsigned round)
{
	h->head.magic ^= 1u << round % 32;
}

static void wrong_version(struct wire_hello *h, unsigned round)
{
	h->head.version = (uint16_t)(h->head.version + 1 + round % 1000);
}

static void wrong_type(struct wire_hello *h, unsigned round)
{
	(void)round;
	h->head.type = (uint16_t)(h->head.type + 7);
}

static void wrong_boot_id(struct wire_hello *h, unsigned round)
{
	h->boot_id[round % 16] ^= 1;
}

static void wrong_intent(struct wire_hello *h, unsigned round)
{
	h->intent = 3 + round;
}

static void many_gpus(struct wire_hello *h, unsigned round)
{
	h->n_gpus = round % 2 ? UINT32_MAX : WIRE_MAX_GPUS + 1;
}

static void driver_without_end(struct wire_hello *h, unsigned round)
{
	(void)round;
	memset(h->driver, 'x', sizeof h->driver);
}

static void driver_with_escapes(struct wire_hello *h, unsigned round)
{
	(void)round;
	memcpy(h->driver, "\033[2J", 5);
}

static void can_nothing(struct wire_hello *h, unsigned round)
{
	(void)round;
	h->can = 0;
}

static bool hello_with_fds(struct liar *l, int s)
{
	int fds[253];
	size_t n = l->round % 3 == 0 ? 1 : l->round % 3 == 1 ? 2 : 253;

	for (size_t i = 0; i < n; i++)
		fds[i] = l->null;
	return raw_send(s, &l->hello, sizeof l->hello, fds, n) ? expect_refused(l, s) : fault_failed(l->f, "%s", strerror(errno));
}

/* The system refuses the call; the connection stays open and silent. */
static bool hello_with_254_fds(struct liar *l, int s)
{
	int fds[254];

	for (size_t i = 0; i < 254; i++)
		fds[i] = l->null;
	if (raw_send(s, &l->hello, sizeof l->hello, fds, 254) || errno != EINVAL)
		return fault_failed(l->f, "254 descriptors were sent");
	return true;
}

static bool ready_first(struct liar *l, int s)
{
	return send_head(s, WIRE_READY) && expect_refused(l, s);
}

static bool bye_first(struct liar *l, int s)
{
	return send_head(s, WIRE_BYE) && expect_dropped(l, s);
}

static bool hello_twice(struct liar *l, int s)
{
	struct wire_offer offer;

	return get_offer(l, s, &offer, NULL) && raw_send(s, &l->hello, sizeof l->hello, NULL, 0) && expect_refused(l, s);
}

static bool ready_with_fd(struct liar *l, int s)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };
	struct wire_offer offer;

	return get_offer(l, s, &offer, NULL) && raw_send(s, &ready, sizeof ready, &l->null, 1) && expect_refused(l, s);
}

static bool refuses_itself(struct liar *l, int s)
{
	struct wire_refused no = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = GPUL_ECUDA };
	struct wire_offer offer;

	memset(no.text, '\033', sizeof no.text);
	return get_offer(l, s, &offer, NULL) && raw_send(s, &no, sizeof no, NULL, 0) && expect_dropped(l, s);
}

static bool offers_itself(struct liar *l, int s)
{
	struct wire_offer offer;

	return get_offer(l, s, &offer, NULL) && raw_send(s, &offer, sizeof offer, &l->null, 1) && expect_refused(l, s);
}

static bool ready_twice(struct liar *l, int s)
{
	return get_attached(l, s) && send_head(s, WIRE_READY) && expect_dropped(l, s);
}

static bool bye_twice(struct liar *l, int s)
{
	if (!get_attached(l, s) || !send_head(s, WIRE_BYE))
		return false;
	send_head(s, WIRE_BYE); /* fails if the owner has closed the connection */
	return expect_dropped(l, s);
}

static bool garbage_after_attach(struct liar *l, int s)
{
	return get_attached(l, s) && raw_send(s, "garbage", 7, &l->null, 1) && expect_dropped(l, s);
}

static bool flood(struct liar *l, int s)
{
	struct wire_offer offer;

	if (!get_offer(l, s, &offer, NULL))
		return false;
	for (int i = 0; i < 200 && send_head(s, WIRE_READY); i++)
		;
	return expect_dropped(l, s);
}

static bool flood_of_queries(struct liar *l, int s)
{
	struct wire_hello h = l->hello;

	h.intent = WIRE_QUERY;
	for (int i = 0; i < 200 && raw_send(s, &h, sizeof h, NULL, 0); i++)
		;
	return expect_dropped(l, s);
}

static bool does_not_read(struct liar *l, int s)
{
	shutdown(s, SHUT_RD);
	raw_send(s, &l->hello, sizeof l->hello, NULL, 0);
	return expect_dropped(l, s);
}

static bool half_closed(struct liar *l, int s)
{
	if (!raw_send(s, &l->hello, sizeof l->hello, NULL, 0))
		return false;
	shutdown(s, SHUT_WR);
	return expect_dropped(l, s);
}

/* Try to shrink the owner's file, which must fail. */
static bool shrinks_the_file(struct liar *l, int s)
{
	struct wire_offer offer;
	bool good = true;
	int fd;

	if (!get_offer(l, s, &offer, &fd))
		return false;
	if (fd >= 0 && (ftruncate(fd, 0) == 0 || ftruncate(fd, (off_t)offer.share.mapped_bytes + 4096) == 0))
		good = fault_failed(l->f, "the memory's file could be resized");
	if (fd >= 0)
		close(fd);
	return good;
}

/* Connect and stay silent: the owner must drop the connection after its time-out, and not earlier. */
static bool silence(struct liar *l, int s)
{
	uint64_t from = gpul_clock_ns();
	int more[N_AT_ONCE];
	bool good = true;

	for (int i = 0; i < N_AT_ONCE; i++)
		more[i] = raw_connect(l->f);
	good = expect_dropped(l, s);
	if (gpul_clock_ns() - from < (uint64_t)(fault_step_ms(l->f, STEP_MS) - 1) * 1000000)
		good = fault_failed(l->f, "the connection was dropped before the time-out");
	for (int i = 0; i < N_AT_ONCE; i++) {
		good = good && expect_dropped(l, more[i]);
		close(more[i]);
	}
	return good;
}

static bool silence_after_offer(struct liar *l, int s)
{
	struct wire_offer offer;

	return get_offer(l, s, &offer, NULL) && expect_dropped(l, s);
}

/* Open more silent connections than the owner serves at the same time. */
static bool storm_of_connections(struct liar *l, int s)
{
	int all[200];

	(void)s;
	for (int i = 0; i < 200; i++)
		all[i] = raw_connect(l->f);
	for (int i = 0; i < 200; i++)
		close(all[i]);
	return true;
}

static const struct trick tricks[] = {
	{ "a valid connection", .play = behave_correctly },
	{ "connect and leave", .play = leave_at_once },
	{ "HELLO and leave", .play = leave_after_hello },
	{ "garbage", .play = garbage },
	{ "an empty packet", .play = empty_packet },
	{ "an empty packet with descriptors", .play = empty_packet_with_fds },
	{ "a truncated HELLO", .play = cut_hello },
	{ "HELLO with one extra byte", .play = long_hello },
	{ "a packet of 100,000 bytes", .play = huge_packet },
	{ "HELLO byte by byte", .play = slow_writer },
	{ "wrong magic", .play = send_false_hello, .change = wrong_magic },
	{ "wrong version", .play = send_false_hello, .change = wrong_version },
	{ "wrong type", .play = send_false_hello, .change = wrong_type },
	{ "wrong boot id", .play = send_false_hello, .change = wrong_boot_id },
	{ "wrong intent", .play = send_false_hello, .change = wrong_intent },
	{ "more GPUs than fit", .play = send_false_hello, .change = many_gpus },
	{ "a driver name without a NUL", .play = send_false_hello, .change = driver_without_end },
	{ "a driver name with escape characters", .play = send_false_hello, .change = driver_with_escapes },
	{ "a peer that can map nothing", .play = send_false_hello, .change = can_nothing },
	{ "HELLO with descriptors", .play = hello_with_fds },
	{ "HELLO with 254 descriptors", .play = hello_with_254_fds },
	{ "READY first", .play = ready_first },
	{ "BYE first", .play = bye_first },
	{ "HELLO twice", .play = hello_twice },
	{ "READY with a descriptor", .play = ready_with_fd },
	{ "REFUSED with escape characters", .play = refuses_itself },
	{ "OFFER to the owner", .play = offers_itself },
	{ "READY twice", .play = ready_twice },
	{ "BYE twice", .play = bye_twice },
	{ "garbage after attaching", .play = garbage_after_attach },
	{ "a flood of READY", .play = flood },
	{ "a flood of queries", .play = flood_of_queries },
	{ "a peer that does not read", .play = does_not_read },
	{ "a half-closed connection", .play = half_closed },
	{ "shrink the file", .play = shrinks_the_file },
	{ "silence", .play = silence, .one_in = N_AT_ONCE },
	{ "silence after OFFER", .play = silence_after_offer, .one_in = N_AT_ONCE },
	{ "a storm of connections", .play = storm_of_connections, .one_in = 200 },
};
enum { N_TRICKS = sizeof tricks / sizeof tricks[0] };

/* ---- the scenario --------------------------------------------------------------------------- */

/* Play a trick on one connection. */
static bool play_once(struct liar *l, const struct trick *t)
{
	int s = raw_connect(l->f);
	bool good;

	if (s < 0)
		return fault_failed(l->f, "connect: %s", strerror(errno));
	l->f->text[0] = '\0';
	l->trick = t;
	good = t->play(l, s);
	if (!good && !l->f->text[0])
		fault_failed(l->f, "%s", strerror(errno));
	close(s);
	return good;
}

/* Play a trick; if it got no CPU time for longer than the owner's time-out, the refusal is not counted: try again. */
static bool play_trick(struct liar *l, const struct trick *t)
{
	char why[FAULT_TEXT];

	if (t->one_in && l->round % t->one_in)
		return true;
	if (t->play == shrinks_the_file && l->f->kind == GPUL_MEM_SHM)
		return true; /* shm memory has no seals (memalloc/README.md), so its file can be shrunk */
	for (int tries = 0; tries < MOST_TRIES; tries++) {
		uint64_t from = gpul_clock_ns();

		if (play_once(l, t))
			return true;
		if (gpul_clock_ns() - from < (uint64_t)fault_step_ms(l->f, STEP_MS) * 1000000)
			break;
	}
	memcpy(why, l->f->text, sizeof why);
	return fault_failed(l->f, "round %u, %s: %.400s", l->round, t->what, why);
}

static bool all_tricks(struct liar *l, const struct child *bystander)
{
	struct counts before;

	counts_take(&before);
	for (l->round = 0; l->round < l->f->times; l->round++) {
		for (int i = 0; i < N_TRICKS; i++)
			if (!play_trick(l, &tricks[i]))
				return false;
		if (l->round % 16 == 0 && !must(l->f, bystander, 's', 0))
			return false;
	}
	return counts_same(&before, l->f->text);
}

enum fault_verdict hostile_clients(struct fault *f)
{
	struct actor quiet = { .gone_quiet = true, .step_timeout_ms = fault_step_ms(f, STEP_MS) }, lives = { 0 };
	struct child owner = { 0 }, bystander = { 0 };
	struct liar l = { .f = f };
	struct wire_offer offer;
	bool good = raw_record(f, &l.hello, &offer) && attacher_start(f, &lives, &bystander) && owner_start(f, &quiet, &owner) &&
		    must_attach(f, &bystander);

	l.null = open("/dev/null", O_RDWR | O_CLOEXEC);
	good = good && all_tricks(&l, &bystander) && must(f, &bystander, 's', 0) && must(f, &bystander, 'x', 0) &&
	       must(f, &owner, 'c', 0) && actor_end(f, &owner) && actor_end(f, &bystander);
	close(l.null);
	child_kill(&owner);
	child_kill(&bystander);
	return good ? FAULT_OK : FAULT_FAILED;
}
