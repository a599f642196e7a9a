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
		{ "_ZN2OpcvPT_IcEEv", "Op::operator char*<char>()" },
		{ "_ZN2OpcvRT_I1XEEv", "Op::operator X&<X>()" },
		{ "_ZN1SIiEcvT_IcEEv", "S<int>::operator char<char>()" },
		{ "_ZN1SIiEcvT_Ev", "S<int>::operator int()" },
		{ "_ZNK2OpcvSt6vectorIT_SaIS1_EEIiEEv",
		  "Op::operator std::vector<int, std::allocator<int> ><int>() const" },
		{ "_Z1fIJiiEEDTsZfp_EDpT_",
		  "decltype (sizeof...({parm#1})) f<int, int>(int, int)" },
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

/* C++20's modules, in names that GCC 12 and clang 16 made, and in made-up ones; as c++filt has
 * them. */
/* A file of names: lines of a linkage name, a tab, and the name. */
static void test_compiled(void **state)
{
	char path[512], line[1024];
	size_t nr = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/data/demangle/names", getenv("DCPI_SRC"));
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t');

		line[strcspn(line, "\n")] = '\0';
		if (!tab)
			continue;
		*tab = '\0';
		check(&(struct expected){ line, tab + 1 }, 1);
		nr++;
	}
	fclose(f);
	assert_in_range(nr, 100, 1000);
}

static void test_modules(void **state)
{
	static const struct expected names[] = {
		{ "_ZW4profW4work6hiddenN3detS0_5StateEl",
		  "hidden@prof.work(det::State@prof.work, long)" },
		{ "_ZNW4profW4work3Big2goEN3detS0_5StateEl",
		  "Big@prof.work::go(det::State@prof.work, long)" },
		{ "_ZW4profW4work5hot_tImET_S2_l",
		  "unsigned long hot_t@prof.work<unsigned long>(unsigned long, long)" },
		{ "_ZN2nsW3bigW5thing3VecIiE2ItppEv", "ns::Vec@big.thing<int>::It::operator++()" },
		{ "_ZNKW3bigW5thing1KcvS0_5ColorEv",
		  "K@big.thing::operator Color@big.thing() const" },
		{ "_ZNW4prof1AC2ERKS0_", "A@prof::A(A@prof const&)" },
		{ "_ZNW4prof1AD1Ev", "A@prof::~A()" },
		{ "_ZW4profplS_1AS0_", "operator+@prof(A@prof, A@prof)" },
		{ "_ZW4profWP4part1fv", "f@prof:part()" },
		{ "_ZStW4prof1fv", "std::f@prof()" },
		{ "_ZW4profL1fv", "f@prof()" },
		{ "_ZW4prof3abcB5cxx11v", "abc@prof[abi:cxx11]()" },
		{ "_ZW4prof1fIiEvNS_1AIT_E1BES0_IlE",
		  "void f@prof<int>(A@prof<int>::B, f@prof<long>)" },
		{ "_ZTVW4prof3Foo", "vtable for Foo@prof" },
		{ "_ZGIW4profWP4part", "initializer for module prof:part" },
	};

	(void)state;
	CHECK(names);
	assert_true(demangle_is(names[0].linkage, "hidden@prof.work"));
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
	};

	(void)state;
	CHECK(names);
}

