/* pci.c — gpuload soft --pci: lists the software GPUs, for the command only, where the kernel and NVIDIA's driver list GPUs.
 *
 *     a mount namespace, with a tmpfs over /sys/bus/pci/devices     0000:00:01.0 -> ../../../devices/...     the machine's links, again
 *                                                                   ffff:00:00.0/numa_node class vendor      GPU 0
 *                                     over /proc/driver             nvidia/gpus/ffff:00:00.0/information     GPU 0
 *
 * The names are the addresses of cuDeviceGetPCIBusId().  A user who is not root also gets a user namespace, with the same user number. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/soft/soft_internal.h"

#define DEVICES "/sys/bus/pci/devices"
#define DRIVER  "/proc/driver"

struct pci_link {
	char name[256], target[PATH_MAX];
};

typedef GPUL_ARRAY(struct pci_link) pci_links;

static gpul_status read_links(pci_links *links, gpul_error *err)
{
	DIR *dir = opendir(DEVICES);
	gpul_status st = GPUL_OK;

	if (!dir)
		return gpul_fail(err, GPUL_ESYS, errno, "--pci cannot read " DEVICES ": %s", strerror(errno));
	for (struct dirent *e = readdir(dir); e && !st; e = readdir(dir)) {
		struct pci_link link = { 0 }, *copy;

		if (readlinkat(dirfd(dir), e->d_name, link.target, sizeof link.target - 1) < 0)
			continue; /* . and .. */
		(void)snprintf(link.name, sizeof link.name, "%s", e->d_name);
		copy = gpul_array_push(links);
		if (copy)
			*copy = link;
		else
			st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the entries of " DEVICES);
	}
	closedir(dir);
	return st;
}

static gpul_status write_file(const char *path, const char *text, gpul_error *err)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	const ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	const int error = errno;

	if (fd >= 0)
		close(fd);
	return n < 0 ? gpul_fail(err, GPUL_ESYS, error, "--pci cannot write %s: %s", path, strerror(error)) : GPUL_OK;
}

static gpul_status mount_over(const char *folder, gpul_error *err)
{
	if (!mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"))
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, errno, "--pci cannot mount a folder over %s: %s", folder, strerror(errno));
}

/* Enter a mount namespace, and mount empty folders over DEVICES and DRIVER. */
static gpul_status mount_folders(gpul_error *err)
{
	const unsigned uid = geteuid(), gid = getegid();
	char map[64];
	gpul_status st = GPUL_OK;

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		return gpul_fail(err, GPUL_ESYS, errno,
				 "--pci cannot create a mount namespace: %s; permit user namespaces, or run it as root", strerror(errno));
	if (uid) {
		st = write_file("/proc/self/setgroups", "deny", err);
		(void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
		st = st ? st : write_file("/proc/self/uid_map", map, err);
		(void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
		st = st ? st : write_file("/proc/self/gid_map", map, err);
	}
	if (!st && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		st = gpul_fail(err, GPUL_ESYS, errno, "--pci cannot separate its mounts from the machine's: %s", strerror(errno));
	st = st ? st : mount_over(DEVICES, err);
	return st ? st : mount_over(DRIVER, err);
}

static gpul_status create_folder(const char *path, gpul_error *err)
{
	return mkdir(path, 0755) ? gpul_fail(err, GPUL_ESYS, errno, "--pci cannot create %s: %s", path, strerror(errno)) : GPUL_OK;
}

static gpul_status add_gpu(unsigned gpu, gpul_error *err)
{
	const char *const node = access("/sys/devices/system/node/node0", F_OK) ? "-1\n" : "0\n";
	const struct {
		const char *folder, *file, *text;
	} files[] = { { DEVICES, "class", "0x030200\n" },
		      { DEVICES, "vendor", "0x10de\n" },
		      { DEVICES, "numa_node", node },
		      { DRIVER "/nvidia/gpus", "information", "Model: gpuload software GPU\n" } };
	char path[128];
	gpul_status st = GPUL_OK;

	for (size_t i = 0; i < sizeof files / sizeof *files && !st; i++) {
		(void)snprintf(path, sizeof path, "%s/ffff:%02x:00.0", files[i].folder, gpu);
		if (access(path, F_OK))
			st = create_folder(path, err);
		(void)snprintf(path, sizeof path, "%s/ffff:%02x:00.0/%s", files[i].folder, gpu, files[i].file);
		st = st ? st : write_file(path, files[i].text, err);
	}
	return st;
}

gpul_status soft_pci(unsigned n_gpus, gpul_error *err)
{
	pci_links links = { 0 };
	gpul_status st = read_links(&links, err);

	st = st ? st : mount_folders(err);
	for (size_t i = 0; i < links.n && !st; i++) {
		char path[sizeof DEVICES + 256];

		(void)snprintf(path, sizeof path, DEVICES "/%s", links.at[i].name);
		if (symlink(links.at[i].target, path))
			st = gpul_fail(err, GPUL_ESYS, errno, "--pci cannot create %s: %s", path, strerror(errno));
	}
	st = st ? st : create_folder(DRIVER "/nvidia", err);
	st = st ? st : create_folder(DRIVER "/nvidia/gpus", err);
	for (unsigned gpu = 0; gpu < n_gpus && !st; gpu++)
		st = add_gpu(gpu, err);
	gpul_array_free(&links);
	return st;
}
