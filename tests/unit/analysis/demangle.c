/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "demangle.h"

struct expected {
	const char *linkage, *name;
};

static void check(const struct expected *e, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char *name = demangle_name(e[i].linkage);

		assert_string_equal(name ? name : e[i].linkage, e[i].name);
		free(name);
	}
}

#define CHECK(table) check(table, sizeof(table) / sizeof(*(table)))

/* The right sides are what binutils' c++filt and libstdc++ say. */
static void test_cxx(void **state)
{
	static const struct expected names[] = {
		{ "_Z1fv", "f()" },
		{ "_Z1fic", "f(int, char)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back(int const&)" },
		{ "_ZNKSt6vectorIiSaIiEE4sizeEv",
		  "std::vector<int, std::allocator<int> >::size() const" },
		{ "_ZN3foo3BarC2Ei", "foo::Bar::Bar(int)" },
		{ "_ZN3foo3BarD1Ev", "foo::Bar::~Bar()" },
		{ "_ZNSsC1ERKSs",
		  "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"
		  "::basic_string(std::string const&)" },
		{ "_Z3maxIiET_S0_S0_", "int max<int>(int, int)" },
		{ "_Z1fIJiPcEEvDpT_", "void f<int, char*>(int, char*)" },
		{ "_Z1fIJEEvDpT_", "void f<>()" },
		{ "_Z1fPFviE", "f(void (*)(int))" },
		{ "_Z1fM1AKFivE", "f(int (A::*)() const)" },
		{ "_Z1fRA3_A4_i", "f(int (&) [3][4])" },
		{ "_Z1fIiEPFvT_Ev", "void (*f<int>())(int)" },
		{ "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const" },
		{ "_ZZ4mainENKUlT_E_clIiEEDaS_",
		  "auto main::{lambda(auto:1)#1}::operator()<int>(int) const" },
		{ "_ZZ4mainENKUlT_DpT0_E0_clIdJicEEEDaS_S1_",
		  "auto main::{lambda(auto:1, (auto:2)...)#2}"
		  "::operator()<double, int, char>(double, int, char) const" },
		{ "_ZZ4mainENKUlOT_iPKT0_E1_clIRicEEDaS0_iS3_",
		  "auto main::{lambda(auto:1&&, int, auto:2 const*)#3}"
		  "::operator()<int&, char>(int&, int, char const*) const" },
		{ "_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()" },
		{ "_ZNK1AcvbEv", "A::operator bool() const" },
		{ "_ZN1AixEi", "A::operator[](int)" },
		{ "_ZlsRSo1A", "operator<<(std::ostream&, A)" },
		{ "_ZltI1AEbT_S1_", "bool operator< <A>(A, A)" },
		{ "_ZN1A1fB5cxx11Ev", "A::f[abi:cxx11]()" },
		{ "_ZTV1A", "vtable for A" },
		{ "_ZThn16_N1A1fEv", "non-virtual thunk to A::f()" },
		{ "_Z1fILi5ELb1EEvv", "void f<5, true>()" },
		{ "_Z1fILj3EEvv", "void f<3u>()" },
		{ "_Z1fIiEDTclfp_EET_", "decltype ({parm#1}()) f<int>(int)" },
		{ "_Z1fv.cold", "f() [clone .cold]" },
		{ "_Z1fv.constprop.0.part.1", "f() [clone .constprop.0] [clone .part.1]" },
		{ "_Z1fv@plt", "f()@plt" },
	};

	(void)state;
	CHECK(names);
}

static void test_rust(void **state)
{
	static const struct expected names[] = {
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
		{ "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt"
		  "17hfedcba9876543210E",
		  "<alloc::string::String as core::fmt::Display>::fmt" },
		{ "_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
		  "main::{{closure}}" },
		{ "_ZN1a1b17h0123456789abcdefE.llvm.12345", "a::b" },
		/* No hash: C++, in which a "$" is any character. */
		{ "_ZN1a3b$cE", "a::b$c" },
		{ "_ZN1a17hx123456789abcdefE", "a::hx123456789abcdef" },
		{ "_RNvC6_123foo3bar", "_RNvC6_123foo3bar" },
	};

	(void)state;
	CHECK(names);
}

