/* incast_net.c — creates network namespaces, connects them with the programs ip and tc, and enters them. */
#include "cli/comm/incast/incast_net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/io.h"

/* The three namespaces.  An environment variable passes their descriptors to the ranks. */
enum place { RECEIVER, SWITCH, SENDERS, N_PLACES };
static const char variable[] = "GPULOAD_INCAST_NAMESPACES";

enum { MOST_WORDS = 32 };
#define LINK_NS 5000000000ull

/* ---- capabilities -------------------------------------------------------------------------------------------- */

static gpul_status write_file(const char *path, const char *text, gpul_error *err)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool written = fd >= 0 && gpul_write_all(fd, text, strlen(text));
	const int error = errno;

	if (fd >= 0)
		(void)close(fd);
	return written ? GPUL_OK : gpul_fail(err, GPUL_ESYS, error, "%s: %s", path, strerror(error));
}

/* Pass the capabilities for the new namespaces on to the programs that this process starts: ip, tc and the ranks. */
static gpul_status keep_rights(gpul_error *err)
{
	static const unsigned wanted[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	bool ok = syscall(SYS_capget, &head, data) == 0;

	for (unsigned i = 0; i < 2; i++)
		data[wanted[i] / 32].inheritable |= 1u << wanted[i] % 32;
	ok = ok && syscall(SYS_capset, &head, data) == 0;
	for (unsigned i = 0; ok && i < 2; i++)
		ok = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, wanted[i], 0, 0) == 0;
	return ok ? GPUL_OK
		  : gpul_fail(err, GPUL_ESYS, errno, "cannot keep the capabilities that a network namespace needs: %s", strerror(errno));
}

/* Enter a user namespace that maps the ids of this user to themselves, so that files and sockets keep their owner. */
static gpul_status enter_user_namespace(gpul_error *err)
{
	const unsigned user = geteuid(), group = getegid();
	char map[64];
	gpul_status st;

	if (unshare(CLONE_NEWUSER))
		return gpul_fail(err, GPUL_EUNSUPPORTED, errno,
				 "--rate needs root, or user namespaces, which this system refuses (%s); without --rate "
				 "the ranks use the loopback interface",
				 strerror(errno));
	st = write_file("/proc/self/setgroups", "deny", err);
	(void)snprintf(map, sizeof map, "%u %u 1", user, user);
	st = st ? st : write_file("/proc/self/uid_map", map, err);
	(void)snprintf(map, sizeof map, "%u %u 1", group, group);
	st = st ? st : write_file("/proc/self/gid_map", map, err);
	return st ? st : keep_rights(err);
}

/* ---- namespaces ---------------------------------------------------------------------------------------------- */

/* Create a namespace and enter it.  Its descriptor is not O_CLOEXEC: the programs that this process starts inherit it. */
static gpul_status make_namespace(int *fd, gpul_error *err)
{
	if (unshare(CLONE_NEWNET))
		return gpul_fail(err, GPUL_EUNSUPPORTED, errno,
				 "--rate: cannot make a network namespace: %s; without --rate the ranks use the loopback "
				 "interface",
				 strerror(errno));
	*fd = open("/proc/self/ns/net", O_RDONLY);
	return *fd >= 0 ? GPUL_OK : gpul_fail(err, GPUL_ESYS, errno, "cannot open /proc/self/ns/net: %s", strerror(errno));
}

static gpul_status make_namespaces(int fds[N_PLACES], gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if (unshare(CLONE_NEWNET)) /* usually fails because the user is not root */
		st = enter_user_namespace(err);
	for (int i = 0; !st && i < N_PLACES; i++)
		st = make_namespace(&fds[i], err);
	return st;
}

/* ---- ip and tc ----------------------------------------------------------------------------------------------- */

/* In the child process: execute a command whose output goes to a pipe. */
static _Noreturn void become_command(char *const *argv, int namespace_fd, int output)
{
	static const char *const folders[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };
	char path[64];

	if (setns(namespace_fd, CLONE_NEWNET) || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		_exit(126);
	for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", folders[i], argv[0]);
		(void)execv(path, argv);
	}
	(void)execvp(argv[0], argv);
	_exit(127);
}

