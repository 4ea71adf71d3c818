/* share_event.c — prints the events of a share, one per line, as text or JSON, and flushes each line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/share/share.h"

gpul_status share_flush(gpul_error *err)
{
	if (fflush(stdout) || ferror(stdout))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot write to stdout: %s", strerror(errno));
	return GPUL_OK;
}

gpul_status share_json_print(struct json *j, gpul_error *err)
{
	gpul_status st = json_print(j, err);

	return st ? st : share_flush(err);
}

static gpul_status print_event_json(const char *name, const gpul_ipc_event *e, int n, gpul_error *err)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_text(&j, "event", gpul_ipc_event_name(e->kind));
	json_text(&j, "name", name);
	if (e->pid)
		json_u64(&j, "pid", (uint64_t)e->pid);
	else
		json_null(&j, "pid");
	json_u64(&j, "uid", e->uid);
	json_i64(&j, "slot", e->peer);
	if (n >= 0)
		json_i64(&j, "attached", n);
	json_text(&j, "why", e->why.text);
	json_end(&j, '}');
	return share_json_print(&j, err);
}

gpul_status share_print_event(const char *name, const gpul_ipc_event *e, int n, bool json, gpul_error *err)
{
	if (json)
		return print_event_json(name, e, n, err);
	printf("%-10s %s: ", gpul_ipc_event_name(e->kind), name);
	if (e->pid > 0)
		printf("pid %ld", (long)e->pid);
	else
		printf("a process of another pid namespace");
	if (e->uid != geteuid())
		printf(", user %lu", (unsigned long)e->uid);
	if (n >= 0 && e->kind != GPUL_IPC_REFUSED)
		printf(", %d attached", n);
	printf("%s%s\n", e->why.text[0] ? ": " : "", e->why.text);
	return share_flush(err);
}

gpul_status share_print_end(const char *name, const char *why, bool json, gpul_error *err)
{
	struct json j = { 0 };

	if (!json) {
		printf("%-10s %s: %s\n", "ENDED", name, why);
		return share_flush(err);
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "event", "ENDED");
	json_text(&j, "name", name);
	json_text(&j, "why", why);
	json_end(&j, '}');
	return share_json_print(&j, err);
}
