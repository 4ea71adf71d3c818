/* dap.c — gpuload dap: a debug adapter on stdin and stdout: its main loop, and the requests that start and end a session. */
#include "cli/debug/dap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/debug/debug.h"

enum { MAX_WORDS = 200, MAX_MESSAGE = 64 << 20 };

/* ---- messages ---------------------------------------------------------------------------------------------------------- */

static void send_output(struct dap *d, const char *category, const char *text, size_t n)
{
	struct json j;

	dap_event_begin(d, &j, "output");
	json_text(&j, "category", category);
	json_chars(&j, "output", text, n);
	dap_event_end(d, &j);
}

static void send_response(struct dap *d, const struct json_value *request, const struct json *body, const gpul_error *err)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_i64(&j, "seq", ++d->seq);
	json_text(&j, "type", "response");
	json_i64(&j, "request_seq", json_get_integer(request, "seq", 0));
	json_bool(&j, "success", !err->status);
	json_text(&j, "command", json_get_text(request, "command", ""));
	if (err->status) {
		json_text(&j, "message", err->text);
		json_begin(&j, "body", '{');
		json_begin(&j, "error", '{');
		json_u64(&j, "id", 1);
		json_text(&j, "format", err->text);
		json_bool(&j, "showUser", true);
		json_end(&j, '}');
		json_end(&j, '}');
	} else {
		out_text(&j.out, ",\"body\":");
		out_bytes(&j.out, body->out.at, body->out.n);
	}
	json_end(&j, '}');
	dap_send(d, &j);
}

/* ---- requests that start and end a session ---------------------------------------------------------------------------- */

static gpul_status do_initialize(const struct dap_call *c)
{
	static const char *const able[] = {
		"supportsConfigurationDoneRequest",  "supportsFunctionBreakpoints",  "supportsConditionalBreakpoints",
		"supportsHitConditionalBreakpoints", "supportsEvaluateForHovers",    "supportsStepBack",
		"supportsSteppingGranularity",       "supportsDataBreakpoints",      "supportsReadMemoryRequest",
		"supportsDisassembleRequest",        "supportsExceptionInfoRequest", "supportsTerminateRequest",
		"supportTerminateDebuggee",
	};

	for (size_t k = 0; k < sizeof able / sizeof able[0]; k++)
		json_bool(c->body, able[k], true);
	return GPUL_OK;
}

static void send_initialized(struct dap *d)
{
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_i64(&j, "seq", ++d->seq);
	json_text(&j, "type", "event");
	json_text(&j, "event", "initialized");
	json_end(&j, '}');
	dap_send(d, &j);
}

static gpul_status make_pipe(int ends[2], gpul_error *err)
{
	return pipe2(ends, O_CLOEXEC) ? gpul_fail(err, GPUL_ESYS, errno, "cannot create a pipe: %s", strerror(errno)) : GPUL_OK;
}

static void set_environment(const struct json_value *env)
{
	for (const struct json_value *v = env && env->kind == JSON_OBJECT ? env->first : NULL; v; v = v->next) {
		if (v->kind == JSON_TEXT)
			setenv(v->key, v->text, 1);
		else if (v->kind == JSON_NULL)
			unsetenv(v->key);
	}
}

/* The request "launch".  Arguments: program, args, cwd, env, native (true: execute program itself), stopOnEntry, stopAtEnd. */
static gpul_status do_launch(const struct dap_call *c)
{
	struct dap *d = c->d;
	const struct json_value *args = json_get(c->args, "args");
	const char *words[MAX_WORDS + 2] = { json_get_text(c->args, "program", NULL) };
	struct debug_start how = { .words = words,
				   .is_program = json_get_bool(c->args, "native", false),
				   .folder = json_get_text(c->args, "cwd", NULL) };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	char current[PATH_MAX];
	size_t n = 1;
	gpul_status st;

	if (d->link)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "a program is being debugged already");
	if (!words[0])
		return gpul_fail(c->err, GPUL_EINVAL, 0,
				 "launch needs \"program\": a file that gpuload run accepts, or a program with \"native\": true");
	for (const struct json_value *a = args ? args->first : NULL; a && n < MAX_WORDS; a = a->next)
		if (a->kind == JSON_TEXT)
			words[n++] = a->text;
	st = make_pipe(out, c->err);
	if (!st)
		st = make_pipe(err, c->err);
	if (!st) {
		set_environment(json_get(c->args, "env"));
		how.out = out[1];
		how.err = err[1];
		st = debug_link_start(&how, &d->link, c->err);
	}
	close(out[1]);
	close(err[1]);
	d->out = out[0];
	d->err = err[0];
	d->entry = json_get_bool(c->args, "stopOnEntry", false);
	d->at_end = json_get_bool(c->args, "stopAtEnd", false);
	d->folder = how.folder ? strdup(how.folder) : getcwd(current, sizeof current) ? strdup(current) : NULL;
	return st;
}

