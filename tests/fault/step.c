/* step.c — the steps inside library calls: this program's versions of system calls and driver calls. */
#include "tests/fault/step.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

/* Declared as in POSIX, because glibc's <sys/socket.h> uses a union for the address type, unlike other libraries. */
struct sockaddr;
struct msghdr;
int bind(int fd, const struct sockaddr *address, unsigned n);
int listen(int fd, int backlog);
int accept4(int fd, struct sockaddr *address, unsigned *n, int flags);
int connect(int fd, const struct sockaddr *address, unsigned n);
ssize_t sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t recvmsg(int fd, struct msghdr *m, int flags);

static const struct step *armed;
static int n_reached;

void step_arm(const struct step *s)
{
	armed = s;
	n_reached = 0;
}

_Atomic uint64_t *step_time_ns;

void step_reached(const char *point)
{
	if (!armed || strcmp(armed->point, point) != 0 || ++n_reached != armed->nth)
		return;
	if (step_time_ns)
		*step_time_ns = gpul_clock_ns();
	kill(getpid(), armed->signal ? armed->signal : SIGKILL);
}

/* ---- system calls --------------------------------------------------------------------------- */

static long pass_point(const char *point, long r, long least)
{
	if (r >= least)
		step_reached(point);
	return r;
}

int bind(int fd, const struct sockaddr *address, unsigned n)
{
	step_reached("binding");
	return (int)pass_point("bound", syscall(SYS_bind, fd, address, n), 0);
}

int listen(int fd, int backlog)
{
	return (int)pass_point("listening", syscall(SYS_listen, fd, backlog), 0);
}

int accept4(int fd, struct sockaddr *address, unsigned *n, int flags)
{
	return (int)pass_point("accepted", syscall(SYS_accept4, fd, address, n, flags), 0);
}

int connect(int fd, const struct sockaddr *address, unsigned n)
{
	return (int)pass_point("connected", syscall(SYS_connect, fd, address, n), 0);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return pass_point("sent", syscall(SYS_sendmsg, fd, m, flags), 1);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return pass_point("received", syscall(SYS_recvmsg, fd, m, flags), 1);
}

/* The call in which a proxy's thread sleeps.  The system call writes the remaining time, libc's function does not. */
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec left;

	step_reached("sleeping");
	if (timeout)
		left = *timeout;
	return (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, sizeof(uint64_t));
}

/* ---- driver calls --------------------------------------------------------------------------- */

static const gpul_driver *real;

static CUresult pass_driver_point(const char *point, CUresult r)
{
	step_reached(point);
	return r;
}

static CUresult export_fd(void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags)
{
	return pass_driver_point("exported", real->cuMemExportToShareableHandle(out, h, type, flags));
}

static CUresult export_ipc(CUipcMemHandle *out, CUdeviceptr at)
{
	return pass_driver_point("exported", real->cuIpcGetMemHandle(out, at));
}

static CUresult import_fd(CUmemGenericAllocationHandle *out, void *fd, CUmemAllocationHandleType type)
{
	return pass_driver_point("imported", real->cuMemImportFromShareableHandle(out, fd, type));
}

static CUresult set_access(CUdeviceptr at, size_t n_bytes, const CUmemAccessDesc *desc, size_t n)
{
	return pass_driver_point("mapped", real->cuMemSetAccess(at, n_bytes, desc, n));
}

static CUresult import_ipc(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	step_reached("imported");
	return pass_driver_point("mapped", real->cuIpcOpenMemHandle(out, handle, flags));
}

static CUresult host_register(void *at, size_t n_bytes, unsigned flags)
{
	step_reached("imported");
	return pass_driver_point("mapped", real->cuMemHostRegister(at, n_bytes, flags));
}

static CUresult record(CUcontext context, CUevent event)
{
	step_reached("draining");
	return real->cuCtxRecordEvent(context, event);
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
		       CUstream stream, void **args, void **extra)
{
	step_reached("launching");
	return pass_driver_point("launched", real->cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, args, extra));
}

static CUresult query(CUstream stream)
{
	step_reached("asking");
	return real->cuStreamQuery(stream);
}

void step_wrap(const gpul_driver *drv, gpul_driver *out)
{
	real = drv;
	*out = *drv;
	out->cuMemExportToShareableHandle = export_fd;
	out->cuIpcGetMemHandle = export_ipc;
	out->cuMemImportFromShareableHandle = import_fd;
	out->cuMemSetAccess = set_access;
	out->cuIpcOpenMemHandle = import_ipc;
	out->cuMemHostRegister = host_register;
	out->cuCtxRecordEvent = record;
	out->cuLaunchKernel = launch;
	out->cuStreamQuery = query;
}
