/* shares.c — gpuload shares: lists the shares of this user, their owners, and attached processes. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/share/share.h"
#include "cli/lib/message.h"
#include "core/thread/parallel.h"
#include "ipc/place.h"

enum { SHARES_VERBOSE, SHARES_NAMES, SHARES_JSON };

/* clang-format off */
static const struct cli_opt shares_opts[] = {
	[SHARES_VERBOSE] = { "verbose", NULL, "print which sockets of ended processes were removed", NULL },
	[SHARES_NAMES] = { "names", NULL, "print only names, including those of ended owners, without querying the owners", NULL },
	[SHARES_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char shares_details[] = "Queries the owner of each name; an owner that does not answer within 0.2 s is marked. The\n"
				     "socket of an owner that has ended is removed. A process of another pid namespace is printed as -.\n"
				     "Needs no driver and no GPU.\n";

/* An owner that does not answer within ANSWER_MS is stopped or busy.  MAX_THREADS owners are queried at the same time, so that 64
 * stopped owners take only twice as long as one. */
enum { ANSWER_MS = 200, MAX_THREADS = 32, PIDS_SHOWN = 4 };

struct row {
	const char *name;
	gpul_error why; /* why the owner did not answer; status GPUL_OK: it did answer, and share is filled in */
	bool removed;   /* the owner had died, and its socket has been removed */
	gpul_ipc_share share;
};

struct rows {
	struct row *at;
	size_t n;
	atomic_size_t next;
};

/* ---- queries ----------------------------------------------------------------------- */

/* Runs in each thread: queries one owner after the other, until all have been queried. */
static void query_owners(void *user)
{
	struct rows *rows = user;
	size_t i;

	while ((i = atomic_fetch_add(&rows->next, 1)) < rows->n) {
		struct row *r = &rows->at[i];

		(void)gpul_ipc_request(r->name, ANSWER_MS, &r->share, &r->why);
		if (r->why.status == GPUL_ESYS && r->why.native == ECONNREFUSED)
			(void)gpul_ipc_place_clear(r->name, &r->removed, NULL);
	}
}

/* ---- text -------------------------------------------------------------------------- */

/* One line of the table; each cell is large enough for its longest text. */
struct line {
	char name[GPUL_IPC_PATH_BYTES], owner[48], kind[16], size[SHARE_SIZE_BYTES], type[SHARE_SHAPE_BYTES], peers[160];
};

static void write_owner(const gpul_ipc_share *s, char *buf, size_t buf_bytes)
{
	char command[SHARE_COMMAND_BYTES];

	if (s->pid > 0)
		snprintf(buf, buf_bytes, "%ld %s", (long)s->pid, share_command_text(s->pid, command));
	else
		snprintf(buf, buf_bytes, "-");
}

static void write_peers(const gpul_ipc_share *s, char *buf, size_t buf_bytes)
{
	int n = snprintf(buf, buf_bytes, "%u%s", s->n_peers, s->n_peers ? ":" : "");

	for (unsigned i = 0; i < s->n_peers && i < PIDS_SHOWN; i++) {
		if (s->peers[i].pid > 0)
			n += snprintf(buf + n, buf_bytes - (size_t)n, " %ld", (long)s->peers[i].pid);
		else
			n += snprintf(buf + n, buf_bytes - (size_t)n, " -");
	}
	if (s->n_peers > PIDS_SHOWN)
		snprintf(buf + n, buf_bytes - (size_t)n, " ...");
}

static bool is_silent(const struct row *r)
{
	return r->why.status == GPUL_ESYS && r->why.native == ETIMEDOUT;
}

static void write_row(const struct row *r, struct line *out)
{
	const gpul_ipc_share *s = &r->share;

	*out = (struct line){ .owner = "-", .kind = "-", .size = "-", .type = "-" };
	snprintf(out->name, sizeof out->name, "%s", r->name);
	if (r->why.status) {
		snprintf(out->peers, sizeof out->peers, "%.130s%s", r->why.text, is_silent(r) ? ": stopped, or busy" : "");
		return;
	}
	write_owner(s, out->owner, sizeof out->owner);
	snprintf(out->kind, sizeof out->kind, "%s", gpul_mem_kind_name(s->kind));
	share_size_text(s->bytes, out->size);
	share_shape_text(&s->shape, out->type);
	write_peers(s, out->peers, sizeof out->peers);
}

static int max_width(int width, const char *text)
{
	int n = (int)strlen(text);

	return n > width ? n : width;
}

static gpul_status print_text(const struct rows *rows, gpul_error *err)
{
	struct line *lines = calloc(rows->n + 1, sizeof *lines);
	int name = 0, owner = 0, kind = 0, size = 0, type = 0;
	size_t n = 0;

	if (!lines)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu lines", rows->n);
	lines[n++] = (struct line){ "NAME", "OWNER", "KIND", "SIZE", "TYPE", "ATTACHED" };
	for (size_t i = 0; i < rows->n; i++)
		if (!rows->at[i].removed)
			write_row(&rows->at[i], &lines[n++]);
	for (size_t i = 0; i < n; i++) {
		name = max_width(name, lines[i].name);
		owner = max_width(owner, lines[i].owner);
		kind = max_width(kind, lines[i].kind);
		size = max_width(size, lines[i].size);
		type = max_width(type, lines[i].type);
	}
	for (size_t i = 0; i < n && n > 1; i++)
		printf("%-*s  %-*s  %-*s  %-*s  %-*s  %s\n", name, lines[i].name, owner, lines[i].owner, kind, lines[i].kind, size,
		       lines[i].size, type, lines[i].type, lines[i].peers);
	free(lines);
	return GPUL_OK;
}

/* ---- JSON -------------------------------------------------------------------------- */

static const char *state_of(const struct row *r)
{
	if (r->why.status == GPUL_OK)
		return "live";
	if (is_silent(r))
		return "silent";
	if (r->why.status == GPUL_ESYS && r->why.native == ECONNREFUSED)
		return r->removed ? "removed" : "dead";
	return "failed";
}

static gpul_status print_json(const struct rows *rows, gpul_error *err)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_begin(&j, "shares", '[');
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *r = &rows->at[i];

		json_begin(&j, NULL, '{');
		json_text(&j, "name", r->name);
		json_text(&j, "state", state_of(r));
		if (r->why.status)
			json_text(&j, "why", r->why.text);
		else
			share_json_share(&j, &r->share);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
	return json_print(&j, err);
}

/* ---- the command ------------------------------------------------------------------- */

static gpul_status list_shares(char **names, size_t n_names, const struct cli_args *args, gpul_error *err)
{
	struct rows rows = { .at = calloc(n_names + 1, sizeof *rows.at), .n = n_names };
	gpul_status st;

	if (!rows.at)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu names", n_names);
	for (size_t i = 0; i < n_names; i++)
		rows.at[i].name = names[i];
	gpul_parallel(n_names < MAX_THREADS ? (unsigned)n_names : MAX_THREADS, query_owners, &rows);
	for (size_t i = 0; i < n_names && cli_value(args, SHARES_VERBOSE); i++)
		if (rows.at[i].removed)
			cli_message("shares", "removed %s.sock: the process that shared it has ended", names[i]);
	st = cli_value(args, SHARES_JSON) ? print_json(&rows, err) : print_text(&rows, err);
	free(rows.at);
	return st;
}

static int cmd_shares(const struct cli_args *args, gpul_error *err)
{
	char **names = NULL;
	size_t n = 0;
	gpul_status st;

	if (args->n_operands) {
		gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s'; gpuload map NAME shows one share", args->operands[0]);
		return CLI_USAGE;
	}
	st = gpul_ipc_places(&names, &n, err);
	if (st == GPUL_OK && cli_value(args, SHARES_NAMES))
		for (size_t i = 0; i < n; i++)
			puts(names[i]);
	else if (st == GPUL_OK)
		st = list_shares(names, n, args, err);
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return cli_exit_code(st);
}

const struct cli_cmd cli_shares = {
	"shares", "", "list shares: owner, kind, size, attached processes", shares_details, shares_opts, cmd_shares, NULL, NULL,
};
