/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_jvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_jvm fake_jvm;

jmethodID fake_id(uintptr_t n)
{
	return (jmethodID)(n << 3);
}

static bool refuses(enum fake_call call)
{
	fake_jvm.nr_asked++;
	return fake_jvm.refused == call;
}

static char *text(const char *s)
{
	fake_jvm.nr_blocks++;
	return strdup(s);
}

static jvmtiError JNICALL deallocate(jvmtiEnv *env, unsigned char *memory)
{
	(void)env;
	fake_jvm.nr_blocks--;
	free(memory);
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL method_name(jvmtiEnv *env, jmethodID id, char **name, char **signature,
				      char **generic)
{
	char s[40];

	(void)env;
	(void)generic;
	if (refuses(FAKE_METHOD_NAME))
		return JVMTI_ERROR_INVALID_METHODID;
	snprintf(s, sizeof(s), "m%zu", (size_t)((uintptr_t)id >> 3));
	*name = text(s);
	*signature = text("(I)V");
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL declaring_class(jvmtiEnv *env, jmethodID id, jclass *out)
{
	(void)env;
	(void)id;
	if (refuses(FAKE_CLASS))
		return JVMTI_ERROR_INVALID_METHODID;
	fake_jvm.nr_references++;
	*out = (jclass)&fake_jvm;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL class_signature(jvmtiEnv *env, jclass class, char **signature,
					  char **generic)
{
	(void)env;
	(void)class;
	(void)generic;
	if (refuses(FAKE_SIGNATURE))
		return JVMTI_ERROR_INVALID_CLASS;
	*signature = text("Lpkg/Fake;");
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL source_file(jvmtiEnv *env, jclass class, char **source)
{
	(void)env;
	(void)class;
	if (refuses(FAKE_SOURCE))
		return JVMTI_ERROR_ABSENT_INFORMATION;
	*source = text("Fake.java");
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL line_table(jvmtiEnv *env, jmethodID id, jint *nr,
				     jvmtiLineNumberEntry **out)
{
	const jint first = (jint)((uintptr_t)id >> 3) * 10 + 1 + fake_jvm.line_shift;

	(void)env;
	if (refuses(FAKE_LINES))
		return JVMTI_ERROR_ABSENT_INFORMATION;
	*nr = 3;
	*out = calloc(3, sizeof(**out));
	fake_jvm.nr_blocks++;
	(*out)[0] = (jvmtiLineNumberEntry){ 0, first };
	(*out)[1] = (jvmtiLineNumberEntry){ 9, first + 2 };
	(*out)[2] = (jvmtiLineNumberEntry){ 5, first + 1 };
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL generate_events(jvmtiEnv *env, jvmtiEvent event)
{
	(void)event;
	fake_jvm.list(env);
	return JVMTI_ERROR_NONE;
}

static void JNICALL delete_reference(JNIEnv *env, jobject object)
{
	(void)env;
	fake_jvm.nr_references -= object == (jobject)&fake_jvm;
}

static struct jvmtiInterface_1_ calls;
static struct JNINativeInterface_ jni_calls;
static JNIEnv jni = &jni_calls;

static jint JNICALL get_env(JavaVM *vm, void **env, jint version)
{
	(void)vm;
	(void)version;
	*env = &jni;
	return JNI_OK;
}

static struct JNIInvokeInterface_ vm_calls;
jvmtiEnv fake_env = &calls;
JavaVM fake_vm = &vm_calls;

void fake_jvm_reset(void)
{
	fake_jvm = (struct fake_jvm){ 0 };
	calls.Deallocate = deallocate;
	calls.GetMethodName = method_name;
	calls.GetMethodDeclaringClass = declaring_class;
	calls.GetClassSignature = class_signature;
	calls.GetSourceFileName = source_file;
	calls.GetLineNumberTable = line_table;
	calls.GenerateEvents = generate_events;
	jni_calls.DeleteLocalRef = delete_reference;
	vm_calls.GetEnv = get_env;
}