/* Read the first line that a command prints, and get its exit status. */
static int wait_for_command(pid_t child, int output, char *line, size_t room)
{
	size_t n = 0;
	ssize_t got;
	char more[256];
	int status = 0;

	while ((got = read(output, more, sizeof more)) > 0 || (got < 0 && errno == EINTR))
		for (ssize_t i = 0; i < got && n + 1 < room; i++)
			line[n++] = more[i];
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run a command (words separated by blanks) in a namespace. */
static gpul_status run_command(int namespace_fd, const char *command, gpul_error *err)
{
	char words[256], line[120], *argv[MOST_WORDS] = { NULL }, *rest = NULL;
	int output[2], status;
	unsigned n = 0;
	pid_t child;

	(void)snprintf(words, sizeof words, "%s", command);
	for (char *word = strtok_r(words, " ", &rest); word && n + 1 < MOST_WORDS; word = strtok_r(NULL, " ", &rest))
		argv[n++] = word;
	if (pipe2(output, O_CLOEXEC))
		return gpul_fail(err, GPUL_ESYS, errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child == 0)
		become_command(argv, namespace_fd, output[1]);
	(void)close(output[1]);
	status = child > 0 ? wait_for_command(child, output[0], line, sizeof line) : -1;
	(void)close(output[0]);
	if (status == 127)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "--rate needs the program %s, which is not installed (package iproute2)",
				 argv[0]);
	return status ? gpul_fail(err, GPUL_EUNSUPPORTED, status, "--rate: %.100s failed: %s", command, line) : GPUL_OK;
}

/* The commands that connect the namespaces.  %R and %X are the descriptors of the receiver's and the senders' namespaces, %B is the
 * rate, %Q the size of the queue, and %T the burst: the number of bytes that a full bucket lets pass without waiting. */
static const struct {
	enum place place;
	const char *command;
} commands[] = {
	{ SWITCH, "ip link add tx0 mtu 9000 type veth peer name eth0 mtu 9000 netns /proc/self/fd/%X" },
	{ SWITCH, "ip link add rx0 mtu 9000 type veth peer name eth0 mtu 9000 netns /proc/self/fd/%R" },
	{ SWITCH, "ip address add 10.73.1.1/24 dev tx0" },
	{ SWITCH, "ip address add 10.73.2.1/24 dev rx0" },
	{ SWITCH, "tc qdisc add dev rx0 root tbf rate %Bbit burst %T limit %Q" },
	{ SWITCH, "ip link set tx0 up" },
	{ SWITCH, "ip link set rx0 up" },
	{ SENDERS, "ip link set lo up" },
	{ SENDERS, "ip address add 10.73.1.2/24 dev eth0" },
	{ SENDERS, "ip link set eth0 up" },
	{ SENDERS, "ip route add default via 10.73.1.1" },
	{ RECEIVER, "ip link set lo up" },
	{ RECEIVER, "ip address add 10.73.2.2/24 dev eth0" },
	{ RECEIVER, "ip link set eth0 up" },
	{ RECEIVER, "ip route add default via 10.73.2.1" },
};

static void fill_command(const char *form, const int fds[N_PLACES], uint64_t rate_bits, size_t queue_bytes, char *out, size_t room)
{
	const uint64_t burst = rate_bits / 8 / 5000; /* the bytes of 200 us; at least three packets */
	size_t n = 0;

	for (; *form && n + 24 < room; form++) {
		if (*form != '%') {
			out[n++] = *form;
			continue;
		}
		form++;
		n += (size_t)snprintf(out + n, room - n, "%llu",
				      *form == 'R'   ? (unsigned long long)fds[RECEIVER]
				      : *form == 'X' ? (unsigned long long)fds[SENDERS]
				      : *form == 'B' ? (unsigned long long)rate_bits
				      : *form == 'Q' ? (unsigned long long)queue_bytes
						     : (unsigned long long)(burst > 32768 ? burst : 32768));
	}
	out[n] = '\0';
}

static gpul_status connect_namespaces(const int fds[N_PLACES], uint64_t rate_bits, size_t queue_bytes, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < sizeof commands / sizeof *commands; i++) {
		char command[200];

		fill_command(commands[i].command, fds, rate_bits, queue_bytes, command, sizeof command);
		st = run_command(fds[commands[i].place], command, err);
	}
	return st;
}

