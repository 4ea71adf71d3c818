/* print_kernels.c — print the kernels of all images of a file, one per line, for test_ptxas.py.
 *
 *     NAME REGISTERS SHARED FRAME BARRIERS */
#include <stdio.h>

#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"

static gpul_status print(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context, gpul_error *err)
{
	(void)image;
	(void)context;
	if (failed)
		return gpul_fail(err, failed->status, failed->native, "%s", failed->text);
	for (size_t i = 0; i < table->n; i++) {
		const gpul_kernel_info *k = &table->at[i];

		printf("%s %u %u %u %u\n", k->name, k->registers, k->shared_bytes, k->frame_bytes, k->barriers);
	}
	return GPUL_OK;
}

int main(int argc, char **argv)
{
	gpul_source *source = NULL;
	const gpul_images *images = NULL;
	gpul_error err = { 0 };
	gpul_status st;

	if (argc != 2) {
		fprintf(stderr, "usage: print_kernels FILE\n");
		return 2;
	}
	st = gpul_source_open(argv[1], &source, &err);
	if (!st)
		st = gpul_source_images(source, NULL, &images, &err);
	if (!st)
		st = gpul_kernels_visit(images, NULL, print, NULL, NULL, &err);
	if (st)
		fprintf(stderr, "print_kernels: %s\n", err.text);
	gpul_source_close(source);
	return st != GPUL_OK;
}
