/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that do not return, known by the name of what is called. */
#include <string.h>

#include "walk.h"

static const char *const never[] = {
	"abort",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"pthread_exit",
	"thrd_exit",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp_chk",
	"__assert",
	"__assert_fail",
	"__assert_rtn",
	"__assert_perror_fail",
	"__assert_fail_base",
	"__stack_chk_fail",
	"__stack_chk_fail_local",
	"__fortify_fail",
	"__chk_fail",
	"__libc_fatal",
	"__libc_start_call_main",
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_throw_bad_array_new_length",
	"__cxa_pure_virtual",
	"__cxa_call_unexpected",
	"__cxa_call_terminate",
	"__clang_call_terminate",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"err",
	"errx",
	"verr",
	"verrx",
	"panic",
	"do_exit",
	"__builtin_unreachable",
	"rust_begin_unwind",
	"rust_panic",
};

static bool name_never_returns(const char *name)
{
	size_t len = strcspn(name, "@"); /* "abort@plt" */

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (strncmp(name, never[i], len) == 0 && !never[i][len])
			return true;
	/* std::__throw_bad_alloc() and its likes; core::panicking::panic of Rust */
	return strncmp(name, "_ZSt", 4) == 0	   ? strstr(name, "__throw_") != NULL
	       : strncmp(name, "_ZN4core", 8) == 0 ? strstr(name, "9panicking") != NULL
						   : false;
}

bool flow_never_returns(const struct flow_walk *w, const struct insn *insn)
{
	const struct image_symbol *s;

	if (insn->flow != INSN_CALL || !w->source->symbol_at)
		return false;
	s = w->source->symbol_at(w->source->context, insn->target);
	return s && s->vaddr == insn->target && name_never_returns(s->name);
}
