/* start_internal.h — starts and finishes the tools of the process; used by softcuda/api. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_START_START_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_START_START_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

/** Start the tools that GPULOAD_SOFT_TOOLS lists, if it is set.
 *
 *     NAME[:KEY[=VALUE]]...[,NAME...]     a backslash quotes the next character of a VALUE
 *
 * @memory the table of memory that kernels may access, before any program is loaded; borrowed
 * Errors   GPUL_EINVAL an unknown tool or option; the errors of create()
 * Threads  one thread, in cuInit */
gpul_status gpul_tools_start(gpul_exec_memory *memory, gpul_error *err);
/** Check the names of tools and options in a list (with the format of GPULOAD_SOFT_TOOLS) without starting a tool.
 *
 * @list   the list
 * Errors GPUL_EINVAL an unknown tool (the message suggests a similar name) or option; GPUL_ENOMEM */
gpul_status gpul_tools_check(const char *list, gpul_error *err);
bool gpul_tools_are_used(void);
/* Call finish() of all tools once, or stop() if kernels are running.  Returns the number of errors that they reported. */
int gpul_tools_finish(bool kernels_run);

#endif
