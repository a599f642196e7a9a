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