/* The request "attach".  Argument: address, the path or port on which the program listens. */
static gpul_status do_attach(const struct dap_call *c)
{
	struct dap *d = c->d;
	const int64_t port = json_get_integer(c->args, "port", 0);
	char text[24];
	const char *address;

	snprintf(text, sizeof text, "%lld", (long long)port);
	address = json_get_text(c->args, "address", port ? text : NULL);
	if (d->link)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "a program is being debugged already");
	if (!address)
		return gpul_fail(c->err, GPUL_EINVAL, 0,
				 "attach needs \"address\": the path or port of GPULOAD_SOFT_TOOLS=debug:listen=ADDRESS");
	d->attached = true;
	d->entry = json_get_bool(c->args, "stopOnEntry", false);
	d->at_end = json_get_bool(c->args, "stopAtEnd", false);
	free(d->folder); /* a failed attach may have set the folder */
	d->folder = json_get_text(c->args, "cwd", NULL) ? strdup(json_get_text(c->args, "cwd", NULL)) : NULL;
	return debug_link_attach(address, &d->link, c->err);
}

static gpul_status do_configuration_done(const struct dap_call *c)
{
	struct dap *d = c->d;

	if (d->entry)
		(void)debug_link_ask(d->link, NULL, NULL, "set\tentry\t1");
	if (d->at_end)
		(void)debug_link_ask(d->link, NULL, NULL, "set\tend\t1");
	/* a failure is ignored: kernels of an attached program may already be running */
	(void)debug_link_ask(d->link, NULL, NULL, "go\tfree");
	d->configured = true;
	return GPUL_OK;
}

/* End the session.  Also end the program, unless the adapter has attached to it and the editor does not request its end. */
static gpul_status do_disconnect(const struct dap_call *c)
{
	struct dap *d = c->d;

	(void)debug_link_close(d->link);
	d->link = NULL;
	d->quits = true;
	return GPUL_OK;
}

static gpul_status do_terminate(const struct dap_call *c)
{
	if (c->d->link && debug_link_pid(c->d->link))
		kill(-debug_link_pid(c->d->link), SIGKILL);
	return GPUL_OK;
}

static gpul_status do_nothing(const struct dap_call *c)
{
	(void)c;
	return GPUL_OK;
}

/* clang-format off */
static const struct dap_handler session[] = {
	{ "initialize", do_initialize }, { "launch", do_launch }, { "attach", do_attach }, { "configurationDone", do_configuration_done },
	{ "disconnect", do_disconnect }, { "terminate", do_terminate }, { "setExceptionBreakpoints", do_nothing }, { 0 },
};
/* clang-format on */

static const struct dap_handler *find_handler(const char *command, bool *needs_link)
{
	static const struct dap_handler *const tables[] = { session, dap_control, dap_values };

	for (size_t t = 0; t < 3; t++) {
		*needs_link = t > 0 || !strcmp(command, "configurationDone");
		for (const struct dap_handler *h = tables[t]; h->command; h++)
			if (!strcmp(h->command, command))
				return h;
	}
	return NULL;
}

static void answer_request(struct dap *d, const struct json_value *request)
{
	const char *command = json_get_text(request, "command", "");
	bool needs_link;
	const struct dap_handler *h = find_handler(command, &needs_link);
	struct json body = { 0 };
	gpul_error err = { 0 };
	const struct dap_call c = { .d = d, .args = json_get(request, "arguments"), .body = &body, .err = &err };
	gpul_status st;

	json_begin(&body, NULL, '{');
	if (!h)
		st = gpul_fail(&err, GPUL_EUNSUPPORTED, 0, "the request %s is not supported", command);
	else if (needs_link && !d->link)
		st = gpul_fail(&err, GPUL_EINVAL, 0, "%s: no program has been launched", command);
	else
		st = h->run(&c);
	if (st && !err.status)
		gpul_fail(&err, st, 0, "%s failed", command);
	json_end(&body, '}');
	send_response(d, request, &body, &err);
	out_free(&body.out);
	if (!st && (!strcmp(command, "launch") || !strcmp(command, "attach")))
		send_initialized(d);
}

/* ---- events and output of the program ----------------------------------------------------------------------------------- */

