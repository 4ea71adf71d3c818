/* relay.c — copies the output of the ranks and agents to the output of the launcher. */
#include "comm/bootstrap/agents/launch_hosts_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file/io.h"

/* Write output of a rank or an agent.  The output is lost if nobody reads the launcher's output any more; the rank gets no SIGPIPE,
 * because the launcher still reads the rank's pipe. */
static void write_out(bool is_error, const void *bytes, size_t n_bytes)
{
	(void)gpul_write_all(is_error ? STDERR_FILENO : STDOUT_FILENO, bytes, n_bytes);
}

static void write_line(struct hosts_launch *h, int rank, bool is_error)
{
	struct line *line = &h->lines[rank][is_error];
	char text[LINE_BYTES + 16];
	int n = 0;

	if (line->n == 0)
		return;
	if (h->o->tag)
		n = snprintf(text, 16, "[%d] ", rank);
	memcpy(text + n, line->at, line->n);
	n += (int)line->n;
	if (h->o->tag && text[n - 1] != '\n')
		text[n++] = '\n';
	write_out(is_error, text, (size_t)n);
	line->n = 0;
}

void gpul_relay_rank(struct hosts_launch *h, int rank, bool is_error, const void *bytes, size_t n_bytes)
{
	struct line *line = &h->lines[rank][is_error];
	const char *from = bytes;

	for (size_t i = 0; i < n_bytes; i++) {
		line->at[line->n++] = from[i];
		if (from[i] == '\n' || line->n == sizeof line->at)
			write_line(h, rank, is_error);
	}
}

void gpul_relay_rest(struct hosts_launch *h, int rank)
{
	write_line(h, rank, false);
	write_line(h, rank, true);
}

void gpul_relay_agent(struct host_part *p, const char *bytes, size_t n_bytes)
{
	size_t n = n_bytes < sizeof p->held - p->n_held ? n_bytes : sizeof p->held - p->n_held;

	if (p->ready) {
		write_out(true, bytes, n_bytes);
		return;
	}
	memcpy(p->held + p->n_held, bytes, n);
	p->n_held += n;
}

void gpul_relay_held(struct host_part *p)
{
	write_out(true, p->held, p->n_held);
	p->n_held = 0;
}

void gpul_relay_last_line(const struct host_part *p, char *text, size_t text_bytes)
{
	size_t end = p->n_held, begin, n = 0;

	while (end > 0 && (unsigned char)p->held[end - 1] <= ' ')
		end--;
	for (begin = end; begin > 0 && p->held[begin - 1] != '\n';)
		begin--;
	for (; begin < end && n + 1 < text_bytes; begin++)
		text[n++] = (unsigned char)p->held[begin] < ' ' ? '?' : p->held[begin];
	text[n] = '\0';
}
