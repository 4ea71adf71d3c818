/* cu_stream_attribute.c — attributes of streams, which are only checked and stored: they are hints for hardware that a CPU lacks. */
#include "softcuda/api/stream/cu_queue_internal.h"

#include <string.h>

static CUresult get_attribute(const struct stream *s, CUstreamAttrID attribute, CUstreamAttrValue *out)
{
	memset(out, 0, sizeof *out);
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		out->accessPolicyWindow = s->hints.window;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		out->syncPolicy = s->hints.sync_policy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		out->priority = s->priority;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		out->memSyncDomainMap = s->hints.domain_map;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		out->memSyncDomain = s->hints.domain;
		return CUDA_SUCCESS;
	default:
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "attribute %d is not an attribute of streams", (int)attribute);
	}
}

static CUresult set_attribute(struct stream *s, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	switch ((int)attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		if (!(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1))
			return CUDA_ERROR_INVALID_VALUE;
		s->hints.window = value->accessPolicyWindow;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			return CUDA_ERROR_INVALID_VALUE;
		s->hints.sync_policy = value->syncPolicy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		s->priority = soft_clamp_priority(value->priority);
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		s->hints.domain_map = value->memSyncDomainMap;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		if (value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT && value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
			return CUDA_ERROR_INVALID_VALUE;
		s->hints.domain = value->memSyncDomain;
		return CUDA_SUCCESS;
	default:
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "attribute %d is not an attribute of streams", (int)attribute);
	}
}

EXPORT CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *out)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	r = out ? get_attribute(s, attribute, out) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	struct context *ctx;
	struct stream *s;
	CUresult r = soft_enter_stream(handle, &ctx, &s);

	if (r)
		return r;
	r = value ? set_attribute(s, attribute, value) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

/* The priority is not copied, because it cannot change after the creation of a stream. */
EXPORT CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	struct context *ctx;
	struct stream *s;
	struct stream_hints hints;
	CUresult r = soft_enter_stream(from, &ctx, &s);

	if (r)
		return r;
	hints = s->hints;
	soft_unlock();
	r = soft_enter_stream(to, &ctx, &s);
	if (r)
		return r;
	s->hints = hints;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* Written by hand, because both arguments can be the default stream: scripts/per_thread.py would replace only the first. */
EXPORT CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from)
{
	return cuStreamCopyAttributes(to ? to : CU_STREAM_PER_THREAD, from ? from : CU_STREAM_PER_THREAD);
}
