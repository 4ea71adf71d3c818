/* timed.c — see timed.h. */
#include "bench/timed.h"

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
