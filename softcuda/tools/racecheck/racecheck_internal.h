/* racecheck_internal.h — declares the tool that finds data races. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_RACECHECK_RACECHECK_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_RACECHECK_RACECHECK_INTERNAL_H

struct tool;

extern const struct tool gpul_racecheck_tool;

#endif
