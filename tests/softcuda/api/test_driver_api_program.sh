#!/bin/bash
# A program that knows only NVIDIA's <cuda.h> and -lcuda runs unchanged with our folder in the loader's path.
set -euo pipefail
build=${GPULOAD_BUILD:-build}
program=$build/tests/softcuda/api/driver_api_program

export LD_LIBRARY_PATH=$build/softcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
said=$("$program")
if [ "$said" != "gpuload software GPU: 0 of 50000 elements wrong" ]; then
	echo "the program said: $said" >&2
	exit 1
fi
