/* soft.h — gpuload soft: runs any program on the software driver. */
#ifndef GPULOAD_CLI_SOFT_SOFT_H
#define GPULOAD_CLI_SOFT_SOFT_H

#include "cli/lib/command.h"
#include "driver/driver.h"

extern const struct cli_cmd cli_soft;

/** Open a driver in a process that a program will replace: the tools of GPULOAD_SOFT_TOOLS are checked, but not started.
 *
 * @choice  as for gpul_driver_open()
 * @out     as for gpul_driver_open()
 * Errors  those of gpul_driver_open(); GPUL_EINVAL GPULOAD_SOFT_TOOLS names an unknown tool
 * Threads the main thread: changes the environment */
gpul_status soft_open_driver(gpul_driver_choice choice, const gpul_driver **out, gpul_error *err);

/** Fail if a list for GPULOAD_SOFT_TOOLS names an unknown tool.
 *
 * @drv   the driver that will start the tools; if it is not the software driver, nothing is checked
 * @list  the list; NULL: there is none
 * Errors  GPUL_EINVAL with the name that was probably meant */
gpul_status soft_check_tools(const gpul_driver *drv, const char *list, gpul_error *err);

/** Set the environment in which any program runs on the software driver, as gpuload soft does.
 *
 * @command  the program; NULL: any
 * Errors  no software driver; GPUL_ENOMEM; those of soft_open_driver()
 * Threads the main thread: changes the environment */
gpul_status soft_set_environment(const char *command, gpul_error *err);

#endif
