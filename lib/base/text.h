/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/base only: text from outside, made fit for one line of a terminal or a log. */
#ifndef DCPI_BASE_TEXT_H
#define DCPI_BASE_TEXT_H

/* Replace control characters (a file name may hold newlines and escapes) by '?'. */
static inline void base_text_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

#endif
