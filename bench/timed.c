/* timed.c — reads the clocks of the CPU and of the GPU; loads generated PTX. */
#include "bench/timed.h"

#include <stdlib.h>
#include <time.h>

#include "driver/context.h"

static double read_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double now_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

double cpu_ms(void)
{
	return read_ms(CLOCK_PROCESS_CPUTIME_ID);
}

gpul_status timed_open(struct timed *t, const gpul_driver *drv, gpul_error *err)
{
	gpul_status st;

	*t = (struct timed){ .drv = drv };
	st = gpul_cu(drv, err, cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(drv, err, cuEventCreate(&t->start, CU_EVENT_DEFAULT));
	return st ? st : gpul_cu(drv, err, cuEventCreate(&t->stop, CU_EVENT_DEFAULT));
}

void timed_close(struct timed *t)
{
	if (t->stop)
		t->drv->cuEventDestroy(t->stop);
	if (t->start)
		t->drv->cuEventDestroy(t->start);
	if (t->stream)
		t->drv->cuStreamDestroy(t->stream);
}

gpul_status timed_begin(struct timed *t, gpul_error *err)
{
	return gpul_cu(t->drv, err, cuEventRecord(t->start, t->stream));
}

gpul_status timed_end(struct timed *t, double *ms, gpul_error *err)
{
	float taken = 0;
	gpul_status st = gpul_cu(t->drv, err, cuEventRecord(t->stop, t->stream));

	st = st ? st : gpul_cu(t->drv, err, cuEventSynchronize(t->stop));
	st = st ? st : gpul_cu(t->drv, err, cuEventElapsedTime(&taken, t->start, t->stop));
	*ms = (double)taken;
	return st;
}

gpul_status timed_load_ptx(const gpul_driver *drv, const char *head, void (*write_kernels)(FILE *), gpul_module **out, gpul_error *err)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *f = open_memstream(&text, &n_bytes);
	gpul_status st;

	if (!f)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels");
	fputs(head, f);
	write_kernels(f);
	fclose(f);
	st = gpul_module_load_ptx(drv, text, n_bytes, "bench.ptx", NULL, out, err);
	free(text);
	return st;
}

int timed_run(const char *program, gpul_driver_choice choice, int device,
	      gpul_status (*run)(const gpul_driver *drv, void *bench, gpul_error *err), void *bench)
{
	const gpul_driver *drv;
	gpul_context context;
	gpul_error err = { 0 };
	gpul_status st = gpul_driver_open(choice, &drv, &err);

	st = st ? st : gpul_context_open(drv, device, &context, &err);
	if (!st) {
		st = run(drv, bench, &err);
		gpul_context_close(&context);
	}
	if (st)
		fprintf(stderr, "%s: %s\n", program, err.text);
	return st != GPUL_OK;
}
