/* debug_tool_internal.h — declares the tool `debug` for the list of tools. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_DEBUG_DEBUG_TOOL_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_DEBUG_DEBUG_TOOL_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_debug_tool;

#endif
