/* debug_link.c — a connection to the debugger in the software driver: see debug_link.h. */
#include "cli/debug/debug_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/lib/message.h"
#include "cli/run/cli_run.h"
#include "cli/soft/soft.h"
#include "core/file/io.h"

struct debug_link {
	int fd;
	pid_t pid;
	int status; /* status of waitpid(); -1: not waited for yet */
	bool ended;
	int failed;                /* pipe on which the child reports that it has printed why it cannot run; -1: attached */
	GPUL_ARRAY(char) in;       /* bytes that have been read but are not a whole line yet */
	GPUL_ARRAY(char *) events; /* event lines that were read while a reply was expected */
};

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

static struct debug_row parse_row(char *text)
{
	struct debug_row r = { .text = text };
	char *rest = text;

	while (rest && r.n < DEBUG_MAX_FIELDS) {
		r.field[r.n] = strsep(&rest, "\t");
		r.n++;
	}
	return r;
}

const char *debug_row_get(const struct debug_row *r, const char *key)
{
	const size_t n = strlen(key);

	for (unsigned k = 0; k < r->n; k++)
		if (!strncmp(r->field[k], key, n) && r->field[k][n] == '=')
			return r->field[k] + n + 1;
	return "";
}

uint64_t debug_row_number(const struct debug_row *r, const char *key)
{
	return strtoull(debug_row_get(r, key), NULL, 0);
}

uint64_t debug_row_hex(const struct debug_row *r, const char *key)
{
	return strtoull(debug_row_get(r, key), NULL, 16);
}

void debug_row_free(struct debug_row *r)
{
	free(r->text);
	*r = (struct debug_row){ 0 };
}

void debug_rows_free(struct debug_rows *rows)
{
	for (size_t k = 0; k < rows->row.n; k++)
		free(rows->row.at[k].text);
	gpul_array_free(&rows->row);
}

/* ---- starting the program --------------------------------------------------------------------------------------------- */

static void set_tools(int fd)
{
	const char *given = secure_getenv("GPULOAD_SOFT_TOOLS");
	char *tools = NULL;

	if (asprintf(&tools, "%s%sdebug:fd=%d", given ? given : "", given && *given ? "," : "", fd) > 0)
		setenv("GPULOAD_SOFT_TOOLS", tools, 1);
	setenv("GPULOAD_DRIVER", "soft", 1);
}

/* Run a file as gpuload run does.  If the file contains a whole program, that program replaces this process. */
static gpul_status run_file(const char *const *words, gpul_error *err)
{
	struct cli_args args;
	size_t n = 0;
	int code;

	while (words[n])
		n++;
	cli_message_as("step");
	if (cli_parse(cli_run.opts, (char *const *)(uintptr_t)words, n, &args, err))
		return err->status;
	code = cli_run.run(&args, err);
	cli_args_free(&args);
	return code == CLI_DONE ? GPUL_OK : err->status ? err->status : GPUL_EFORMAT;
}

/* Runs in the child, which has a process group of its own, so that Ctrl-C at the terminal stops the kernel instead of killing the
 * child. Its stdin is empty, because the stdin of this process carries commands, or messages of an editor.  The child writes one
 * byte to `failed` if it has printed why it did not run; the descriptor is closed when a program replaces the process. */
static _Noreturn void become_program(const struct debug_start *how, int fd, int failed)
{
	const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	gpul_error err = { 0 };
	gpul_status st = GPUL_OK;

	setpgid(0, 0);
	if (empty >= 0)
		dup2(empty, STDIN_FILENO);
	if (how->out >= 0)
		dup2(how->out, STDOUT_FILENO);
	if (how->err >= 0)
		dup2(how->err, STDERR_FILENO);
	if (how->folder && chdir(how->folder))
		st = gpul_fail(&err, GPUL_ESYS, errno, "cannot change to the folder %s: %s", how->folder, strerror(errno));
	if (!st && how->is_program)
		st = soft_set_environment(how->words[0], &err); /* opens the driver, so it precedes set_tools(), which would debug it */
	set_tools(fd);
	fcntl(fd, F_SETFD, 0);
	if (!st && how->is_program) {
		execvp(how->words[0], (char *const *)(uintptr_t)how->words);
		st = gpul_fail(&err, GPUL_ESYS, errno, "cannot run %s: %s", how->words[0], strerror(errno));
	} else if (!st) {
		st = run_file(how->words, &err);
	}
	if (err.status)
		cli_message("step", "%s", err.text);
	if (st && write(failed, "x", 1) != 1)
		st = GPUL_ESYS;
	exit(cli_exit_code(st));
}

gpul_status debug_link_start(const struct debug_start *how, struct debug_link **out, gpul_error *err)
{
	struct debug_link *l = calloc(1, sizeof *l);
	int pair[2], failed[2];

	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection to the debugger");
	if (pipe2(failed, O_CLOEXEC | O_NONBLOCK)) {
		free(l);
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a pipe: %s", strerror(errno));
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		close(failed[0]);
		close(failed[1]);
		free(l);
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a socket: %s", strerror(errno));
	}
	fflush(stdout);
	l->fd = pair[0];
	l->status = -1;
	l->pid = fork();
	if (l->pid == 0)
		become_program(how, pair[1], failed[1]);
	close(pair[1]);
	close(failed[1]);
	l->failed = failed[0];
	if (l->pid < 0) {
		close(pair[0]);
		close(failed[0]);
		free(l);
		return gpul_fail(err, GPUL_ESYS, errno, "cannot start a process: %s", strerror(errno));
	}
	*out = l;
	return GPUL_OK;
}

static int connect_port(unsigned long port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !connect(fd, (struct sockaddr *)&a, sizeof a))
		return fd;
	close(fd);
	return -1;
}

