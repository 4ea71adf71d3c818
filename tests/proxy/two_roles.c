/* two_roles.c — the child processes of test_two_processes.c: each executes commands that it reads line by line. */
#include "tests/proxy/two_roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/context.h"
#include "tests/proxy/ends.h"

enum { LONG_MS = 20000 }; /* limit for events that must come, long enough for a busy machine */

struct side {
	gpul_context context;
	struct piece piece;
	struct kernels kernels;
	gpul_fifo *fifo;
	gpul_proxy *proxy;
	struct check check;
	int watched[2];
	unsigned n_watched;
};

static void say_failed(gpul_status st, const gpul_error *err)
{
	say("failed %d %.100s", (int)st, err->text);
}

/* ---- commands of both processes ----------------------------------------------------------- */

static gpul_status begin(struct side *s, const char *argument, gpul_error *err)
{
	const gpul_driver *drv;
	char name[64], kind_name[32] = "";
	gpul_mem_kind kind;
	gpul_fifo_shape shape = { 0 };
	const int n = sscanf(argument, "%63s %31s %u %u", name, kind_name, &shape.slots, &shape.lanes);
	gpul_status st = gpul_driver_open(GPUL_DRIVER_AUTO, &drv, err);

	st = st ? st : gpul_context_open(drv, 0, &s->context, err);
	if (st || n == 1)
		return st ? st : piece_attach(drv, name, &s->piece, err);
	if (n != 4 || !gpul_mem_kind_parse(kind_name, &kind))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid memory '%s': expected NAME KIND SLOTS LANES", argument);
	return piece_offer(drv, kind, name, &shape, &s->piece, err);
}

static int finish(struct side *s)
{
	gpul_error err = { 0 };
	int status = 0;

	kernels_close(&s->kernels);
	if (s->proxy)
		status = 3; /* the proxy was not stopped */
	gpul_fifo_close(s->fifo);
	if (piece_drop(&s->piece, &err))
		status = 4;
	gpul_context_close(&s->context);
	return status;
}

static void say_event(struct side *s)
{
	gpul_ipc_event event = { .kind = GPUL_IPC_NONE };
	gpul_error err = { 0 };
	gpul_status st = piece_event(&s->piece, LONG_MS, &event, &err);

	if (st)
		say_failed(st, &err);
	else
		say("%s", gpul_ipc_event_name(event.kind));
}

static void corrupt_header(struct side *s, unsigned which)
{
	const struct gpul_fifo_header truth = *(const struct gpul_fifo_header *)s->piece.area;
	/* clang-format off */
	const struct gpul_fifo_header false_headers[] = {
		{ .magic = 0, .version = truth.version, .lanes = truth.lanes, .lane_shift = truth.lane_shift, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = 77, .lanes = truth.lanes, .lane_shift = truth.lane_shift, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = 0, .lane_shift = truth.lane_shift, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = 3, .lane_shift = truth.lane_shift, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = UINT32_MAX, .lane_shift = truth.lane_shift, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = truth.lanes, .lane_shift = 60, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = truth.lanes, .lane_shift = 24, .bytes = truth.bytes },
		{ .magic = truth.magic, .version = truth.version, .lanes = truth.lanes, .lane_shift = truth.lane_shift, .bytes = 0 },
		{ .magic = truth.magic, .version = truth.version, .lanes = truth.lanes, .lane_shift = truth.lane_shift,
		  .bytes = UINT64_MAX },
	};
	/* clang-format on */

	if (which >= sizeof false_headers / sizeof false_headers[0]) {
		say("no more");
		return;
	}
	*(struct gpul_fifo_header *)s->piece.area = false_headers[which];
	say("corrupted");
	if (hear((char[128]){ 0 })) /* the next command shows that the other process has read the header */
		*(struct gpul_fifo_header *)s->piece.area = truth;
	say("restored");
}

/* ---- the kernels' process ------------------------------------------------------------------- */

static gpul_status open_kernels(struct side *s, gpul_error *err)
{
	return s->kernels.end ? GPUL_OK : kernels_open(&s->piece, &s->kernels, err);
}

