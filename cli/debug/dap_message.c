/* dap_message.c — sends messages to the editor, and numbers frames and variables. */
#include "cli/debug/dap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/io.h"

void dap_send(struct dap *d, struct json *j)
{
	char head[64];
	const int n = snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", j->out.n);

	if (j->out.failed || !gpul_write_all(STDOUT_FILENO, head, (size_t)n) || !gpul_write_all(STDOUT_FILENO, j->out.at, j->out.n))
		d->quits = true; /* the editor has closed the connection */
	out_free(&j->out);
}

void dap_event_begin(struct dap *d, struct json *j, const char *event)
{
	*j = (struct json){ 0 };
	json_begin(j, NULL, '{');
	json_i64(j, "seq", ++d->seq);
	json_text(j, "type", "event");
	json_text(j, "event", event);
	json_begin(j, "body", '{');
}

void dap_event_end(struct dap *d, struct json *j)
{
	json_end(j, '}');
	json_end(j, '}');
	dap_send(d, j);
}

/* ---- numbers of frames and variables --------------------------------------------------------------------------------- */

void dap_forget(struct dap *d)
{
	for (size_t k = 0; k < d->container.n; k++)
		free(d->container.at[k].name);
	d->container.n = d->lane.n = 0;
}

unsigned dap_lane_number(struct dap *d, const struct dap_lane *lane)
{
	struct dap_lane *at = gpul_array_push(&d->lane);

	if (!at)
		return 0;
	*at = *lane;
	return (unsigned)d->lane.n;
}

const struct dap_lane *dap_find_lane(const struct dap_call *c, int64_t number)
{
	if (number > 0 && (uint64_t)number <= c->d->lane.n)
		return &c->d->lane.at[number - 1];
	gpul_fail(c->err, GPUL_EINVAL, 0, "stack frame %lld no longer exists, because the kernel has continued", (long long)number);
	return NULL;
}

unsigned dap_container_number(struct dap *d, const struct dap_container *c)
{
	struct dap_container *at = gpul_array_push(&d->container);

	if (!at)
		return 0;
	*at = *c;
	at->name = c->name ? strdup(c->name) : NULL;
	return (unsigned)d->container.n;
}