static int connect_path(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	errno = ENAMETOOLONG;
	if (fd >= 0 && strlen(path) < sizeof a.sun_path) {
		strcpy(a.sun_path, path);
		if (!connect(fd, (struct sockaddr *)&a, sizeof a))
			return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

gpul_status debug_link_attach(const char *address, struct debug_link **out, gpul_error *err)
{
	struct debug_link *l = calloc(1, sizeof *l);
	char *end;
	const unsigned long port = strtoul(address, &end, 10);

	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection to the debugger");
	l->status = -1;
	l->failed = -1;
	l->fd = !*end && port && port < 65536 ? connect_port(port) : connect_path(address);
	if (l->fd < 0) {
		free(l);
		return gpul_fail(err, GPUL_ESYS, errno,
				 "cannot connect to %s: %s; start the program with GPULOAD_SOFT_TOOLS=debug:listen=%s", address,
				 strerror(errno), address);
	}
	*out = l;
	return GPUL_OK;
}

int debug_link_close(struct debug_link *l)
{
	int status = 0;

	if (!l)
		return 0;
	if (l->pid > 0 && !l->ended)
		kill(-l->pid, SIGKILL); /* kill the process first, because its kernels would continue once the connection is closed */
	close(l->fd);
	if (l->failed >= 0)
		close(l->failed);
	while (l->pid > 0 && waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
		;
	for (size_t k = 0; k < l->events.n; k++)
		free(l->events.at[k]);
	gpul_array_free(&l->events);
	gpul_array_free(&l->in);
	free(l);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int debug_link_fd(const struct debug_link *l)
{
	return l->fd;
}

bool debug_link_ended(struct debug_link *l)
{
	return l->ended;
}

bool debug_link_has_failed(const struct debug_link *l)
{
	struct pollfd p = { .fd = l->failed, .events = POLLIN }; /* the child's end is closed when the child ends or executes a program */
	char c;

	return l->failed >= 0 && poll(&p, 1, 5000) == 1 && read(l->failed, &c, 1) == 1;
}

pid_t debug_link_pid(const struct debug_link *l)
{
	return l->pid;
}

/* ---- requests, answers and events --------------------------------------------------------------------------------------- */

/* Take the first whole line that has been read; NULL: there is none.  Owned by the caller. */
static char *take_line(struct debug_link *l)
{
	char *end = l->in.n ? memchr(l->in.at, '\n', l->in.n) : NULL, *line;
	size_t n;

	if (!end)
		return NULL;
	n = (size_t)(end - l->in.at);
	line = strndup(l->in.at, n);
	memmove(l->in.at, end + 1, l->in.n - n - 1);
	l->in.n -= n + 1;
	return line;
}

/* Read the available bytes; false: time-out, a signal, or the connection has ended. */
static bool read_more(struct debug_link *l, int timeout_ms)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	if (l->ended || poll(&p, 1, timeout_ms) <= 0)
		return false;
	n = read(l->fd, bytes, sizeof bytes);
	if (n <= 0) {
		l->ended = n == 0 || errno != EINTR;
		return false;
	}
	for (ssize_t k = 0; k < n; k++) {
		char *c = gpul_array_push(&l->in);

		if (c)
			*c = bytes[k];
	}
	return true;
}

static void keep_event(struct debug_link *l, char *line)
{
	char **at = gpul_array_push(&l->events);

	if (at)
		*at = line;
	else
		free(line);
}

static gpul_status read_answer(struct debug_link *l, struct debug_rows *rows, gpul_error *err)
{
	for (;;) {
		char *line = take_line(l);
		struct debug_row *row;
		gpul_status st;

		if (!line && !read_more(l, -1) && l->ended)
			return gpul_fail(err, GPUL_ESYS, 0, "the program has ended");
		if (!line)
			continue;
		if (*line == '!') {
			keep_event(l, line);
			continue;
		}
		if (*line == '=') {
			st = strncmp(line, "= error ", 8) ? GPUL_OK : gpul_fail(err, GPUL_EINVAL, 0, "%s", line + 8);
			free(line);
			return st;
		}
		row = rows ? gpul_array_push(&rows->row) : NULL;
		if (row) {
			memmove(line, line + 2, strlen(line + 1));
			*row = parse_row(line);
		} else {
			free(line);
		}
	}
}

gpul_status debug_link_ask(struct debug_link *l, struct debug_rows *rows, gpul_error *err, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	bool sent;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a request");
	for (int k = 0; k < n; k++)
		text[k] = text[k] == '\n' ? ' ' : text[k];
	sent = send(l->fd, text, (size_t)n, MSG_NOSIGNAL) == n && send(l->fd, "\n", 1, MSG_NOSIGNAL) == 1;
	free(text);
	if (!sent) {
		l->ended = true;
		return gpul_fail(err, GPUL_ESYS, errno, "the program has ended");
	}
	return read_answer(l, rows, err);
}

static int left_ms(const struct timespec *begin, int timeout_ms)
{
	struct timespec now;
	long long passed;

	if (timeout_ms < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	passed = (now.tv_sec - begin->tv_sec) * 1000LL + (now.tv_nsec - begin->tv_nsec) / 1000000;
	return passed >= timeout_ms ? 0 : timeout_ms - (int)passed;
}

bool debug_link_event(struct debug_link *l, int timeout_ms, struct debug_row *out)
{
	struct timespec begin;
	char *line = NULL;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (l->events.n) {
		line = l->events.at[0];
		memmove(l->events.at, l->events.at + 1, --l->events.n * sizeof *l->events.at);
	}
	while (!line) {
		line = take_line(l);
		if (!line && !read_more(l, left_ms(&begin, timeout_ms)))
			return false;
	}
	memmove(line, line + 2, strlen(line + 1));
	*out = parse_row(line);
	return true;
}
