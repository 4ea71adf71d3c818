/* soft_internal.h — sets the environment for a program on the software driver.
 *
 *     soft.c          parses the options, prints the report, and executes the program
 *     soft_setup.c    sets the environment variables, and opens the driver before the program replaces the process
 *     python.c        finds the Python packages of a command, and NVIDIA's wheels among them
 *     pci.c           lists the GPUs in /sys/bus/pci/devices and /proc/driver/nvidia/gpus */
#ifndef GPULOAD_CLI_SOFT_SOFT_INTERNAL_H
#define GPULOAD_CLI_SOFT_SOFT_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/array.h"
#include "core/error.h"

/* an environment variable and its value; both strings are owned */
struct soft_variable {
	char *name, *value;
};

struct soft_setup {
	const char *gpus, *sm, *cuda, *memory, *tools; /* options; NULL: not given */
	bool strict_ptx;
	char folder[PATH_MAX];  /* folder of the driver and of the libraries next to it */
	char wheels[PATH_MAX];  /* site-packages of the command; "": none */
	char toolkit[PATH_MAX]; /* CUDA_HOME, or NVIDIA's tool chain in `wheels`; "": none found */
	GPUL_ARRAY(struct soft_variable) variables;
};

/* Find the folder of the driver, and choose all variables for a command; command NULL: for any command. */
gpul_status soft_setup(struct soft_setup *s, const char *command, gpul_error *err);
/* Set the variables in the environment of this process. */
gpul_status soft_setup_apply(const struct soft_setup *s, gpul_error *err);
void soft_setup_free(struct soft_setup *s);

/* Move this process, which must have one thread, into a mount namespace that lists n_gpus software GPUs as PCI devices. */
gpul_status soft_pci(unsigned n_gpus, gpul_error *err);

/* Find the site-packages folder of the Python that runs a command: the command itself, or the interpreter in the #! line of a
 * script.  Returns false if there is no Python, or if its packages were not found. */
bool soft_find_packages(const char *command, char site_packages[PATH_MAX]);
/* Find the folder of NVIDIA's tool chain in site-packages, with the layout of a toolkit (bin, include, lib).  Returns
 * false if there is none. */
bool soft_find_toolkit(const char *site_packages, char folder[PATH_MAX]);

#endif
