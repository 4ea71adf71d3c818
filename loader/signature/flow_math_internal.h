/* flow_math_internal.h — arithmetic on descriptions of values (flow_internal.h). */
#ifndef GPULOAD_LOADER_SIGNATURE_FLOW_MATH_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_FLOW_MATH_INTERNAL_H

#include "loader/signature/flow_internal.h"

gpul_flow gpul_flow_constant(int64_t value);
gpul_flow gpul_flow_either(gpul_flow a, gpul_flow b); /* one of the two */
uint64_t gpul_flow_room(uint64_t a, uint64_t b); /* the smaller; 0: no array */
gpul_flow gpul_flow_opaque(gpul_flow a);              /* computed from a, no telling how */
gpul_flow gpul_flow_neg(gpul_flow a);
gpul_flow gpul_flow_add(const gpul_flow_program *p, gpul_flow a, gpul_flow b, bool subtract);
gpul_flow gpul_flow_mul(gpul_flow a, gpul_flow b);
gpul_flow gpul_flow_power(gpul_flow a); /* 2 to the a */
gpul_flow gpul_flow_divide(gpul_flow a, gpul_flow b);
gpul_flow gpul_flow_remainder(gpul_flow a, gpul_flow b);
gpul_flow gpul_flow_and(gpul_flow a, gpul_flow b);
gpul_flow gpul_flow_clamped(gpul_flow a, gpul_flow b); /* min or max */
/* a, converted from an integer of from_bytes: what is narrower than an address is none. */
gpul_flow gpul_flow_resized(const gpul_flow_program *p, gpul_flow a, unsigned from_bytes);

#endif
