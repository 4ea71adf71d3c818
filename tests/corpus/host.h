/* host.h — the part of the assert case that runs in a separate process. */
#ifndef GPULOAD_TESTS_CORPUS_HOST_H
#define GPULOAD_TESTS_CORPUS_HOST_H

struct corpus;

/* Launch the kernel pf with a value for which its assertion fails.  Returns 0 if this is CUDA_ERROR_ASSERT. */
int corpus_assert_child(struct corpus *c);

#endif
