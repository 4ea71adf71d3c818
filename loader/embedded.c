/* embedded.c — loads PTX that is embedded in the program. */
#include "loader/embedded.h"

#include <stdlib.h>

#include "core/file/file.h"

gpul_status gpul_module_load_embedded(const gpul_driver *drv, const gpul_embedded *file, gpul_module **out, gpul_error *err)
{
	char *text = NULL;
	size_t n = 0;
	gpul_status st = gpul_embedded_text(file, &text, &n, err);

	st = st ? st : gpul_module_load_ptx(drv, text, n, gpul_file_name(file->name), NULL, out, err);
	free(text);
	return st;
}