static void send_stopped(struct dap *d, const struct debug_row *event)
{
	const char *reason = debug_row_get(event, "reason"), *text = debug_row_get(event, "text");
	const uint64_t id = debug_row_number(event, "id");
	const bool has_warp = *debug_row_get(&d->at, "kernel");
	struct json j;

	dap_event_begin(d, &j, "stopped");
	json_text(&j, "reason", reason);
	if (*text) {
		json_text(&j, "description", text);
		json_text(&j, "text", text);
	}
	json_i64(&j, "threadId",
		 has_warp ? dap_thread_id(debug_row_number(&d->at, "block"), (unsigned)debug_row_number(&d->at, "warp"), -1) : 1);
	json_bool(&j, "allThreadsStopped", true);
	if (id) {
		json_begin(&j, "hitBreakpointIds", '[');
		json_u64(&j, NULL, id);
		json_end(&j, ']');
	}
	dap_event_end(d, &j);
}

static void take_stop(struct dap *d, const struct debug_row *event)
{
	const uint64_t block = debug_row_number(&d->at, "block");
	const unsigned warp = (unsigned)debug_row_number(&d->at, "warp"), lane = d->chosen_lane;
	struct debug_rows rows = { 0 };

	debug_row_free(&d->at);
	if (!debug_link_ask(d->link, &rows, NULL, "status") && rows.row.n) {
		d->at = rows.row.at[0];
		rows.row.at[0].text = NULL;
	}
	debug_rows_free(&rows);
	d->stopped = !strcmp(debug_row_get(&d->at, "state"), "stopped");
	d->chosen_lane = (unsigned)debug_row_number(event, "lane");
	if (!strcmp(debug_row_get(event, "reason"), "step") && block == debug_row_number(&d->at, "block") &&
	    warp == debug_row_number(&d->at, "warp") &&
	    debug_row_hex(&d->at, "mask") >> lane & 1) /* keep the lane that was selected before the step */
		d->chosen_lane = lane;
	dap_forget(d);
	if (d->stopped)
		send_stopped(d, event);
}

static void take_event(struct dap *d, const struct debug_row *event)
{
	const char *name = event->field[0];
	char text[600];
	struct json j;

	if (!strcmp(name, "stopped")) {
		take_stop(d, event);
	} else if (!strcmp(name, "launch")) {
		snprintf(text, sizeof text, "launch of %s, grid %s, block %s\n", debug_row_get(event, "kernel"),
			 debug_row_get(event, "grid"), debug_row_get(event, "block"));
		send_output(d, "console", text, strlen(text));
	} else if (!strcmp(name, "breakpoint")) {
		dap_event_begin(d, &j, "breakpoint");
		json_text(&j, "reason", "changed");
		json_begin(&j, "breakpoint", '{');
		json_u64(&j, "id", debug_row_number(event, "id"));
		json_bool(&j, "verified", debug_row_number(event, "line"));
		if (debug_row_number(event, "line"))
			json_u64(&j, "line", debug_row_number(event, "line"));
		json_end(&j, '}');
		dap_event_end(d, &j);
	}
}

