/* trace_internal.h — what a kernel did, instruction by instruction. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_TRACE_TRACE_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_trace_tool;

#endif