static gpul_status start(struct side *s, const char *words, gpul_error *err)
{
	struct pushes p;
	uint64_t timeout_ms;
	gpul_status st = open_kernels(s, err);

	if (st)
		return st;
	if (sscanf(words, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %u", &p.n_blocks, &p.first, &p.count, &timeout_ms, &p.flags) != 5)
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid pushes '%s'", words);
	p.timeout_ns = timeout_ms * 1000000;
	return kernels_start(&s->kernels, &p, err);
}

static void wait_for_kernels(struct side *s)
{
	struct pushed pushed;
	gpul_error err = { 0 };
	gpul_status st = kernels_wait(&s->kernels, true, LONG_MS, &pushed, &err);

	if (st)
		say_failed(st, &err);
	else
		say("result %u pushed %" PRIu64 " code %u %s", pushed.result, pushed.n, pushed.code, gpul_ipc_event_name(pushed.lost));
}

static void obey_kernels(struct side *s, const char *line)
{
	gpul_error err = { 0 };
	gpul_status st = GPUL_OK;

	if (strcmp(line, "wait") == 0) {
		wait_for_kernels(s);
		return;
	}
	if (strcmp(line, "open") == 0)
		st = open_kernels(s, &err);
	else if (strncmp(line, "start ", 6) == 0)
		st = start(s, line + 6, &err);
	else
		st = gpul_fail(&err, GPUL_EINVAL, 0, "unknown command '%s'", line);
	if (st)
		say_failed(st, &err);
	else
		say("%sed", strcmp(line, "open") == 0 ? "open" : "start");
}

/* ---- the proxy's process -------------------------------------------------------------------- */

static gpul_status open_fifo(struct side *s, gpul_error *err)
{
	gpul_status st = s->fifo ? GPUL_OK : gpul_fifo_open(s->piece.area, s->piece.bytes, &s->fifo, err);

	return st ? st : gpul_fifo_hold_lifeline(s->fifo, err);
}

static void take(struct side *s, unsigned n)
{
	gpul_fifo_item items[16];
	unsigned taken = 0;

	for (int ms = 0; taken < n && ms < LONG_MS; ms++) {
		unsigned got = gpul_fifo_poll(s->fifo, items, n - taken < 16 ? n - taken : 16);

		check_items(&s->check, s->fifo, items, got, NULL);
		taken += got;
		if (!got)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	say("took %u", taken);
}

static gpul_status serve(struct side *s, gpul_error *err)
{
	gpul_proxy_desc desc = { .fifos = &s->fifo, .n_fifos = 1, .kinds[FIFO_PUSH_KIND] = { check_items, &s->check } };

	s->n_watched = piece_watch(&s->piece, s->watched);
	desc.watch_fds = s->watched;
	desc.n_watch_fds = s->n_watched;
	return gpul_proxy_start(&desc, &s->proxy, err);
}

static void stop(struct side *s)
{
	gpul_error err = { 0 };
	gpul_status st = gpul_proxy_stop(s->proxy, &err);

	s->proxy = NULL;
	piece_unwatch(&s->piece, s->watched, s->n_watched);
	say("stopped %d %d", (int)st, st ? err.native : 0);
}

static void say_ended(struct side *s)
{
	gpul_error err = { 0 };
	gpul_status st = GPUL_OK;

	for (int ms = 0; !st && ms < LONG_MS; ms++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		st = gpul_proxy_failed(s->proxy, &err);
	}
	say("ended %d %d", (int)st, err.native);
}

static void obey_proxy(struct side *s, const char *line)
{
	gpul_error err = { 0 };
	gpul_status st = strcmp(line, "checked") == 0 ? GPUL_OK : open_fifo(s, &err);

	if (st) {
		say_failed(st, &err);
	} else if (strcmp(line, "open") == 0) {
		say("opened");
	} else if (strncmp(line, "take ", 5) == 0) {
		take(s, (unsigned)atoi(line + 5));
	} else if (strcmp(line, "release") == 0) {
		gpul_fifo_release(s->fifo);
		say("released");
	} else if (strcmp(line, "serve") == 0) {
		st = serve(s, &err);
		if (st)
			say_failed(st, &err);
		else
			say("serving");
	} else if (strcmp(line, "drain") == 0) {
		say("drained %d", (int)gpul_proxy_drain(s->proxy, LONG_MS, &err));
	} else if (strcmp(line, "ended") == 0) {
		say_ended(s);
	} else if (strcmp(line, "stop") == 0) {
		stop(s);
	} else {
		say("right %" PRIu64 " next %" PRIu64 " wrong %" PRIu64 " %.60s", s->check.n, s->check.next[0], s->check.n_wrong,
		    s->check.wrong);
	}
}

/* ---- the main functions of the two processes -------------------------------------------------- */

static int play(const char *argument, void obey(struct side *, const char *))
{
	struct side s = { .piece = { .slot = -1 } };
	gpul_error err = { 0 };
	gpul_status st = begin(&s, argument, &err);
	char line[128];

	if (st) {
		say_failed(st, &err);
		gpul_context_close(&s.context);
		return 0;
	}
	say("ready");
	while (hear(line)) {
		if (strcmp(line, "event") == 0)
			say_event(&s);
		else if (strncmp(line, "corrupt ", 8) == 0)
			corrupt_header(&s, (unsigned)atoi(line + 8));
		else
			obey(&s, line);
	}
	return finish(&s);
}

int play_kernels(const char *argument)
{
	return play(argument, obey_kernels);
}

int play_proxy(const char *argument)
{
	return play(argument, obey_proxy);
}