/* Forward the program's output to the editor.  Returns false if the program has closed it. */
static bool pass_output(struct dap *d, int *fd, const char *category)
{
	char text[4096];
	const ssize_t n = *fd >= 0 ? read(*fd, text, sizeof text) : 0;

	if (n > 0) {
		send_output(d, category, text, (size_t)n);
		return true;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return false;
}

/* The connection to the debugger has ended, so the program has ended, too, or ends soon. */
static void end_program(struct dap *d)
{
	const bool attached = d->attached;
	int status;
	struct json j;

	while (pass_output(d, &d->out, "stdout"))
		;
	while (pass_output(d, &d->err, "stderr"))
		;
	status = debug_link_close(d->link);
	d->link = NULL;
	d->stopped = false;
	if (!attached) {
		dap_event_begin(d, &j, "exited");
		json_i64(&j, "exitCode", status);
		dap_event_end(d, &j);
	}
	dap_event_begin(d, &j, "terminated");
	dap_event_end(d, &j);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------ */

/* Returns the length of the header, and sets *bytes to the length of the message after it; 0: the header is not complete yet. */
static size_t read_header(struct dap *d, size_t *bytes)
{
	const char *end = d->in.n ? memmem(d->in.at, d->in.n, "\r\n\r\n", 4) : NULL, *length;

	if (!end)
		return 0;
	length = memmem(d->in.at, (size_t)(end - d->in.at), "Content-Length:", 15);
	*bytes = length ? strtoul(length + 15, NULL, 10) : 0;
	if (!length || *bytes > MAX_MESSAGE) {
		fprintf(stderr,
			"gpuload dap: a message without Content-Length, or of more than %d bytes: the editor does not speak the Debug Adapter "
			"Protocol\n",
			MAX_MESSAGE);
		d->quits = true;
		return 0;
	}
	return (size_t)(end - d->in.at) + 4;
}

static void take_requests(struct dap *d)
{
	size_t head, bytes = 0;

	while (!d->quits && (head = read_header(d, &bytes)) && d->in.n - head >= bytes) {
		struct json_value *request;
		gpul_error err = { 0 };

		if (!json_parse(d->in.at + head, bytes, &request, &err)) {
			answer_request(d, request);
			json_free(request);
		} else {
			fprintf(stderr, "gpuload dap: %s\n", err.text);
		}
		memmove(d->in.at, d->in.at + head + bytes, d->in.n - head - bytes);
		d->in.n -= head + bytes;
	}
}

static bool read_editor(struct dap *d)
{
	char bytes[4096];
	const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

	for (ssize_t k = 0; k < n; k++) {
		char *c = gpul_array_push(&d->in);

		if (c)
			*c = bytes[k];
	}
	take_requests(d);
	return n > 0 || (n < 0 && errno == EINTR);
}

static void serve_editor(struct dap *d)
{
	while (!d->quits) {
		struct pollfd p[4] = { { .fd = STDIN_FILENO, .events = POLLIN },
				       { .fd = d->link ? debug_link_fd(d->link) : -1, .events = POLLIN },
				       { .fd = d->out, .events = POLLIN },
				       { .fd = d->err, .events = POLLIN } };
		struct debug_row event;

		while (d->link && debug_link_event(d->link, 0, &event)) { /* handle the events that arrived while a reply was awaited */
			take_event(d, &event);
			debug_row_free(&event);
		}
		if (d->link && debug_link_ended(d->link)) {
			end_program(d);
			continue;
		}
		if (poll(p, 4, -1) < 0 && errno != EINTR)
			break;
		if (p[2].revents)
			pass_output(d, &d->out, "stdout");
		if (p[3].revents)
			pass_output(d, &d->err, "stderr");
		if (p[0].revents && !read_editor(d))
			break;
	}
}

static int cmd_dap(const struct cli_args *args, gpul_error *err)
{
	struct dap d = { .out = -1, .err = -1 };

	if (args->n_operands) {
		gpul_fail(err, GPUL_EINVAL, 0,
			  "dap takes no arguments: an editor starts it, and sends messages that say what to debug; see gpuload help dap");
		return CLI_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	serve_editor(&d);
	(void)debug_link_close(d.link);
	dap_forget(&d);
	gpul_array_free(&d.container);
	gpul_array_free(&d.lane);
	gpul_array_free(&d.in);
	debug_row_free(&d.at);
	free(d.folder);
	return CLI_DONE;
}

static const char dap_details[] = "Speaks the Debug Adapter Protocol on stdin and stdout, so that VS Code, Neovim, Emacs and\n"
				  "other editors step through kernels on the software driver; docs/step.md has settings for\n"
				  "them.\n"
				  "\n"
				  "    launch   program       a file that gpuload run accepts: .cu, .ptx, .o, .so ...\n"
				  "             args          ARGs and options of gpuload run\n"
				  "             native        true: program is a program, and is executed itself\n"
				  "             cwd  env      the folder in which it starts; variables of its environment\n"
				  "             stopOnEntry   true: stop before the first instruction of the first kernel\n"
				  "             stopAtEnd     true: stop after the last instruction of a kernel, to step back from there\n"
				  "    attach   address       the path, or port, on which the program listens, because it was\n"
				  "                           started with GPULOAD_SOFT_TOOLS=debug:listen=ADDRESS, or\n"
				  "                           debug:listen=ADDRESS:wait to let its kernels wait for the editor\n"
				  "\n"
				  "Threads are warps; the lanes of the warp that stopped are threads, too. Steps back replay the\n"
				  "kernel. Breakpoints may be in CUDA C++ (compiled with -lineinfo) and in PTX, with the conditions\n"
				  "of gpuload step; data breakpoints watch memory.\n"
				  "\n"
				  "Further requests: gpuload/nextWarp, gpuload/nextBlock, gpuload/nextBarrier,\n"
				  "gpuload/nextDivergence and gpuload/restartKernel, each with a threadId.\n";

const struct cli_cmd cli_dap = {
	"dap", "", "let an editor step through kernels: a debug adapter on stdin and stdout", dap_details, cli_no_opts, cmd_dap, NULL, NULL,
};
