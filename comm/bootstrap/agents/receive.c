/* receive.c — handles the reports of the host launchers (ready, output, end of a rank), and the loss of a host. */
#include "comm/bootstrap/agents/launch_hosts_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

void gpul_hosts_fail(struct hosts_launch *h, int exit_status, gpul_status status, int native, const char *text)
{
	if (h->why.status)
		return;
	h->exit_status = exit_status;
	gpul_fail(&h->why, status, native, "%s", text);
}

static void spread_end(struct hosts_launch *h, const struct host_part *from, int rank, const struct frame_end *e)
{
	for (int i = 0; i < h->n_parts; i++) {
		struct host_part *p = &h->parts[i];

		if (p != from && p->ready && !p->done && !p->lost)
			(void)gpul_frame_write(p->agent.to, FRAME_END, rank, e, sizeof *e, false);
	}
}

static void note_end(struct hosts_launch *h, const struct host_part *p, int rank, const struct frame_end *e)
{
	h->l.ranks[rank].pid = e->pid;
	h->l.ranks[rank].forced = e->forced;
	gpul_relay_rest(h, rank);
	gpul_launch_note_end(&h->l, rank, e->status, e->text);
	spread_end(h, p, rank, e);
}

/* Count the ranks of a lost host as failed, so that the other hosts' ranks get the grace period. */
static void fail_ranks(struct hosts_launch *h, const struct host_part *p, const char *text)
{
	struct frame_end e = { .status = 1 << 8 };

	snprintf(e.text, sizeof e.text, "%.190s", text);
	for (int r = p->first; r < p->first + p->n; r++)
		if (h->l.ranks[r].started && !h->l.ranks[r].ended)
			note_end(h, p, r, &e);
}

void gpul_hosts_lose(struct hosts_launch *h, struct host_part *p, const char *what)
{
	char last[120], text[sizeof h->why.text], held[140] = "";

	if (p->lost || p->done)
		return;
	p->lost = true;
	gpul_relay_last_line(p, last, sizeof last);
	if (last[0])
		snprintf(held, sizeof held, ": %s", last);
	snprintf(text, sizeof text, "host %.60s: %s%s", p->name, what, held);
	if (h->l.stage == STAGE_RUNNING || !p->ready)
		gpul_hosts_fail(h, 1, GPUL_EUNSUPPORTED, 0, text);
	fail_ranks(h, p, text);
	gpul_agent_end(&p->agent);
}

/* ---- frames ------------------------------------------------------------------------------------------------------- */

static void hear_ready(struct hosts_launch *h, struct host_part *p, size_t n_bytes)
{
	struct frame_texts t = { .at = (char *)h->payload, .n = n_bytes };

	snprintf(p->address, sizeof p->address, "%s", gpul_frame_next_text(&t));
	snprintf(p->no_address, sizeof p->no_address, "%s", gpul_frame_next_text(&t));
	if (t.failed) {
		gpul_hosts_lose(h, p, "gpuload on that host sent a malformed address");
		return;
	}
	p->ready = true;
	gpul_relay_held(p);
}

static void hear_frame(struct hosts_launch *h, struct host_part *p, const struct frame_head *head)
{
	const int rank = head->number;
	const bool is_rank = rank >= p->first && rank < p->first + p->n;
	struct frame_end e;
	char text[sizeof h->why.text];

	if (head->type == FRAME_READY && !p->ready) {
		hear_ready(h, p, head->n_bytes);
	} else if ((head->type == FRAME_OUT || head->type == FRAME_ERR) && is_rank) {
		gpul_relay_rank(h, rank, head->type == FRAME_ERR, h->payload, head->n_bytes);
	} else if (head->type == FRAME_END && is_rank && head->n_bytes == sizeof e) {
		memcpy(&e, h->payload, sizeof e);
		e.text[sizeof e.text - 1] = '\0';
		if (!h->l.ranks[rank].ended)
			note_end(h, p, rank, &e);
	} else if (head->type == FRAME_FAILED) {
		snprintf(text, sizeof text, "host %.60s: %.*s", p->name, (int)(head->n_bytes < 180 ? head->n_bytes : 180),
			 (const char *)h->payload);
		gpul_hosts_fail(h, head->number, GPUL_ESYS, 0, text);
		fail_ranks(h, p, text);
	} else if (head->type == FRAME_DONE) {
		p->done = true;
	} else if (head->type != FRAME_BEAT) {
		gpul_hosts_lose(h, p, "gpuload on that host sent a malformed report");
	}
}

/* Read the greeting ("gpuload-part VERSION"), and skip what a login shell prints before it.  Returns false if the greeting has not
 * arrived, or the host is lost. */
static bool take_greeting(struct hosts_launch *h, struct host_part *p)
{
	static const char wanted[] = LAUNCH_GREETING GPUL_VERSION, any[] = LAUNCH_GREETING;
	char *end, text[160];

	while ((end = memchr(p->in.at, '\n', p->in.n))) {
		const size_t n = (size_t)(end - (char *)p->in.at), used = n + 1;

		p->greeted = n == sizeof wanted - 1 && !memcmp(p->in.at, wanted, n);
		if (!p->greeted && n >= sizeof any - 1 && !memcmp(p->in.at, any, sizeof any - 1)) {
			const char *theirs = (const char *)p->in.at + sizeof any - 1;

			snprintf(text, sizeof text, "that host has gpuload version %.*s, but this host has version " GPUL_VERSION,
				 n < 40 ? (int)(n - sizeof any + 1) : 20, theirs);
			gpul_hosts_lose(h, p, text);
			return false;
		}
		p->in.n -= used;
		memmove(p->in.at, p->in.at + used, p->in.n);
		if (p->greeted)
			return true;
	}
	if (p->in.n == sizeof p->in.at)
		gpul_hosts_lose(h, p, "the agent's output does not come from gpuload");
	return false;
}

/* Explain why the agent's output has been closed: the agent has ended, or is about to end. */
static void explain_end(struct hosts_launch *h, struct host_part *p)
{
	char end[80], text[200], bytes[HELD_BYTES];
	ssize_t n;

	for (int ms = 0; ms < 1000 && !gpul_agent_has_ended(&p->agent); ms += 10)
		(void)usleep(10000);
	while (p->agent.err >= 0 && (n = read(p->agent.err, bytes, sizeof bytes)) > 0)
		gpul_relay_agent(p, bytes, (size_t)n);
	if (!p->agent.ended)
		snprintf(end, sizeof end, "has closed its standard output");
	else
		gpul_agent_describe_end(&p->agent, end, sizeof end);
	snprintf(text, sizeof text, "%s %s%s", p->here ? "gpuload on this host" : "the agent", end,
		 p->ready  ? ""
		 : p->here ? ""
			   : " and has not started gpuload");
	gpul_hosts_lose(h, p, text);
}

void gpul_hosts_receive(struct hosts_launch *h, struct host_part *p)
{
	const bool open = gpul_frame_fill(&p->in);
	struct frame_head head;
	frame_got got = FRAME_GOT_NOTHING;

	p->received_ns = gpul_clock_ns();
	if (!p->greeted && !take_greeting(h, p) && (open || p->lost))
		return;
	while (p->greeted && !p->lost && !p->done && (got = gpul_frame_take(&p->in, &head, h->payload)) == FRAME_GOT_ONE)
		hear_frame(h, p, &head);
	if (got == FRAME_GOT_BAD)
		gpul_hosts_lose(h, p, "gpuload on that host sent a malformed report");
	if (!open && !p->done)
		explain_end(h, p);
}
