/* hostile_servers.c — scenario: an owner that sends false data to an attacher: each must be an error with a reason, and leak nothing.
 *
 *     attacher (the library) ── connect, HELLO ──> liar ── a valid OFFER with one change ──> refused?
 *
 * A note 't' with a trick's number in value selects the liar's next trick, which it plays on the next connection. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fault/actors.h"
#include "tests/fault/hostile/raw.h"

enum { MAPPED = 128 << 10, PATIENCE_MS = 30 };

struct liar {
	struct fault *f;
	struct wire_offer offer; /* a valid OFFER of a memfd of MAPPED bytes */
	const struct trick *trick;
	unsigned round;
};

typedef void trick_change(struct wire_offer *o, unsigned round);
typedef int trick_fd(void);
typedef void trick_play(struct liar *l, int s);

struct trick {
	const char *what;
	trick_change *change; /* NULL: a valid OFFER */
	trick_fd *fd;         /* NULL: a valid descriptor */
	trick_play *play;     /* NULL: one OFFER with one descriptor */
	enum { MUST_FAIL, MUST_ATTACH, MAY_ATTACH } end;
	unsigned one_in; /* n: play this slow trick in every n-th round only; 0: in every round */
};

/* ---- descriptors that contradict the OFFER --------------------------------------------------- */

