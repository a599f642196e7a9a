/* SPDX-License-Identifier: BSD-2-Clause */
/* The other image of the program shares. */
#include "shares.h"

SHARES_ROUTINE(share_d)
SHARES_ROUTINE(share_e)