/* As they are: what is no name, is cut, refers to what is not there. */
static void test_refused(void **state)
{
	static const char *const names[] = {
		"",	  "main",	"_Z",		"_ZN",		 "_Z1",	     "_Z9f",
		"_Z1fS_", "_Z1fT_",	"_ZN1AE1",	"_Z1fIi",	 "_ZNSE",    "_Z1fS",
		"_Z1fA_", "_Z1fSZ_v",	"_ZL",		"_ZZ",		 "_ZGR",     "_ZTC1A",
		"_Z1fDp", "_Z1fI",	"_Z1fIJ",	"_Z1fv.",	 "_Z1fU",    "_ZC1v",
		"_ZNSsC", "_ZNC1Ev",	"_Z1fLi",	"_ZN1aS_E",	 "_ZN1aStE", "_Z1fv\xff",
		"_Z0v",	  "_Z1fIXEEvv", "_Z1fIXflEEvv", "_Z4294967295a", "_Z1fP",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_null(demangle_name(names[i]));
}

static char *repeated(const char *head, const char *one, size_t nr, const char *tail)
{
	size_t len = strlen(one);
	char *text = malloc(strlen(head) + nr * len + strlen(tail) + 1), *to;

	assert_non_null(text);
	to = stpcpy(text, head);
	for (size_t i = 0; i < nr; i++)
		to = stpcpy(to, one);
	stpcpy(to, tail);
	return text;
}

static void refuse(char *text)
{
	assert_null(demangle_name(text));
	free(text);
}

/* What would fill the memory, the stack, or take for ever. */
static void test_hostile(void **state)
{
	char text[DEMANGLE_MAX] = "_Z1f1A", *to = text + strlen(text), *name;

	(void)state;
	/* Each parameter is a pair of the one before: 2^100 letters. */
	to = stpcpy(to, "PFvS_S_E");
	for (char c = '1'; c <= '9'; c++)
		to += sprintf(to, "PFvS%c_S%c_E", c, c);
	for (char c = 'B'; c <= 'Z'; c++)
		to += sprintf(to, "PFvS%c_S%c_E", c, c);
	assert_null(demangle_name(text));
	/* A search for a pack in it would take 2^26 steps. */
	strcpy(text, "_Z1fIiEvDp");
	for (int i = 0; i < 26; i++)
		strcat(text, "Fv");
	strcat(text, "1AS_E");
	for (char c = '0'; c <= '9'; c++)
		sprintf(text + strlen(text), "S%c_E", c);
	for (char c = 'A'; c <= 'O'; c++)
		sprintf(text + strlen(text), "S%c_E", c);
	assert_null(demangle_name(text));
	refuse(repeated("_Z1f", "P", 3000, "i"));
	refuse(repeated("_ZN", "1a", 3000, "E"));
	refuse(repeated("_Z1fI", "J", 3000, "EEvv"));
	refuse(repeated("_Z1fIX", "ng", 1900, "EEvv"));
	refuse(repeated("_Z", "Z", 3000, "1fv"));
	refuse(repeated("_Z1fIJiiiiiiiiEEvDp", "FiT_", 100, "E"));
	refuse(repeated("_Z", "4000a", 1, ""));
	/* Long, and nothing wrong with it. */
	name = repeated("_Z1f", "i", 500, "");
	to = demangle_name(name);
	assert_non_null(to);
	assert_int_equal(strlen(to), strlen("f()") + 500 * strlen("int, ") - 2);
	free(to);
	free(name);
	refuse(repeated("_Z1f", "i", DEMANGLE_MAX, ""));
}

static void test_match(void **state)
{
	static const char name[] =
		"void std::vector<int, std::allocator<int> >::push(int const&) const";
	static const char of_call[] = "A::operator()(int) const";

	(void)state;
	assert_true(demangle_match(name, name));
	assert_true(demangle_match(
		name, "void std::vector<int,std::allocator<int>>::push(int const&) const"));
	assert_true(demangle_match(name, "std::vector<int, std::allocator<int>>::push"));
	assert_true(demangle_match(name, "void std::vector<int, std::allocator<int> >::push"));
	assert_false(demangle_match(name, "push"));
	assert_false(demangle_match(name, "std::vector<int>::push"));
	assert_false(demangle_match(name, ""));
	assert_true(demangle_match(of_call, "A::operator()"));
	assert_false(demangle_match(of_call, "A::operator"));
	assert_true(demangle_match("f()", "f"));
	assert_true(demangle_match("(anonymous namespace)::f(int)", "(anonymous namespace)::f"));
	assert_true(demangle_match("A::operator<(A)", "A::operator<"));
	assert_true(demangle_match("A::operator bool() const", "A::operator bool"));
	assert_true(
		demangle_match("void fold_operator<int, long>(int)", "fold_operator<int, long>"));
	assert_true(demangle_match("core::fmt::pad", "core::fmt::pad"));
	assert_true(demangle_match("main::{lambda()#1}::operator()() const",
				   "main::{lambda()#1}::operator()"));
	assert_true(demangle_is("_Z1fi", "f"));
	assert_true(demangle_is("_Z1fi", "f(int)"));
	assert_true(demangle_is("_Z1fi", "_Z1fi"));
	assert_false(demangle_is("_Z1fi", "f(char)"));
	assert_true(demangle_is("f", "f"));
}

static void test_shown(void **state)
{
	const char *plain = "main", *odd = "_Zzz", *name = demangle_shown("_Z1fi");

	(void)state;
	assert_string_equal(name, "f(int)");
	assert_ptr_equal(name, demangle_shown("_Z1fi"));
	assert_ptr_equal(demangle_shown(plain), plain);
	assert_ptr_equal(demangle_shown(odd), odd);
	demangle_off = true;
	assert_string_equal(demangle_shown("_Z1fi"), "_Z1fi");
	demangle_off = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cxx),	cmocka_unit_test(test_rust),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_match),	cmocka_unit_test(test_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