static int create_memfd(off_t bytes, int seals)
{
	int fd = memfd_create("gpuload-liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, bytes) || (seals && fcntl(fd, F_ADD_SEALS, seals))))
		fprintf(stderr, "memfd: %s\n", strerror(errno));
	return fd;
}

static int valid_fd(void)
{
	return create_memfd(MAPPED, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int unsealed(void)
{
	return create_memfd(MAPPED, 0);
}

static int half_sealed(void)
{
	return create_memfd(MAPPED, F_SEAL_GROW);
}

static int too_small(void)
{
	return create_memfd(MAPPED / 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int too_large(void)
{
	return create_memfd(MAPPED * 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int of_no_bytes(void)
{
	return create_memfd(0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int for_reading(void)
{
	char path[32];
	int fd = valid_fd(), again;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return again;
}

static int path_only(void)
{
	char path[32];
	int fd = valid_fd(), again;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, O_PATH | O_CLOEXEC);
	close(fd);
	return again;
}

static int dev_null(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int dev_zero(void)
{
	return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static int folder(void)
{
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int pipe_end(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	close(ends[1]);
	return ends[0];
}

static int socket_end(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int event_fd(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int plain_file(void)
{
	FILE *f = tmpfile();
	int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;

	if (fd >= 0 && ftruncate(fd, MAPPED))
		fprintf(stderr, "file: %s\n", strerror(errno));
	if (f)
		fclose(f);
	return fd;
}

/* ---- false OFFERs ---------------------------------------------------------------------------- */

static void false_mapped_size(struct wire_offer *o, unsigned round)
{
	static const uint64_t lies[] = { 0,          UINT64_MAX, MAPPED - 1, MAPPED + 1, (uint64_t)1 << 63, MAPPED * 2,
					 MAPPED / 2, 4096,       INT64_MAX,  UINT32_MAX, (uint64_t)1 << 40, UINT64_MAX - 4095 };

	o->share.mapped_bytes = lies[round % (sizeof lies / sizeof lies[0])];
}

static void false_size(struct wire_offer *o, unsigned round)
{
	static const uint64_t lies[] = { 0, UINT64_MAX, MAPPED, MAPPED - 4095, (uint64_t)1 << 63, INT64_MAX, MAPPED + 1 };

	o->share.bytes = lies[round % (sizeof lies / sizeof lies[0])];
}

static void false_granularity(struct wire_offer *o, unsigned round)
{
	static const uint64_t lies[] = { 0, UINT64_MAX, 4095, (uint64_t)1 << 63, 3, MAPPED * 2 };

	o->share.granularity_bytes = lies[round % (sizeof lies / sizeof lies[0])];
}

static void false_kind(struct wire_offer *o, unsigned round)
{
	static const uint32_t lies[] = { GPUL_MEM_AUTO,       GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_PINNED,
					 GPUL_MEM_DEVICE_IPC, GPUL_MEM_N_KINDS,   UINT32_MAX,      0x80000000u };

	o->share.kind = lies[round % (sizeof lies / sizeof lies[0])];
}

static void false_method(struct wire_offer *o, unsigned round)
{
	o->share.via = round % 3 == 0 ? 0 : round % 3 == 1 ? WIRE_VIA_FABRIC : WIRE_VIA_CUDA_IPC;
}

static void false_ipc_handle(struct wire_offer *o, unsigned round)
{
	o->share.kind = GPUL_MEM_DEVICE_IPC;
	o->share.via = WIRE_VIA_CUDA_IPC;
	for (size_t i = 0; i < sizeof o->handle; i++)
		o->handle[i] = (unsigned char)(i * 37 + round);
}

static void false_fabric_handle(struct wire_offer *o, unsigned round)
{
	false_ipc_handle(o, round);
	o->share.kind = GPUL_MEM_DEVICE;
	o->share.via = WIRE_VIA_FABRIC;
}

static void false_event(struct wire_offer *o, unsigned round)
{
	o->share.flags |= WIRE_HAS_EVENT;
	for (size_t i = 0; i < sizeof o->event; i++)
		o->event[i] = (unsigned char)(i * 37 + round);
}

static void unknown_flag(struct wire_offer *o, unsigned round)
{
	o->share.flags |= 8u << round % 28;
}

static void many_dims(struct wire_offer *o, unsigned round)
{
	o->share.n_dims = round % 2 ? UINT32_MAX : GPUL_IPC_MAX_DIMS + 1;
}

static void shape_that_overflows(struct wire_offer *o, unsigned round)
{
	(void)round;
	memcpy(o->share.dtype, "<f4", 4);
	o->share.n_dims = 2;
	o->share.dim[0] = o->share.dim[1] = (uint64_t)1 << 32;
}

static void dtype_without_end(struct wire_offer *o, unsigned round)
{
	(void)round;
	memset(o->share.dtype, '<', sizeof o->share.dtype);
}

static void false_slot(struct wire_offer *o, unsigned round)
{
	o->share.slot = GPUL_IPC_MAX_PEERS + round;
}

static void other_boot(struct wire_offer *o, unsigned round)
{
	o->share.boot_id[round % 16] ^= 1;
}

static void other_gpu(struct wire_offer *o, unsigned round)
{
	o->share.kind = GPUL_MEM_DEVICE;
	o->share.gpu[round % 16] ^= 1;
}

static void other_driver(struct wire_offer *o, unsigned round)
{
	(void)round;
	o->share.kind = GPUL_MEM_HOST_NUMA;
	memcpy(o->share.driver, "other", 6);
}

static void other_magic(struct wire_offer *o, unsigned round)
{
	o->head.magic ^= 1u << round % 32;
}

static void other_version(struct wire_offer *o, unsigned round)
{
	o->head.version = (uint16_t)(o->head.version + 1 + round % 1000);
}

static void other_type(struct wire_offer *o, unsigned round)
{
	o->head.type = (uint16_t)(round % 2 ? WIRE_HELLO : 100 + round);
}

/* ---- violations of the protocol -------------------------------------------------------------- */

static void offer_with(struct liar *l, int s, size_t n_bytes, size_t n_fds)
{
	unsigned char bytes[sizeof l->offer + 1] = { 0 };
	int fds[253], fd = l->trick->fd ? l->trick->fd() : valid_fd();

	memcpy(bytes, &l->offer, sizeof l->offer);
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = fd;
	raw_send(s, bytes, n_bytes, fds, n_fds);
	close(fd);
}

static void without_fd(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer, 0);
}

static void two_fds(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer, 2);
}

static void all_fds(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer, 253);
}

static void truncated_offer(struct liar *l, int s)
{
	offer_with(l, s, 1 + l->round % (sizeof l->offer - 1), 1);
}

static void long_offer(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer + 1, 1);
}

static void nothing_but_fds(struct liar *l, int s)
{
	offer_with(l, s, 0, 3);
}

static void close_connection(struct liar *l, int s)
{
	(void)l;
	shutdown(s, SHUT_RDWR);
}

static void stay_silent(struct liar *l, int s)
{
	struct wire_refused ignored;

	(void)l;
	raw_dropped(s, &ignored);
}

static void refuse_with_escapes(struct liar *l, int s)
{
	struct wire_refused no = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = 1 + l->round % GPUL_EVERBS };

	memset(no.text, '\033', sizeof no.text);
	raw_send(s, &no, sizeof no, NULL, 0);
}

static void refuse_with_ok(struct liar *l, int s)
{
	struct wire_refused no = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = l->round % 2 ? 0 : UINT32_MAX };

	raw_send(s, &no, sizeof no, NULL, 0);
}

static void send_bye(struct liar *l, int s)
{
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);

	(void)l;
	raw_send(s, &bye, sizeof bye, NULL, 0);
}

static void send_ready(struct liar *l, int s)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };

	(void)l;
	raw_send(s, &ready, sizeof ready, NULL, 0);
}

static void byte_by_byte(struct liar *l, int s)
{
	for (size_t i = 0; i < sizeof l->offer; i++)
		if (!raw_send(s, (const unsigned char *)&l->offer + i, 1, NULL, 0))
			break;
}

/* Send all messages before the attacher has read the first. */
static void flood_of_offers(struct liar *l, int s)
{
	for (int i = 0; i < 100; i++)
		offer_with(l, s, sizeof l->offer, 1);
}

static void wait_for_ready(int s)
{
	struct wire_ready ready;

	raw_receive(s, &ready, sizeof ready, NULL, FAULT_WAIT_MS);
}

static void garbage_when_attached(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer, 1);
	wait_for_ready(s);
	for (int i = 0; i < 10; i++)
		offer_with(l, s, 5, 20);
}

static void bye_twice(struct liar *l, int s)
{
	offer_with(l, s, sizeof l->offer, 1);
	wait_for_ready(s);
	send_bye(l, s);
	send_bye(l, s);
}

static const struct trick tricks[] = {
	{ "a valid offer", .end = MUST_ATTACH },
	{ "memory that is not sealed", .fd = unsealed },
	{ "memory that is half sealed", .fd = half_sealed },
	{ "a file that is too small", .fd = too_small },
	{ "a file that is too large", .fd = too_large },
	{ "an empty file", .fd = of_no_bytes },
	{ "a file opened for reading", .fd = for_reading },
	{ "a descriptor of a path (O_PATH)", .fd = path_only },
	{ "/dev/null", .fd = dev_null },
	{ "/dev/zero", .fd = dev_zero },
	{ "a folder", .fd = folder },
	{ "a pipe", .fd = pipe_end },
	{ "a socket", .fd = socket_end },
	{ "an eventfd", .fd = event_fd },
	{ "a file on a disk", .fd = plain_file },
	{ "a false mapped size", .change = false_mapped_size },
	{ "a false size", .change = false_size },
	{ "a false granularity", .change = false_granularity },
	{ "a false kind", .change = false_kind },
	{ "a false method", .change = false_method },
	{ "a false CUDA handle", .change = false_ipc_handle, .play = without_fd },
	{ "a false fabric handle", .change = false_fabric_handle, .play = without_fd },
	{ "a false event handle", .change = false_event },
	{ "an unknown flag", .change = unknown_flag },
	{ "too many dimensions", .change = many_dims },
	{ "a shape that overflows", .change = shape_that_overflows },
	{ "an element type without a NUL", .change = dtype_without_end },
	{ "an invalid slot", .change = false_slot },
	{ "another boot id", .change = other_boot },
	{ "another GPU", .change = other_gpu },
	{ "another driver", .change = other_driver },
	{ "another magic", .change = other_magic },
	{ "another version", .change = other_version },
	{ "another type", .change = other_type },
	{ "no descriptor", .play = without_fd },
	{ "two descriptors", .play = two_fds },
	{ "253 descriptors", .play = all_fds },
	{ "a truncated OFFER", .play = truncated_offer },
	{ "OFFER with one extra byte", .play = long_offer },
	{ "descriptors only", .play = nothing_but_fds },
	{ "the connection is closed", .play = close_connection },
	{ "no answer", .play = stay_silent, .one_in = 50 },
	{ "REFUSED with escape characters", .play = refuse_with_escapes },
	{ "REFUSED with status OK", .play = refuse_with_ok },
	{ "BYE first", .play = send_bye },
	{ "READY to the attacher", .play = send_ready },
	{ "OFFER byte by byte", .play = byte_by_byte },
	{ "a flood of OFFERs", .play = flood_of_offers, .end = MAY_ATTACH },
	{ "garbage after attaching", .play = garbage_when_attached, .end = MUST_ATTACH },
	{ "BYE twice", .play = bye_twice, .end = MUST_ATTACH },
};
enum { N_TRICKS = sizeof tricks / sizeof tricks[0] };

/* ---- the liar ------------------------------------------------------------------------------- */

static void play_trick(struct liar *l, int s)
{
	const struct wire_offer honest = l->offer;
	struct wire_hello hello;
	struct wire_refused ignored;

	if (raw_receive(s, &hello, sizeof hello, NULL, FAULT_WAIT_MS) != (ssize_t)sizeof hello)
		return;
	if (l->trick->change)
		l->trick->change(&l->offer, l->round);
	if (l->trick->play)
		l->trick->play(l, s);
	else
		offer_with(l, s, sizeof l->offer, 1);
	l->offer = honest;
	raw_dropped(s, &ignored);
}

static int liar_role(const struct fault *f, int line, const void *arg)
{
	struct liar l = *(const struct liar *)arg;
	int listener = raw_listen(f);
	struct note n;

	signal(SIGPIPE, SIG_IGN);
	while (listener >= 0 && note_receive(line, -1, &n) && n.command == 't') {
		int s;

		l.trick = &tricks[n.value];
		l.round = (unsigned)n.native;
		note_send(line, &n);
		s = raw_accept(listener, FAULT_WAIT_MS);
		if (s < 0)
			return 1;
		play_trick(&l, s);
		close(s);
	}
	close(listener);
	return 0;
}

/* ---- the scenario --------------------------------------------------------------------------- */

/* True when an attacher can detach from the liar, the false owner, whatever the liar sends. */
static bool detaches(struct fault *f, const struct child *attacher)
{
	struct note n;

	return child_do(attacher, 'v', 0, &n) && must(f, attacher, 'x', 0);
}

static bool check_result(struct fault *f, const struct trick *t, const struct child *attacher, const struct note *n)
{
	if (n->good)
		return t->end == MUST_FAIL ? fault_failed(f, "the false offer was accepted") : detaches(f, attacher);
	if (t->end == MUST_ATTACH)
		return fault_failed(f, "the valid offer was refused: %s", n->text);
	if (!n->text[0])
		return fault_failed(f, "refused without a reason");
	if (t->play != stay_silent && n->native == ETIMEDOUT)
		return fault_failed(f, "the attacher waited for the liar: %s", n->text);
	if (t->play == stay_silent && (n->native != ETIMEDOUT || n->value < PATIENCE_MS - 1))
		return fault_failed(f, "the attacher did not wait for its time-out: %s after %lld ms", n->text, (long long)n->value);
	return true;
}

static bool play(struct fault *f, unsigned round, int index, const struct child *liar, const struct child *attacher)
{
	const struct trick *t = &tricks[index];
	struct note n = { .command = 't', .value = index, .native = (int)round };
	char why[FAULT_TEXT];

	f->text[0] = '\0';
	if (!note_send(liar->line, &n) || !note_receive(liar->line, FAULT_WAIT_MS, &n))
		return fault_failed(f, "the liar has ended");
	if (!child_do(attacher, 'a', t->play == stay_silent ? PATIENCE_MS : FAULT_WAIT_MS, &n))
		return fault_failed(f, "round %u, %s: the attacher has ended", round, t->what);
	if (check_result(f, t, attacher, &n) && must(f, attacher, 'c', 0))
		return true;
	memcpy(why, f->text, sizeof why);
	return fault_failed(f, "round %u, %s: %.400s", round, t->what, why);
}

static bool warm_up(struct fault *f, const struct child *liar, const struct child *attacher)
{
	return play(f, 0, 0, liar, attacher) && must(f, attacher, 'b', 0);
}

static bool all_tricks(struct fault *f, const struct child *liar, const struct child *attacher)
{
	for (unsigned round = 0; round < f->times; round++)
		for (int i = 0; i < N_TRICKS; i++)
			if (!(tricks[i].one_in && round % tricks[i].one_in) && !play(f, round, i, liar, attacher))
				return false;
	return true;
}

enum fault_verdict hostile_servers(struct fault *f)
{
	struct actor lives = { 0 };
	struct child liar = { 0 }, attacher = { 0 };
	struct liar l = { .f = f };
	struct wire_hello hello;
	bool good;

	f->kind = GPUL_MEM_MEMFD; /* the only kind whose descriptors the false owner can create */
	good = raw_record(f, &hello, &l.offer);
	l.offer.share.mapped_bytes = MAPPED;
	l.offer.share.granularity_bytes = 4096;
	l.offer.share.bytes = SHARED_BYTES;
	good = good && child_start(f, liar_role, &l, &liar) && attacher_start(f, &lives, &attacher) && warm_up(f, &liar, &attacher) &&
	       all_tricks(f, &liar, &attacher) && actor_end(f, &attacher) && actor_end(f, &liar);
	child_kill(&liar);
	child_kill(&attacher);
	return good ? FAULT_OK : FAULT_FAILED;
}
