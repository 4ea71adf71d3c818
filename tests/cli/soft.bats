#!/usr/bin/env bats
# soft.bats — gpuload soft: runs a command with the environment of the software driver.
load helper

@test "soft runs a command on the software driver, and says so in one line" {
	works soft --gpus 2 --sm 80 --memory 3G -- gpuload devices --json
	[[ $stderr == "gpuload soft: gpuload runs on the software driver in "*": 2 GPUs, sm_80, 3G memory; "* ]] || show "should say what was set"
	[[ ${#stderr_lines[@]} == 1 ]] || show "should print one line"
	[[ $(grep -o '"compute_capability": *"8.0"' <<<"$output" | wc -l) == 2 || $(grep -c '"memory_bytes": *3221225472' <<<"$output") -ge 1 ]] || show "should have 2 GPUs of sm_80"
	works soft --quiet --sm sm_75 -- sh -c 'echo $GPULOAD_SOFT_SM'
	[[ $output == 75 && -z $stderr ]] || show "--quiet should print nothing"
}

@test "the exit status and the signals are those of the command" {
	fails 2 "a command is missing" soft
	run gpuload soft --quiet -- sh -c 'exit 37'
	[[ $status == 37 ]] || show "should exit with 37"
	gpuload soft --quiet -- sh -c 'echo $$ > pid; trap "exit 9" TERM; touch ready; while :; do sleep 0.05; done' &
	local own=$! i
	for ((i = 0; i < 600; i++)); do [[ -e ready ]] && break; sleep 0.05; done
	[[ $(cat pid) == "$own" ]] || show "should be the same process"
	kill -TERM "$own"
	wait "$own" || status=$?
	[[ $status == 9 ]] || show "the command should receive the signal"
}

@test "a command without a terminal has the libraries, and keeps what the user has set" {
	LD_LIBRARY_PATH=/own NUMBA_CUDA_DRIVER=/mine works soft --quiet -- sh -c 'echo "$LD_LIBRARY_PATH $NUMBA_CUDA_DRIVER"'
	[[ $output == */softcuda:/own\ /mine ]] || show "should extend one and keep the other"
	works soft --quiet -- sh -c 'cat /proc/self/maps'
	[[ $output == *libnvrtc.so.13*libnvJitLink.so.13* || $output == *libnvJitLink.so.13*libnvrtc.so.13* ]] || show "should have loaded the libraries"
	[[ $output == *libnvfatbin.so.13* ]] || show "should have loaded libnvfatbin"
}

@test "soft --env prints the variables for another program" {
	works soft --env --sm 86
	says "GPULOAD_SOFT_SM=86"
	says "GPULOAD_DRIVER=soft"
	[[ $(env $(gpuload soft --env --gpus 3) gpuload devices | grep -c "gpuload software GPU") == 3 ]] || show "env should accept the lines"
}

@test "soft --tools watches the kernels, and makes the exit status 1" {
	run --separate-stderr gpuload soft --quiet --tools memcheck -- gpuload run "$faults" --kernel out_of_bounds
	[[ $status != 0 ]] || show "a fault should be found"
}

@test "soft --cuda sets the version that the driver reports" {
	works soft --quiet --cuda 13.4 -- gpuload devices
	says "CUDA 13.4"
	fails 2 "--cuda must be a version of CUDA such as 12.9 or 13.4, not '13'" soft --cuda 13 -- true
	fails 2 "--cuda must be a version of CUDA such as 12.9 or 13.4, not '9.2'" soft --cuda 9.2 -- true
	GPULOAD_SOFT_CUDA=x GPULOAD_SOFT_QUIET=1 fails 1 "CUDA_ERROR_INVALID_VALUE" devices --driver soft
}

@test "soft --strict-ptx refuses what ptxas refuses, and says why" {
	cat > strict.ptx <<-'END'
		.version 7.0
		.target sm_75
		.address_size 64
		.visible .entry k() { .reg .f32 f<2>; .reg .f64 d<2>; cvt.f32.f64 f0, d0; ret; }
	END
	works soft --quiet -- gpuload run strict.ptx --kernel k
	run --separate-stderr gpuload soft --quiet --strict-ptx -- gpuload run strict.ptx --kernel k
	[[ $status == 1 && $stderr == *"strict.ptx:4:55: cvt.f32.f64 needs one of .rn, .rz, .rm, .rp"* ]] || show "should refuse the conversion"
	works soft --env --strict-ptx
	says "GPULOAD_SOFT_STRICT=1"
}

@test "--pci lists the GPUs as PCI devices, for the command only" {
	[[ -d /sys/bus/pci/devices && -d /proc/driver ]] || skip "no list of PCI devices and drivers"
	unshare -m true || skip "mount namespaces are not permitted here"
	works soft --gpus 2 --pci --quiet -- sh -c 'ls /proc/driver/nvidia/gpus; cd /sys/bus/pci/devices; cat ffff:01:00.0/class; ls; ls -L * >/dev/null'
	[[ $output == *$'ffff:00:00.0\nffff:01:00.0\n0x030200\n'* ]] || show "the addresses of two GPUs and the class of a 3D controller"
	for device in $(ls /sys/bus/pci/devices); do
		says "$device"
	done
	[[ ! -e /sys/bus/pci/devices/ffff:00:00.0 && ! -e /proc/driver/nvidia/gpus/ffff:00:00.0 ]]
	fails 2 "--pci needs a command to run" soft --pci --env
}

@test "wrong options are usage errors" {
	fails 2 "--gpus must be a number from 1 to 16, not '0'" soft --gpus 0 -- true
	fails 2 "--sm must be a compute capability such as 75, 80 or 90, not 'x'" soft --sm x -- true
	fails 2 "--memory must be a number of bytes such as 512M or 8G, not '0'" soft --memory 0 -- true
	fails 2 "cannot be combined with a command" soft --env -- true
	fails 1 "cannot run no-such-command: No such file or directory" soft --quiet -- no-such-command
}

@test "the tool chain is that of the Python packages of the command" {
	mkdir -p venv/bin venv/lib/python3.9/site-packages/nvidia/cu13/lib
	ln -s /bin/true venv/bin/python3
	printf '#!%s/venv/bin/python3\n' "$PWD" > venv/bin/tool
	chmod +x venv/bin/tool
	(unset CUDA_HOME; gpuload soft -- venv/bin/tool 2>&1) | grep "; CUDA_HOME $PWD/venv/lib/python3.9/site-packages/nvidia/cu13$" || show "should be found through the script"
	PATH="$PWD/venv/bin:$PATH" CUDA_HOME=/mine works soft -- tool
	[[ $stderr == *"; CUDA_HOME /mine" ]] || show "the user's should stay"
}

@test "nvcc adds line information, after what the user has set, and PyCUDA has a cache of its own" {
	XDG_CACHE_HOME="$PWD/caches" NVCC_APPEND_FLAGS=-O1 works soft --quiet -- sh -c 'echo "$NVCC_APPEND_FLAGS $PYCUDA_CACHE_DIR"'
	[[ $output == "-O1 -lineinfo $PWD/caches/gpuload/pycuda" && -d caches/gpuload/pycuda ]] || show "should append the option and create the folder"
	NVCC_APPEND_FLAGS="-lineinfo -O1" works soft --quiet -- sh -c 'echo "$NVCC_APPEND_FLAGS"'
	[[ $output == "-lineinfo -O1" ]] || show "should not add it again"
	touch file
	XDG_CACHE_HOME="$PWD/file" works soft --quiet -- sh -c 'echo "$PYCUDA_CACHE_DIR $PYCUDA_DISABLE_CACHE"'
	[[ $output == " 1" ]] || show "without a folder PyCUDA should have no cache"
}

@test "a cubin that nvcc compiles can be loaded" {
	command -v nvcc || skip "nvcc was not found"
	echo '__global__ void k(int *p) { *p = 42; }' > k.cu
	works soft --quiet -- nvcc -cubin -arch sm_90 -o k.cubin k.cu
	works soft --quiet -- python3 -c 'import ctypes
cuda, p = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(p), 0), cuda.cuCtxSetCurrent(p), cuda.cuModuleLoad(ctypes.byref(p), b"k.cubin"))'
	[[ $output == "0 0 0 0" ]] || show "should be loaded"
}
