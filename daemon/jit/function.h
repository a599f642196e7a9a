/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of interpreters' functions, as their process has them. */
#ifndef DCPI_DYN_FUNCTION_H
#define DCPI_DYN_FUNCTION_H

#include "base.h"
#include "driver.h"

/* Append it as UTF-8; what is no character becomes U+FFFD. 0 or -ENOMEM. */
int dyn_function_text(struct base_buf *b, const struct driver_string *s);
/* Append "module.function"; the module is that of the file @path. Likewise. */
int dyn_function_name(struct base_buf *b, const struct driver_function *f, const char *path,
		      size_t path_len);

#endif