/* ---- interface ------------------------------------------------------------------------------------------------ */

static gpul_status enter_place(int fd, gpul_error *err)
{
	return setns(fd, CLONE_NEWNET) ? gpul_fail(err, GPUL_ESYS, errno, "setns: %s", strerror(errno)) : GPUL_OK;
}

/* Wait until the kernel reports a new link as running, a moment after the link is up, because libfabric ignores it until then. */
static gpul_status wait_for_link(const char *name, gpul_error *err)
{
	const uint64_t begun = gpul_clock_ns();
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq q = { 0 };
	bool running = false;

	(void)snprintf(q.ifr_name, sizeof q.ifr_name, "%s", name);
	while (fd >= 0 && !running && gpul_clock_ns() - begun < LINK_NS) {
		running = ioctl(fd, SIOCGIFFLAGS, &q) == 0 && (q.ifr_flags & IFF_RUNNING);
		if (!running)
			(void)poll(NULL, 0, 1);
	}
	if (fd >= 0)
		(void)close(fd);
	return running ? GPUL_OK
		       : gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "--rate: the link %s of the private network does not come up", name);
}

/* Apply the settings that ip and tc cannot make: congestion control, forwarding in the switch, no IPv6.  Then wait for all links. */
static gpul_status finish_place(enum place place, int fd, const char *congestion, gpul_error *err)
{
	gpul_status st = enter_place(fd, err);

	if (!st && write_file("/proc/sys/net/ipv4/tcp_congestion_control", congestion, NULL))
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			       "--congestion: a network namespace cannot use '%s'; sysctl net.ipv4.tcp_allowed_congestion_control "
			       "lists what it can use",
			       congestion);
	if (!st && access("/proc/sys/net/ipv6", F_OK) == 0)
		st = write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1", err);
	if (!st && place == SWITCH)
		st = write_file("/proc/sys/net/ipv4/ip_forward", "1", err);
	return st ? st : wait_for_link(place == SWITCH ? "rx0" : "eth0", err);
}

gpul_status incast_net_create(uint64_t rate_bits, size_t queue_bytes, const char *congestion, gpul_error *err)
{
	int fds[N_PLACES];
	char value[64];
	gpul_status st = make_namespaces(fds, err);

	st = st ? st : connect_namespaces(fds, rate_bits, queue_bytes, err);
	for (int i = 0; !st && i < N_PLACES; i++) /* the last namespace is that of the senders, in which this process stays */
		st = finish_place((enum place)i, fds[i], congestion, err);
	if (st)
		return st;
	(void)snprintf(value, sizeof value, "%d:%d", fds[RECEIVER], fds[SWITCH]);
	return setenv(variable, value, 1) ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment") : GPUL_OK;
}

bool incast_net_exists(void)
{
	return secure_getenv(variable);
}

gpul_status incast_net_enter(int rank, int *queue_fd, int *device, gpul_error *err)
{
	static const struct timeval limit = { .tv_sec = 1 };
	const char *text = secure_getenv(variable);
	int receiver = -1, switch_fd = -1, fd = -1;
	gpul_status st;

	*queue_fd = -1;
	*device = 0;
	if (!text || sscanf(text, "%d:%d", &receiver, &switch_fd) != 2)
		return gpul_fail(err, GPUL_EINVAL, 0, "$%s must be two file descriptors, such as 5:6; the launcher sets this variable",
				 variable);
	if (rank == 0) {
		st = enter_place(switch_fd, err);
		if (st)
			return st;
		*device = (int)if_nametoindex("rx0");
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
		if (fd < 0 || !*device || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
			return gpul_fail(err, GPUL_ESYS, errno, "cannot open a netlink socket in the switch's network namespace: %s",
					 strerror(errno));
		st = enter_place(receiver, err);
		if (st) {
			(void)close(fd);
			return st;
		}
		*queue_fd = fd;
	}
	(void)close(receiver);
	(void)close(switch_fd);
	return GPUL_OK;
}

const char *incast_net_address(int rank)
{
	return rank == 0 ? "10.73.2.2" : "10.73.1.2";
}
