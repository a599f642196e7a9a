/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of OpenVMS (dbgdyn_vms.h), put on top of those of dbgdyn.h. */
#include "dbgdyn_vms.h"

static uint32_t status_of(int result)
{
	switch (result) {
	case DBGDYN_OK:
		return SS$_NORMAL;
	case DBGDYN_ENOMEM:
		return DBG$_INSFMEM;
	case DBGDYN_ENODAEMON:
		return DBG$_NODAEMON;
	case DBGDYN_ETIMEDOUT:
	case DBGDYN_EINPROGRESS:
		return DBG$_TIMEOUT;
	case DBGDYN_EFULL:
		return DBG$_EXQUOTA;
	case DBGDYN_EREFUSED:
		return DBG$_REFUSED;
	case DBGDYN_EIO:
		return DBG$_IOERROR;
	default:
		return DBG$_BADPARAM;
	}
}

/* A quadword that names a range's length: not below 0, and no more than an address can count. */
static int length_of(int64_t bytes, size_t *len)
{
	*len = (size_t)bytes;
	return bytes >= 0 && (uint64_t)bytes == *len;
}

static const void *address_of(uint64_t base)
{
	return (const void *)(uintptr_t)base;
}

uint32_t DBG$DYN_BEGIN(const struct dsc$descriptor_s *facility_id, int64_t code_bytes,
		       uint64_t code_base, int64_t dst_bytes, uint64_t dst_base, uint64_t *context)
{
	struct dbgdyn_options opts = { .size = sizeof(opts) };
	dbgdyn_context made;
	int r;

	if (!context)
		return DBG$_BADPARAM;
	*context = 0;
	if (!facility_id || !length_of(code_bytes, &opts.code_len) ||
	    !length_of(dst_bytes, &opts.dst_len))
		return DBG$_BADPARAM;
	/* The address of a range without bytes says nothing. */
	opts.code_base = code_bytes ? address_of(code_base) : NULL;
	opts.dst_base = dst_bytes ? address_of(dst_base) : NULL;
	r = dbgdyn_begin(facility_id->dsc$a_pointer, facility_id->dsc$w_length, &opts, &made);
	*context = made.id;
	return status_of(r);
}

uint32_t DBG$DYN_ADD(uint32_t type, int64_t bytes, uint64_t base, const uint64_t *context)
{
	size_t len;

	if (!context || !length_of(bytes, &len) || (type != DBG$C_CODE && type != DBG$C_DST))
		return DBG$_BADPARAM;
	return status_of(dbgdyn_add((dbgdyn_context){ *context }, (enum dbgdyn_kind)type,
				    address_of(base), len));
}

uint32_t DBG$DYN_END(uint64_t *context)
{
	int r;

	if (!context)
		return DBG$_BADPARAM;
	r = dbgdyn_end((dbgdyn_context){ *context });
	*context = 0;
	return status_of(r);
}
