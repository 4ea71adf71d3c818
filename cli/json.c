/* json.c — see json.h. */
#include "cli/json.h"

#include <math.h>
#include <stdio.h>

#include "cli/value.h"

gpul_status json_missing(gpul_error *err)
{
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "--json: this gpuload was built without cJSON (libcjson-dev)");
}

#if GPUL_HAVE_CJSON
cJSON *json_element(gpul_type t, const void *bytes)
{
	char text[VALUE_TEXT_BYTES];
	struct value v = value_load(t, bytes);

	value_print(t, bytes, text);
	return v.is_float && !isfinite(v.f) ? cJSON_CreateString(text) : cJSON_CreateRaw(text);
}

cJSON *json_u32s(const uint32_t *values, size_t n)
{
	cJSON *array = cJSON_CreateArray();

	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(array, cJSON_CreateNumber(values[i]));
	return array;
}

gpul_status json_print(cJSON *object, gpul_error *err)
{
	char *text = object ? cJSON_Print(object) : NULL;

	cJSON_Delete(object);
	if (!text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the JSON text");
	puts(text);
	cJSON_free(text);
	return GPUL_OK;
}
#endif