/* Its newer one: forms, and names that rustc 1.63 made. */
static void test_rust_v0(void **state)
{
	static const struct expected names[] = {
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_RNvCsdQ2w3SxtEgR_3rs14main", "rs1::main" },
		{ "_RNCNvCs1_3rs14mains0_0", "rs1::main::{closure#2}" },
		{ "_RNSNvC1a1b5inner", "a::b::{shim:inner#0}" },
		{ "_RINvCsdQ2w3SxtEgR_3rs13gendKj3e8_EB2_", "rs1::gen::<f64, 1000>" },
		{ "_RNvXs_CsdQ2w3SxtEgR_3rs1NtB4_2CiNtB4_5Shape4area",
		  "<rs1::Ci as rs1::Shape>::area" },
		{ "_RNvMNtCsdQ2w3SxtEgR_3rs15innerINtB2_1WmE5totalB4_",
		  "<rs1::inner::W<u32>>::total" },
		{ "_RNvYNtC1a1TNtC1a1B1f", "<a::T as a::B>::f" },
		{ "_RINvC1a1bThEAhj3_SeRhQShPaOxE", "a::b::<(u8,), [u8; 3], [str], &u8, &mut [u8], "
						    "*const i8, *mut i64>" },
		{ "_RINvC1a1bFUKCiEuE", "a::b::<unsafe extern \"C\" fn(isize)>" },
		{ "_RINvC1a1bFK12sys_v_unwindEzE", "a::b::<extern \"sys-v-unwind\" fn() -> !>" },
		{ "_RINvC1a1bFG0_RL1_hRL0_hEuE", "a::b::<for<'a, 'b> fn(&'a u8, &'b u8)>" },
		{ "_RINvC1a1bDG_INtC1a2FnTRL0_hEEp6OutputRL0_tNtC1a4SendEL_E",
		  "a::b::<dyn for<'a> a::Fn<(&'a u8,), Output = &'a u16> + a::Send>" },
		{ "_RINvC1a1bDNtC1a1Tp1Aup1BbEL_E", "a::b::<dyn a::T<A = (), B = bool>>" },
		{ "_RINvC1a1bL_Kb1_Kan5_Kc41_Kc27_Kc1f600_KpE",
		  "a::b::<'_, true, -5, 'A', '\\'', '\\u{1f600}', _>" },
		{ "_RINvC1a1bKo123456789abcdef01_E", "a::b::<0x123456789abcdef01>" },
		{ "_RNvC1au10gre_xka5fa", "a::punycode{gre_xka5fa}" },
		{ "_RNvC1a1b.llvm.12345", "a::b" },
		{ "_RNvC1a1b.cold", "a::b.cold" },
		{ "_RNvC1a1b@plt", "a::b@plt" },
	};

	(void)state;
	CHECK(names);
}

/* As they are: what is no name, is cut, refers to what is not there. */
static void test_refused(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"_Z",
		"_ZN",
		"_Z1",
		"_Z9f",
		"_Z1fS_",
		"_Z1fT_",
		"_ZN1AE1",
		"_Z1fIi",
		"_ZNSE",
		"_Z1fS",
		"_Z1fA_",
		"_Z1fSZ_v",
		"_ZL",
		"_ZZ",
		"_ZGR",
		"_ZTC1A",
		"_Z1fDp",
		"_Z1fI",
		"_Z1fIJ",
		"_Z1fv.",
		"_Z1fU",
		"_ZC1v",
		"_ZNSsC",
		"_ZNC1Ev",
		"_Z1fLi",
		"_ZN1aS_E",
		"_ZN1aStE",
		"_Z1fv\xff",
		"_Z0v",
		"_Z1fIXEEvv",
		"_Z1fIXflEEvv",
		"_Z4294967295a",
		"_Z1fP",
		"_ZW",
		"_ZW1a",
		"_ZGI",
		"_ZGIS_",
		"_ZW1a1fvS_",
		"_Z1fW1a1bS_",
		"_ZW1aW1bS_1c",
		"_R",
		"_R0NvC1a1b",
		"_RNvC1a",
		"_RNvC1a9b",
		"_RNvC1a1b1",
		"_RB_",
		"_RNvB_1a",
		"_RNvB9_1a",
		"_RINvC1a1bB3_E",
		"_RINvC1a1bRL0_hE",
		"_RC0",
		"_RNvC1a1bE",
		"_RINvC1a1bKb2_E",
		"_RINvC1a1bKcfffffffff_E",
		"_RINvC1a1bFGzzzzzzzzzzz_EuE",
		"_RINvC1a1bDNtC1a1TEE",
		"_RCszzzzzzzzzzzz_1a",
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
/* Each tuple holds the one before twice. */
static char *doubled(unsigned int nr)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *text = malloc(64 + nr * 16), *to;
	size_t last, begin;

	assert_non_null(text);
	to = stpcpy(text, "_RINvC1a1bTmmE");
	last = strlen("INvC1a1b");
	for (unsigned int i = 0; i < nr; i++) {
		begin = (size_t)(to - text) - 2;
		*to++ = 'T';
		for (int twice = 0; twice < 2; twice++) {
			*to++ = 'B';
			if (last > 62)
				*to++ = digits[(last - 1) / 62];
			*to++ = digits[(last - 1) % 62];
			*to++ = '_';
		}
		*to++ = 'E';
		last = begin;
	}
	strcpy(to, "E");
	return text;
}

