/* fifo_end.c — the actor with one end of a FIFO: pushes from kernels, or serves them as the proxy. */
#include "tests/fault/fifo/fifo_end.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/process.h"

struct fifo_end {
	const struct fault *f;
	int line;
	struct process process;
	struct piece piece;
	struct kernels kernels;
	gpul_fifo *fifo;
	gpul_proxy *proxy;
	struct check check;
	int watched[2];
	unsigned n_watched;
	struct counts baseline;
};

/* ---- memory ------------------------------------------------------------------------------- */

static gpul_status create_memory(struct fifo_end *e, gpul_error *err)
{
	const gpul_fifo_shape shape = { .slots = FIFO_SLOTS, .lanes = FIFO_LANES };

	return piece_offer(&e->process.drv, e->f->kind, SHARE_NAME, &shape, &e->piece, err);
}

static gpul_status attach(struct fifo_end *e, gpul_error *err)
{
	gpul_status st = piece_attach(&e->process.drv, SHARE_NAME, &e->piece, err);

	if (!st)
		step_reached("attached");
	return st;
}

static gpul_status listen_for(struct fifo_end *e, int timeout_ms, struct note *n, gpul_error *err)
{
	gpul_ipc_event event = { .kind = GPUL_IPC_NONE };
	gpul_status st = piece_event(&e->piece, timeout_ms, &event, err);

	n->event = (int)event.kind;
	if (event.kind == GPUL_IPC_ATTACHED)
		step_reached("attached");
	return st;
}

