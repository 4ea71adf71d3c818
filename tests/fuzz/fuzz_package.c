/* fuzz_package.c — libFuzzer target: visits the members of a zip or tar file made of any bytes, or refuses the bytes. */
#include <assert.h>

#include "loader/image/package/package.h"
#include "tests/fuzz/fuzz_reader.h"

/* Read every byte of a member, so that AddressSanitizer detects bytes outside of its memory. */
static gpul_status read_member(const char *name, const void *bytes, size_t n_bytes, const gpul_error *failed, void *context,
			       gpul_error *err)
{
	unsigned *sum = context;

	(void)err;
	assert(name && !bytes == (failed != NULL) && (!failed || *failed->text));
	for (size_t i = 0; i < n_bytes; i++)
		*sum += ((const unsigned char *)bytes)[i];
	return GPUL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	gpul_error err = { 0 };
	unsigned sum = 0;

	if (gpul_package_visit(data, n_bytes, "fuzz.zip", read_member, &sum, &err))
		assert(*err.text);
	return 0;
}
