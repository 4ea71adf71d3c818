/* event.c — sends events to the client. The caller holds the lock, so that an event is never sent between the lines of an answer. */
#include "softcuda/tools/debug/debug_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>

void gpul_debug_send(struct debug *d, const char *text, size_t bytes)
{
	while (bytes && d->client >= 0) {
		const ssize_t n = send(d->client, text, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

void gpul_debug_event(struct debug *d, const char *fmt, ...)
{
	char text[2048] = "! ";
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + 2, sizeof text - 3, fmt, ap);
	va_end(ap);
	n = n < (int)sizeof text - 4 ? n : (int)sizeof text - 4;
	for (int k = 0; k < n; k++)
		text[2 + k] = text[2 + k] == '\n' ? ' ' : text[2 + k];
	text[2 + n] = '\n';
	gpul_debug_send(d, text, (size_t)n + 3);
}
