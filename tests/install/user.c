/* user.c — a program that uses the installed library; test_install.py builds and runs it. */
#include <stdio.h>

#include "gpuload.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry answer(.param .u64 p)\n{\n"
			  "\t.reg .b64 %rd<2>;\n\t.reg .b32 %r<2>;\n"
			  "\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, 42;\n\tst.global.u32 "
			  "[%rd1], %r1;\n\tret;\n}\n";

static gpul_status answer(const gpul_driver *drv, gpul_module *m, unsigned *out, gpul_error *err)
{
	gpul_launch_config one = { .grid = { 1 }, .block = { 1 } };
	const gpul_kernel *k;
	CUdeviceptr p;
	gpul_status st = gpul_kernel_find(m, NULL, &k, err);

	if (!st)
		st = gpul_cu(drv, err, cuMemAlloc(&p, sizeof *out));
	if (st)
		return st;
	st = gpul_kernel_launch(k, &one, GPUL_ARGS(p), err);
	if (!st)
		st = gpul_cu(drv, err, cuMemcpyDtoH(out, p, sizeof *out));
	drv->cuMemFree(p);
	return st;
}

int main(void)
{
	const gpul_driver *drv;
	gpul_context c = { 0 };
	gpul_module *m = NULL;
	gpul_error err = GPUL_ERROR_INIT;
	unsigned out = 0;
	gpul_status st = gpul_driver_open(GPUL_DRIVER_SOFT, &drv, &err);

	if (!st)
		st = gpul_context_open(drv, 0, &c, &err);
	if (!st)
		st = gpul_module_load_ptx(drv, ptx, sizeof ptx - 1, "answer.ptx", NULL, &m, &err);
	if (!st)
		st = answer(drv, m, &out, &err);
	gpul_module_unload(m);
	gpul_context_close(&c);
	if (st)
		fprintf(stderr, "user: %s\n", err.text);
	else
		printf("%u\n", out);
	return st != GPUL_OK;
}
