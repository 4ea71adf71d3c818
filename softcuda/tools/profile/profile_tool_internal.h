/* profile_tool_internal.h — declares the tool `profile` for the list of tools. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_TOOL_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_PROFILE_PROFILE_TOOL_INTERNAL_H

#include "softcuda/tools/tool_internal.h"

extern const struct tool gpul_profile_tool;

#endif