static void test_hostile(void **state)
{
	char text[DEMANGLE_MAX] = "_Z1f1A", *to = text + strlen(text), *name;

	(void)state;
	/* Each parameter is a pair of the one before: 2^100 letters. */
	to = stpcpy(to, "PFvS_S_E");
	for (int c = '1'; c <= '9'; c++)
		to += sprintf(to, "PFvS%c_S%c_E", c, c);
	for (int c = 'B'; c <= 'Z'; c++)
		to += sprintf(to, "PFvS%c_S%c_E", c, c);
	assert_null(demangle_name(text));
	/* A search for a pack in it would take 2^26 steps. */
	strcpy(text, "_Z1fIiEvDp");
	for (int i = 0; i < 26; i++)
		strcat(text, "Fv");
	strcat(text, "1AS_E");
	for (int c = '0'; c <= '9'; c++)
		sprintf(text + strlen(text), "S%c_E", c);
	for (int c = 'A'; c <= 'O'; c++)
		sprintf(text + strlen(text), "S%c_E", c);
	assert_null(demangle_name(text));
	refuse(repeated("_Z1f", "P", 3000, "i"));
	refuse(repeated("_ZN", "1a", 3000, "E"));
	refuse(repeated("_Z", "W1a", 1300, "1fv"));
	refuse(repeated("_Z1fI", "J", 3000, "EEvv"));
	refuse(repeated("_Z1fIX", "ng", 1900, "EEvv"));
	refuse(repeated("_Z", "Z", 3000, "1fv"));
	refuse(repeated("_Z1fIJiiiiiiiiEEvDp", "FiT_", 100, "E"));
	refuse(repeated("_Z", "4000a", 1, ""));
	refuse(repeated("_RINvC1a1b", "T", 3000, "E"));
	refuse(repeated("_R", "Nv", 2000, "C1a"));
	name = doubled(2);
	to = demangle_name(name);
	assert_string_equal(to, "a::b::<(u32, u32), ((u32, u32), (u32, u32)), "
				"(((u32, u32), (u32, u32)), ((u32, u32), (u32, u32)))>");
	free(to);
	free(name);
	refuse(doubled(60));
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

static void test_short(void **state)
{
	static const struct {
		const char *name, *is;
	} names[] = {
		{ "main", "main" },
		{ "square(int)", "square(…)" },
		{ "f()", "f()" },
		{ "void std::swap<Order>(Order&, Order&)", "std::swap<…>(…)" },
		{ "unsigned long a::b<c<d>, (e)1>::f(g<h>) const", "a::b<…>::f(…) const" },
		{ "bool std::operator< <char, x<y> >(z const&)", "std::operator<<…>(…)" },
		{ "a::operator()(int) const", "a::operator()(…) const" },
		{ "a<b>::operator->()", "a<…>::operator->()" },
		{ "a::operator bool()", "a::operator bool()" },
		{ "(anonymous namespace)::f(int)", "(anonymous namespace)::f(…)" },
		{ "f(int)::{lambda(g const&)#1}::operator()(g) const",
		  "f(…)::{lambda(…)#1}::operator()(…) const" },
		{ "void f<g>(h) [clone .isra.0]", "f<…>(…)" },
		{ "<a::B<c> as d::E>::f", "<a::B<…> as d::E>::f" },
		{ "odd<", "odd<…>" },
		{ ">>", ">>" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *is = demangle_short(names[i].name);

		assert_string_equal(is, names[i].is);
		free(is);
	}
}

static void test_shorten(void **state)
{
	static const struct {
		const char *name;
		size_t width;
		const char *is;
	} names[] = {
		{ "main", 8, "main" },
		{ "square(int)", 11, "square(int)" },
		{ "a::b<c<d, e>, f>::g(h<i>)", 24, "a::b<c<…>, f>::g(h<i>)" },
		{ "a::b<c<d, e>, f>::g(h<i>)", 18, "a::b<…>::g(h<…>)" },
		{ "a::b<c<d, e>, f>::g(h<i>)", 13, "a::b<…>::g(…)" },
		{ "a::b<c<d, e>, f>::g(h<i>)", 9, "a::b…g(…)" },
		{ "a<b>::operator->(c<d>)", 20, "a<…>::operator->(…)" },
		{ "a<b>::operator<<(c<d>)", 20, "a<…>::operator<<(…)" },
		{ "a<b>::operator<=>(c<d>)", 21, "a<…>::operator<=>(…)" },
		{ "a<b>::operator->*<c<d> >(e)", 23, "a<…>::operator->*<…>(e)" },
		{ "a_long_name_of_c", 9, "a_lo…of_c" },
		{ "/usr/lib/x86_64-linux-gnu/libc.so.6", 20, "/usr/lib/…/libc.so.6" },
		{ "/usr/a-name-that-is-far-too-long", 12, "/usr/…o-long" },
		{ "(image changed)", 12, "(imag…anged)" },
		{ "(anonymous namespace)::f(int)", 12, "(…)::f(…)" },
		{ "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 8,
		  "\xc3\xa4\xc3\xa4\xc3\xa4…\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *is = demangle_shorten(names[i].name, names[i].width);

		assert_string_equal(is, names[i].is);
		assert_true(base_text_width(is) <= names[i].width);
		/* The shown name can be typed. */
		assert_true(*is == '/' || demangle_match(names[i].name, is));
		free(is);
	}
}

/* Code keeps its brackets and its beginning. */
static void test_cut(void **state)
{
	static const struct {
		const char *text;
		size_t width;
		const char *is;
	} lines[] = {
		{ "if (a < b)", 10, "if (a < b)" },
		{ "if (a < b)", 9, "if (a < …" },
		{ "if (a < b)", 1, "…" },
		{ "if (a < b)", 0, "if (a < b)" },
		{ "\xc3\xa4\xc3\xa4\xc3\xa4", 2, "\xc3\xa4…" },
		{ "", 4, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *is = demangle_cut(lines[i].text, lines[i].width);

		assert_string_equal(is, lines[i].is);
		free(is);
	}
}

/* A hostile name: @text again and again, up to the longest that there may be. */
static void shorten_many(const char *text, size_t width)
{
	enum { LEN = 4095 };
	char name[LEN + 1], *is;

	for (size_t i = 0; i < LEN; i++)
		name[i] = text[i % strlen(text)];
	name[LEN] = '\0';
	is = demangle_shorten(name, width);
	assert_non_null(is);
	assert_true(base_text_width(is) <= width);
	free(is);
}

static void test_shorten_hostile(void **state)
{
	static const char *const texts[] = {
		"<",   ">",    "<>",	    "<<>",    "-<=>",
		"a<b", "a<b(", "operator<", "(<->=)", "<<<<<<<<a>>>>>>>>"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (size_t width = 8; width < 5000; width *= 3)
			shorten_many(texts[i], width);
}

static void test_fit(void **state)
{
	static const char name[] = "std::vector<int, a<b> >::push_back(int const&)";

	(void)state;
	assert_int_equal(demangle_fit(name, "std::vector<int,a<b>>::push_back"), DEMANGLE_MATCHES);
	assert_int_equal(demangle_fit(name, "std::vector<…>::push_back"), DEMANGLE_MATCHES);
	assert_int_equal(demangle_fit(name, "std::vector::push_back"), DEMANGLE_UNARGUED);
	assert_int_equal(demangle_fit(name, "push_back"), DEMANGLE_WORDS);
	assert_int_equal(demangle_fit(name, "push_b"), DEMANGLE_PART);
	assert_int_equal(demangle_fit(name, "pu"), DEMANGLE_NONE);
	assert_int_equal(demangle_fit(name, "…pop…"), DEMANGLE_NONE);
	assert_int_equal(demangle_fit("a::operator<<(b)", "a::operator<<"), DEMANGLE_MATCHES);
	assert_int_equal(demangle_fit("", ""), DEMANGLE_MATCHES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_rust_v0),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_shorten_hostile),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