static gpul_status release_all(struct fifo_end *e, gpul_error *err)
{
	kernels_close(&e->kernels);
	gpul_fifo_close(e->fifo);
	e->fifo = NULL;
	e->check = (struct check){ 0 };
	return piece_drop(&e->piece, err);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static gpul_status push_triggers(struct fifo_end *e, const struct note *n, gpul_error *err)
{
	struct pushes p;
	gpul_status st = e->kernels.end ? GPUL_OK : kernels_open(&e->piece, &e->kernels, err);

	memcpy(&p, n->text, sizeof p);
	return st ? st : kernels_start(&e->kernels, &p, err);
}

static gpul_status wait_for_kernels(struct fifo_end *e, bool aborts, struct note *n, gpul_error *err)
{
	struct pushed pushed;
	gpul_status st = kernels_wait(&e->kernels, aborts, FAULT_WAIT_MS, &pushed, err);

	if (!st)
		memcpy(n->text, &pushed, sizeof pushed);
	step_reached("pushed");
	return st;
}

/* ---- the proxy ---------------------------------------------------------------------------- */

static gpul_status open_fifo(struct fifo_end *e, gpul_error *err)
{
	gpul_status st = e->fifo ? GPUL_OK : gpul_fifo_open(e->piece.area, e->piece.bytes, &e->fifo, err);

	return st ? st : gpul_fifo_hold_lifeline(e->fifo, err);
}

static gpul_status handle_items(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct fifo_end *e = context;

	for (unsigned i = 0; i < n; i++) {
		check_items(&e->check, fifo, &items[i], 1, err);
		step_reached("handling");
	}
	return e->check.n_wrong ? gpul_fail(err, GPUL_EFORMAT, 0, "%s", e->check.wrong) : GPUL_OK;
}

/* Poll, handle and release triggers without gpul_proxy, with a point (step.h) between any two calls; release one lane after the other. */
static gpul_status poll_loop(struct fifo_end *e, gpul_error *err)
{
	gpul_status st = open_fifo(e, err);

	while (!st) {
		gpul_fifo_item items[FIFO_SLOTS];
		uint64_t upto[FIFO_LANES] = { 0 };
		unsigned n;

		step_reached("polling");
		n = gpul_fifo_poll(e->fifo, items, FIFO_SLOTS);
		if (n)
			step_reached("polled");
		st = handle_items(e, e->fifo, items, n, err);
		for (unsigned i = 0; i < n; i++)
			upto[items[i].lane] = items[i].position + 1;
		if (n)
			step_reached("releasing");
		for (unsigned lane = 0; lane < FIFO_LANES; lane++) {
			if (!upto[lane])
				continue;
			gpul_fifo_release_lane(e->fifo, lane, upto[lane]);
			step_reached(lane == 0 ? "between releases" : "released");
		}
		if (!n)
			usleep(100);
	}
	return st;
}

static gpul_status serve_fifo(struct fifo_end *e, enum serving how, gpul_error *err)
{
	gpul_status st = open_fifo(e, err);
	gpul_proxy_desc desc = { .fifos = &e->fifo,
				 .n_fifos = 1,
				 .kinds[FIFO_PUSH_KIND] = { handle_items, e },
				 .release_later = how == SERVE_HOLDING,
				 .spin_ns = how == SERVE_SLEEPING ? 1 : 0 };

	if (st)
		return st;
	e->n_watched = piece_watch(&e->piece, e->watched);
	desc.watch_fds = e->watched;
	desc.n_watch_fds = e->n_watched;
	return gpul_proxy_start(&desc, &e->proxy, err);
}

static gpul_status stop_proxy(struct fifo_end *e, gpul_error *err)
{
	gpul_status st = gpul_proxy_stop(e->proxy, err);

	e->proxy = NULL;
	piece_unwatch(&e->piece, e->watched, e->n_watched);
	return st;
}

static gpul_status wait_for_proxy_end(struct fifo_end *e, struct note *n, gpul_error *err)
{
	const uint64_t until = gpul_clock_ns() + FAULT_WAIT_MS * 1000000ull;
	gpul_status st = GPUL_OK;
	uint64_t now;

	do {
		usleep(50);
		st = gpul_proxy_failed(e->proxy, err);
		now = gpul_clock_ns();
	} while (!st && now < until);
	n->value = (int64_t)(now - *e->f->died_ns);
	return st;
}

/* Check all triggers that were not handled, including the triggers of a killed process. */
static gpul_status check_rest(struct fifo_end *e, struct note *n, gpul_error *err)
{
	gpul_fifo_item items[FIFO_SLOTS];
	gpul_status st = GPUL_OK;
	unsigned got;

	while (!st && (got = gpul_fifo_poll(e->fifo, items, FIFO_SLOTS)) != 0) {
		st = handle_items(e, e->fifo, items, got, err);
		gpul_fifo_release(e->fifo);
	}
	n->value = (int64_t)e->check.next[0];
	memcpy(n->text, &e->check.n, sizeof e->check.n);
	return st;
}

static gpul_status report_handled(const struct fifo_end *e, struct note *n)
{
	gpul_proxy_stats stats;

	gpul_proxy_get_stats(e->proxy, &stats);
	n->value = (int64_t)stats.triggers;
	return GPUL_OK;
}

/* ---- the actor ---------------------------------------------------------------------------- */

/* Execute one command; false: the command was to exit. */
static bool execute_command(struct fifo_end *e, struct note *n)
{
	gpul_error err = { 0 };
	gpul_status st = GPUL_OK;

	switch (n->command) {
	case 'o':
		st = create_memory(e, &err);
		break;
	case 'a':
		st = attach(e, &err);
		break;
	case 'v':
		st = listen_for(e, (int)n->value, n, &err);
		break;
	case 'x':
		st = release_all(e, &err);
		break;
	case 'p':
		st = push_triggers(e, n, &err);
		break;
	case 'w':
		st = wait_for_kernels(e, n->value, n, &err);
		break;
	case 'k':
		kernels_close(&e->kernels);
		break;
	case 'l':
		st = poll_loop(e, &err);
		break;
	case 's':
		st = serve_fifo(e, (enum serving)n->value, &err);
		break;
	case 'n':
		st = wait_for_proxy_end(e, n, &err);
		break;
	case 'h':
		st = report_handled(e, n);
		break;
	case 'd':
		st = gpul_proxy_drain(e->proxy, FAULT_WAIT_MS, &err);
		break;
	case 'z':
		st = stop_proxy(e, &err);
		break;
	case 'i':
		st = check_rest(e, n, &err);
		break;
	case 'b':
		counts_take(&e->baseline);
		break;
	case 'c':
		st = counts_same(&e->baseline, n->text) ? GPUL_OK : GPUL_EINVAL;
		break;
	default:
		return false;
	}
	n->good = st == GPUL_OK;
	n->status = st;
	n->native = err.native;
	if (err.text[0])
		memcpy(n->text, err.text, sizeof err.text);
	return true;
}

int fifo_end_role(const struct fault *f, int line, const void *arg)
{
	struct fifo_end e = { .f = f, .line = line, .piece = { .slot = -1 } };
	struct note n;
	gpul_error err = { 0 };

	step_arm(arg);
	step_time_ns = f->died_ns;
	if (process_open(f, &e.process, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	step_reached("open");
	while (note_receive(line, -1, &n) && execute_command(&e, &n))
		note_send(line, &n);
	if (e.proxy)
		(void)stop_proxy(&e, NULL);
	(void)release_all(&e, &err);
	process_close(&e.process);
	return 0;
}

/* ---- for the scenarios ---------------------------------------------------------------------- */

bool fifo_end_start(struct fault *f, const struct step *dies, struct child *out)
{
	return child_start(f, fifo_end_role, dies, out) || fault_failed(f, "fork failed: no more processes");
}

bool fifo_lease(struct fault *f, const struct child *owner, const struct child *guest, bool dead_is_fine)
{
	struct note served = { .command = 'v', .value = FAULT_WAIT_MS }, attached;
	bool guest_lives, owner_lives;

	if (!note_send(owner->line, &served))
		return fault_failed(f, "the owner has ended");
	guest_lives = child_do(guest, 'a', 0, &attached);
	owner_lives = note_receive(owner->line, FAULT_WAIT_MS, &served);
	if (!guest_lives || !owner_lives)
		return dead_is_fine || fault_failed(f, "the owner or the attacher ended before they shared memory");
	if (!attached.good)
		return fault_failed(f, "attach: %s", attached.text);
	if (!served.good || served.event != GPUL_IPC_ATTACHED)
		return fault_failed(f, "the owner reported %s instead of ATTACHED: %s",
				    gpul_ipc_event_name((gpul_ipc_event_kind)served.event), served.good ? "" : served.text);
	return true;
}

bool fifo_push(struct fault *f, const struct child *kernels, const struct pushes *p)
{
	struct note n = { .command = 'p' };

	memcpy(n.text, p, sizeof *p);
	if (!note_send(kernels->line, &n) || !note_receive(kernels->line, FAULT_WAIT_MS, &n))
		return fault_failed(f, "'p': no answer");
	return n.good || fault_failed(f, "'p': %s", n.text);
}

bool fifo_pushed(struct fault *f, const struct child *kernels, bool aborts, struct pushed *out)
{
	struct note n = { .command = 'w', .value = aborts };

	/* twice the usual time, because the actor itself waits for up to FAULT_WAIT_MS */
	if (!note_send(kernels->line, &n) || !note_receive(kernels->line, 2 * FAULT_WAIT_MS, &n))
		return fault_failed(f, "'w': no answer");
	if (!n.good)
		return fault_failed(f, "'w': %s", n.text);
	memcpy(out, n.text, sizeof *out);
	return true;
}

bool fifo_checked(struct fault *f, const struct child *proxy, uint64_t *n_right, uint64_t *next)
{
	struct note n;

	if (!child_do(proxy, 'i', 0, &n))
		return fault_failed(f, "'i': no answer");
	if (!n.good)
		return fault_failed(f, "wrong triggers arrived: %s", n.text);
	memcpy(n_right, n.text, sizeof *n_right);
	*next = (uint64_t)n.value;
	return true;
}

bool fifo_lost(struct fault *f, const struct child *survivor)
{
	struct note n;

	if (!child_do(survivor, 'v', FAULT_WAIT_MS, &n) || !n.good)
		return fault_failed(f, "'v': %s", n.text);
	if (n.event != GPUL_IPC_PEER_DIED && n.event != GPUL_IPC_OWNER_DIED)
		return fault_failed(f, "the survivor reported %s", gpul_ipc_event_name((gpul_ipc_event_kind)n.event));
	return true;
}
