/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a pseudo-image: bytes put into its file, gathered where they are few. */
#include <errno.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

enum { MUCH = 256 << 10 };

int pseudoimg_put_at(int fd, const void *data, size_t len, uint64_t off)
{
	const uint8_t *p = data;
	ssize_t n;

	while (len) {
		n = pwrite(fd, p, len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
		off += (uint64_t)n;
	}
	return 0;
}

int pseudoimg_sink_drain(struct pseudoimg_sink *s)
{
	return s->b.len < MUCH ? 0 : pseudoimg_sink_flush(s);
}

int pseudoimg_sink_flush(struct pseudoimg_sink *s)
{
	int r = pseudoimg_put_at(s->fd, s->b.data, s->b.len, s->off);
	s->off += s->b.len;
	base_buf_clear(&s->b);
	return r;
}

int pseudoimg_sink_put_length(struct pseudoimg_sink *s, uint64_t at)
{
	uint64_t len = pseudoimg_sink_at(s) - at - 4;
	uint8_t bytes[4];

	if (len >= 0xfffffff0u)
		return -DCPI_ELIMIT;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(len >> 8 * i);
	if (at < s->off)
		return pseudoimg_put_at(s->fd, bytes, sizeof(bytes), at);
	memcpy(s->b.data + (at - s->off), bytes, sizeof(bytes));
	return 0;
}
