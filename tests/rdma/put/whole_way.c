/* whole_way.c — puts from the kernel of one process to the kernel of another, through FIFO, proxy and network.
 *
 *     whole_way [--puts N] [--blocks N] [--bytes N] [--window N] [--qps N] [--backend verbs|libfabric] [--provider NAME]
 *               [--device NAME] [--driver auto|nvidia|soft] [--timeout SECONDS] [--break data|sender|receiver]
 *
 *     sender   way_send ─ FIFO ─ proxy ─ connection ──> data, steps ─ way_receive   receiver
 *              steps <──────────────── connection ─ proxy ─ FIFO ─ step ──┘
 *
 * The receiver's kernel checks every word.  --break: half-way, a word is changed, or a process is killed: both ends must
 * report an error.  Prints a rate and a verdict. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxy/fifo_layout.h"
#include "tests/rdma/put/way.h"

enum { SKIPPED = 77, MOST_BYTES = 1 << 20 };

static const char usage[] =
	"usage: whole_way [--puts N] [--blocks N] [--bytes N] [--window N] [--qps N] [--backend verbs|libfabric]\n"
	"                 [--provider NAME] [--device NAME] [--driver auto|nvidia|soft] [--timeout SECONDS] [--ptx FILE]\n"
	"                 [--break data|sender|receiver]\n";

static bool parse_number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return end != text && !*end && !errno && *text != '-';
}

static bool parse_break(const char *text, enum way_break *out)
{
	static const char *const names[] = { "", "data", "sender", "receiver" };

	for (int i = 1; i < 4; i++)
		if (!strcmp(text, names[i])) {
			*out = (enum way_break)i;
			return true;
		}
	return false;
}

static bool parse_options(int argc, char **argv, struct way_options *o)
{
	/* clang-format off */
	static const struct option options[] = {
		{ "puts", 1, NULL, 'n' }, { "blocks", 1, NULL, 'b' }, { "bytes", 1, NULL, 's' }, { "window", 1, NULL, 'w' },
		{ "qps", 1, NULL, 'q' }, { "backend", 1, NULL, 'k' }, { "provider", 1, NULL, 'p' }, { "device", 1, NULL, 'i' },
		{ "driver", 1, NULL, 'd' }, { "timeout", 1, NULL, 't' }, { "ptx", 1, NULL, 'x' }, { "break", 1, NULL, 'e' }, { 0 }
	};
	/* clang-format on */
	bool good = true;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 'n':
			good = good && parse_number(optarg, &o->puts);
			break;
		case 'b':
			good = good && parse_number(optarg, &o->blocks);
			break;
		case 's':
			good = good && parse_number(optarg, &o->bytes);
			break;
		case 'w':
			good = good && parse_number(optarg, &o->window);
			break;
		case 'q':
			good = good && parse_number(optarg, &o->qps);
			break;
		case 't':
			good = good && parse_number(optarg, &o->timeout_s);
			break;
		case 'k':
			o->backend = optarg;
			break;
		case 'p':
			o->provider = optarg;
			break;
		case 'i':
			o->device = optarg;
			break;
		case 'x':
			o->ptx = optarg;
			break;
		case 'd':
			good = good && gpul_driver_choice_parse(optarg, &o->driver);
			break;
		case 'e':
			good = good && parse_break(optarg, &o->broken);
			break;
		default:
			good = false;
		}
	}
	return good && optind == argc && o->puts && o->blocks && o->blocks <= GPUL_FIFO_MAX_LANES && o->bytes % 8 == 0 &&
	       o->bytes <= MOST_BYTES && o->window && o->window <= 1024 && o->timeout_s && o->timeout_s < 100000;
}

/* Run one end, and print its error; returns the exit status. */
static int run_end(const struct way_options *o, bool sender, int socket, struct way_report *report)
{
	gpul_error err = { 0 };
	const gpul_status st = way_run_end(o, sender, socket, report, &err);

	if (st)
		fprintf(stderr, "whole_way: %s: %s\n", sender ? "sender" : "receiver", err.text);
	return !st ? 0 : st == GPUL_EUNSUPPORTED ? SKIPPED : 1;
}

/* Return the exit status of the child, or 128 plus the number of the signal that killed it. */
static int status_of(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Start the receiver in a child process.  Each process opens its own driver, because drivers do not work after a fork. */
static pid_t start_receiver(const struct way_options *o, const int sockets[2])
{
	const pid_t parent = getpid(), child = fork();
	struct way_report report;

	if (child)
		return child;
	close(sockets[0]);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	_exit(run_end(o, false, sockets[1], &report));
}

/* The sender runs in a child, too, so that a test can kill it. */
static pid_t start_sender(const struct way_options *o, const int sockets[2], int pipe_out)
{
	const pid_t parent = getpid(), child = fork();
	struct way_report report;
	int status;

	if (child)
		return child;
	close(sockets[1]);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	status = run_end(o, true, sockets[0], &report);
	if (write(pipe_out, &report, sizeof report) != sizeof report)
		status = 1;
	_exit(status);
}

static int print_verdict(const struct way_options *o, const struct way_report *r, int sender, int receiver)
{
	const uint64_t n_puts = r->rounds * o->blocks;
	bool good = !sender && !receiver;

	if (sender == SKIPPED || receiver == SKIPPED) {
		puts("0 passed, 0 failed, 1 skipped");
		return SKIPPED;
	}
	if (o->broken == BREAK_DATA)
		good = sender == 1 && receiver == 1;
	else if (o->broken)
		good = o->broken == BREAK_SENDER ? sender == 128 + SIGKILL && receiver == 1 : sender == 1 && receiver == 128 + SIGKILL;
	if (good && !o->broken)
		printf("%llu puts of %llu bytes from %llu blocks over %s, %s driver, %s memory, in %.2f s: %.0f puts/s\n",
		       (unsigned long long)n_puts, (unsigned long long)o->bytes, (unsigned long long)o->blocks, r->fabric, r->driver,
		       r->memory, (double)r->elapsed_ns * 1e-9, (double)n_puts * 1e9 / (double)r->elapsed_ns);
	if (!good)
		printf("the sender ended with status %d, the receiver with %d\n", sender, receiver);
	printf("%d passed, %d failed, 0 skipped\n", good, !good);
	return !good;
}

int main(int argc, char **argv)
{
	struct way_options o = { .puts = 20000,
				 .blocks = 64,
				 .bytes = 64,
				 .qps = 1,
				 .window = 16,
				 .timeout_s = 60,
				 .driver = GPUL_DRIVER_AUTO,
				 .ptx = GPUL_KERNELS "/tests/rdma/put/kernels.ptx" };
	struct way_report report = { 0 };
	int sockets[2], results[2], sender_status, receiver_status;
	pid_t sender, receiver;

	if (!parse_options(argc, argv, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) || pipe(results)) {
		perror("whole_way");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	receiver = start_receiver(&o, sockets);
	sender = start_sender(&o, sockets, results[1]);
	close(sockets[0]);
	close(sockets[1]);
	close(results[1]);
	if (receiver < 0 || sender < 0) {
		perror("whole_way: fork");
		return 1;
	}
	if (read(results[0], &report, sizeof report) != sizeof report)
		report = (struct way_report){ 0 };
	sender_status = status_of(sender);
	receiver_status = status_of(receiver);
	return print_verdict(&o, &report, sender_status, receiver_status);
}
